"""The work that bench/run.py times, written once for both packages; also the worker process that does it.

    rows.py MODULE THREADS      reads row names from standard input, answers each with the seconds of one call, best of a few short samples
"""
import importlib
import os
import sys
import time


def add_1(torch):
    x, y = torch.ones(1), torch.ones(1)
    return lambda: x + y


def add_method_1(torch):
    x, y = torch.ones(1), torch.ones(1)
    return lambda: torch.add(x, y)


def item(torch):
    x = torch.ones(1)
    return lambda: x.item()


def view(torch):
    x = torch.ones(4, 4)
    return lambda: x.view(16)


def index(torch):
    x = torch.ones(4, 4)
    return lambda: x[0]


def linear_8_8(torch):
    layer, x = torch.nn.Linear(8, 8), torch.ones(1, 8)
    return lambda: layer(x)


def linear_8_8_no_grad(torch):
    layer, x = torch.nn.Linear(8, 8).requires_grad_(False), torch.ones(1, 8)
    return lambda: layer(x)


def graph_3(torch):
    x, w, b = torch.ones(1), torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
    return lambda: (x * w + b).tanh().backward()


def gemm(n):
    def make(torch):
        torch.manual_seed(0)
        a, b = torch.randn(n, n), torch.randn(n, n)
        return lambda: a @ b
    return make


def softmax(torch):
    x = torch.randn(2048, 256)
    return lambda: torch.softmax(x, -1)


def layer_norm(torch):
    x, w, b = torch.randn(2048, 128), torch.ones(128), torch.zeros(128)
    return lambda: torch.nn.functional.layer_norm(x, (128,), w, b)


def gelu(torch):
    x = torch.randn(2048, 512)
    return lambda: torch.nn.functional.gelu(x)


def gpt_step(torch):
    """One training step of the demo's model."""
    sys.modules["torch"] = torch
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "examples", "gpt"))
    from model import GPT, Config
    torch.manual_seed(0)
    model = GPT(Config())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95))
    data = torch.randint(256, (16, 129))
    x, y = data[:, :-1].contiguous(), data[:, 1:].contiguous()

    def step():
        loss = model(x, y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.item()
    return step


ROWS = {"add_1": add_1, "torch.add_1": add_method_1, "item": item, "view": view, "index": index, "linear_8_8": linear_8_8,
        "linear_8_8_no_grad": linear_8_8_no_grad, "graph_3": graph_3, "gemm_512": gemm(512), "gemm_1024": gemm(1024), "gemm_2048": gemm(2048),
        "softmax": softmax, "layer_norm": layer_norm, "gelu": gelu, "gpt_step": gpt_step}


def sample(call, seconds=0.003, samples=5):
    """Seconds per call: the best of some samples of a few milliseconds each."""
    clock = time.perf_counter
    start = clock()
    call()
    once = max(clock() - start, 1e-8)
    number, best = max(1, int(seconds / once)), float("inf")
    if once > 0.05:
        samples = 2
    for _ in range(samples):
        start = clock()
        for _ in range(number):
            call()
        best = min(best, (clock() - start) / number)
    return best


def main():
    torch = importlib.import_module(sys.argv[1])
    if sys.argv[1] != "torch" and hasattr(torch, "install_alias"):
        torch.install_alias()
    torch.set_num_threads(int(sys.argv[2]))
    made = {}
    for line in sys.stdin:
        name = line.strip()
        try:
            if name not in made:
                made[name] = ROWS[name](torch)
                made[name]()
            print(sample(made[name]), flush=True)
        except Exception as error:   # the row is reported as failed, the others go on
            print(f"failed: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}", flush=True)


if __name__ == "__main__":
    main()
