"""Trains a byte-level GPT on the sources of Python's own standard library. An ordinary PyTorch program:

    taimatsu run examples/gpt/train.py --steps 300         # on Taimatsu
    python examples/gpt/train.py --steps 300               # on PyTorch
"""
import argparse
import math
import os
import sys
import sysconfig
import time
from collections import Counter

import torch
from model import GPT, Config, save_checkpoint

DEMO = {"steps": 500, "max_seconds": 140.0, "batch": 16, "lr": 3e-3}


def read_corpus(limit):
    """(training text, validation text): the standard library's .py files in a fixed order, every tenth one for validation."""
    root = sysconfig.get_path("stdlib")
    parts, size = ([], []), 0
    paths = []
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(d for d in folders if d not in ("test", "tests", "site-packages", "dist-packages", "__pycache__"))
        paths += [os.path.join(folder, n) for n in names if n.endswith(".py")]
    for i, path in enumerate(sorted(paths)):
        with open(path, "rb") as f:
            text = f.read()
        parts[i % 10 == 9].append(text)
        size += len(text)
        if size >= limit:
            break
    return b"".join(parts[0]), b"".join(parts[1])


def unigram_entropy(text):
    """What the best guess costs that knows only how often each byte occurs, in nats per byte."""
    n = len(text)
    return -sum(c / n * math.log(c / n) for c in Counter(text).values())


def batch_of(data, batch, context, generator=None):
    """Random windows of the text: inputs [batch, context] and the same moved by one as targets."""
    starts = torch.randint(len(data) - context - 1, (batch,), generator=generator).tolist()
    windows = torch.stack([data[i:i + context + 1] for i in starts]).long()
    return windows[:, :-1].contiguous(), windows[:, 1:].contiguous()


@torch.no_grad()
def evaluate(model, data, batch, context, batches):
    """Mean loss over windows that are the same in every run."""
    generator = torch.Generator().manual_seed(1234)
    was_training = model.training
    model.eval()
    total = sum(model(*batch_of(data, batch, context, generator)).item() for _ in range(batches))
    model.train(was_training)
    return total / batches


def learning_rate(progress, warm, peak):
    """Linear warm-up, then a cosine down to a tenth. progress and warm are shares of the whole run."""
    if progress < warm:
        return peak * progress / warm
    share = (progress - warm) / max(1e-9, 1 - warm)
    return peak * (0.1 + 0.45 * (1 + math.cos(math.pi * min(share, 1))))


def make_optimizer(model, lr):
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=lr, betas=(0.9, 0.95))


class Progress:
    """A bar with loss, speed and time left; plain lines where tqdm is not installed."""

    def __init__(self, steps, tokens_per_step):
        self.steps, self.tokens, self.start, self.done = steps, tokens_per_step, time.monotonic(), 0
        try:
            from tqdm import tqdm
        except ImportError:
            self.bar = None
        else:
            interval = 0.2 if sys.stderr.isatty() else 10.0
            self.bar = tqdm(total=steps * tokens_per_step, unit="tok", unit_scale=True, desc="training", dynamic_ncols=True,
                            mininterval=interval, maxinterval=interval)

    def step(self, loss):
        self.done += 1
        if self.bar is not None:
            self.bar.set_postfix_str(f"step {self.done}/{self.steps}, loss {loss:.3f}", refresh=False)
            self.bar.update(self.tokens)
        elif self.done % 20 == 0 or self.done == self.steps:
            speed = self.done * self.tokens / (time.monotonic() - self.start)
            left = (self.steps - self.done) * self.tokens / speed
            print(f"step {self.done}/{self.steps}, loss {loss:.3f}, {speed:.0f} tok/s, {left:.0f} s left", file=sys.stderr)

    def close(self):
        if self.bar is not None:
            self.bar.close()


def train(model, optimizer, data, args):
    """Runs the steps; returns the losses. Ctrl-C ends the run early and keeps what was learnt."""
    losses, progress, start = [], Progress(args.steps, args.batch * args.context), time.monotonic()
    warm = min(args.warmup / args.steps, 1.0)
    try:
        for step in range(args.steps):
            share = (step + 1) / args.steps
            if args.max_seconds:   # on a slow machine the schedule follows the clock
                elapsed = time.monotonic() - start
                if elapsed > args.max_seconds:
                    break
                share = max(share, elapsed / args.max_seconds)
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(share, warm, args.lr)
            loss = model(*batch_of(data, args.batch, args.context))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
            progress.step(losses[-1])
    except KeyboardInterrupt:
        print("\nstopped: what was learnt so far is kept", file=sys.stderr)
    progress.close()
    return losses


