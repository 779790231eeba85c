"""Lets a trained GPT write. An ordinary PyTorch program:

    taimatsu run examples/gpt/sample.py out/gpt.pt --prompt 'class '
"""
import argparse

import torch
from model import load_checkpoint


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("checkpoint")
    p.add_argument("--prompt", default="def ")
    p.add_argument("--count", type=int, default=500, help="bytes to write")
    p.add_argument("--temperature", type=float, default=0.8)
    p.add_argument("--top-k", type=int, default=40, help="choose among the k likeliest bytes (0: among all)")
    p.add_argument("--seed", type=int, default=0)
    args = p.parse_args()
    model, _ = load_checkpoint(args.checkpoint)
    torch.manual_seed(args.seed)
    prompt = args.prompt.encode() or b"\n"
    ids = model.generate(torch.tensor([list(prompt)]), args.count, args.temperature, args.top_k)
    print(bytes(ids[0].tolist()).decode("utf-8", "replace"))


if __name__ == "__main__":
    main()