def show_sample(model, count):
    prompt = b"def "
    ids = torch.tensor([list(prompt)])
    model.eval()
    text = bytes(model.generate(ids, count)[0].tolist()).decode("utf-8", "replace")
    print(f"\n---- {count} bytes written by the model ----\n{text}\n----")


def parse_arguments():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--steps", type=int, default=300)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--layers", type=int, default=4)
    p.add_argument("--heads", type=int, default=4)
    p.add_argument("--dim", type=int, default=128)
    p.add_argument("--context", type=int, default=128)
    p.add_argument("--batch", type=int, default=16, help="windows per step")
    p.add_argument("--dropout", type=float, default=0.0)
    p.add_argument("--lr", type=float, default=3e-3, help="peak learning rate")
    p.add_argument("--warmup", type=int, default=50, help="steps of linear warm-up")
    p.add_argument("--threads", type=int, default=0, help="0: all cores")
    p.add_argument("--max-seconds", type=float, default=0, help="end the training after this time")
    p.add_argument("--corpus-bytes", type=int, default=12_000_000, help="read at most so much text")
    p.add_argument("--eval-batches", type=int, default=16)
    p.add_argument("--sample", type=int, default=400, help="bytes to generate at the end (0: none)")
    p.add_argument("--save", metavar="FILE", help="write a checkpoint at the end")
    p.add_argument("--log-losses", metavar="FILE", help="write every step's loss, one per line")
    p.add_argument("--perturb", type=float, default=0, help="change the first weights by this relative amount: how sensitive is the run?")
    p.add_argument("--demo", action="store_true", help="settings for a run of at most three minutes on two cores")
    args = p.parse_args()
    if args.demo:
        for name, value in DEMO.items():
            setattr(args, name, value)
    return args


def main():
    args = parse_arguments()
    if args.threads:
        torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    train_text, val_text = read_corpus(args.corpus_bytes)
    train_data, val_data = (torch.frombuffer(bytearray(t), dtype=torch.uint8) for t in (train_text, val_text))
    model = GPT(Config(args.layers, args.heads, args.dim, args.context, 256, args.dropout))
    if args.perturb:
        with torch.no_grad():
            model.tokens.weight.mul_(1 + args.perturb)
    parameters = sum(p.numel() for p in model.parameters())
    print(f"{parameters / 1e6:.2f} M parameters, {len(train_text) / 1e6:.1f} MB of Python sources to learn from, "
          f"{len(val_text) / 1e6:.1f} MB held back, torch {torch.__version__} from {os.path.dirname(torch.__file__)}", flush=True)

    optimizer = make_optimizer(model, args.lr)
    start = time.monotonic()
    losses = train(model, optimizer, train_data, args)
    seconds = time.monotonic() - start
    if args.log_losses:
        with open(args.log_losses, "w", encoding="utf-8") as f:
            f.writelines(f"{x!r}\n" for x in losses)
    if args.save:
        save_checkpoint(args.save, model, optimizer=optimizer.state_dict(), step=len(losses))
    if losses:
        print(f"{len(losses)} steps in {seconds:.1f} s, {len(losses) * args.batch * args.context / seconds:.0f} tokens/s, last loss {losses[-1]:.3f}")
    if args.eval_batches:
        val_loss, entropy = evaluate(model, val_data, args.batch, args.context, args.eval_batches), unigram_entropy(val_text)
        print(f"validation loss {val_loss:.3f} nats per byte; 1-gram entropy of the text {entropy:.3f}")
    if args.sample:
        show_sample(model, args.sample)
    if args.save:
        print(f"checkpoint: {args.save} ({os.path.getsize(args.save) / 1e6:.1f} MB)")
    if args.demo:
        print(NEXT.format(save=args.save))


NEXT = """
Next:
  build/taimatsu run examples/gpt/sample.py {save} --prompt 'class '     let it write more
  build/taimatsu run examples/gpt/train.py --steps 2000 --layers 6 --dim 192    train a larger one
  python examples/gpt/train.py                                           the same program on PyTorch
  build/examples/c/gpt 100                                               the same model in C
  docs/tour.md                                                           how it all works"""

if __name__ == "__main__":
    main()
