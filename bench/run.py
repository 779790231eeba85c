"""Times the build against PyTorch, turn by turn in the same minutes, and writes bench/results.

    run.py [--build DIR] [--torch-python PYTHON] [--rows NAME,...] [--rounds N]

A ratio is the median, over turns, of ours / theirs in neighbouring turns: below 1, Taimatsu is quicker. Lone times mean little on a shared machine.
"""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys

from rows import ROWS

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
GOALS = {"c add_1": 60, "c graph_3_backward": 1000, "add_1": 250, "linear_8_8": 1500}   # nanoseconds


class Side:
    """A worker process that holds one package."""

    def __init__(self, python, module, threads, path):
        env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | ({"PYTHONPATH": path} if path else {})
        self.process = subprocess.Popen([python, os.path.join(ROOT, "bench", "rows.py"), module, str(threads)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)

    def ask(self, name):
        print(name, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline().strip() or "failed: the process died"
        try:
            return float(answer)
        except ValueError:
            return answer

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def compare(ours, theirs, name, rounds):
    a, b = [], []
    for _ in range(rounds):
        for side, times in ((ours, a), (theirs, b)):
            answer = side.ask(name) if side else None
            if isinstance(answer, str):
                return {"failed": f"{'ours' if side is ours else 'torch'} {answer}"}
            times.append(answer)
    if theirs is None:
        return {"ns": 1e9 * min(a)}
    return {"ns": 1e9 * min(a), "torch_ns": 1e9 * min(b), "ratio": statistics.median(x / y for x, y in zip(a, b))}


def show(name, row):
    goal = f"   (goal {GOALS[name]} ns)" if name in GOALS else ""
    if "failed" in row:
        print(f"{name:24} {row['failed']}")
    elif "ratio" in row:
        print(f"{name:24} {row['ns']:14.1f} ns   torch {row['torch_ns']:14.1f} ns   ours/torch {row['ratio']:.2f}{goal}", flush=True)
    else:
        print(f"{name:24} {row['ns']:14.1f} ns{goal}", flush=True)


def run_rows(args, build, threads, names):
    ours = Side(sys.executable, "taimatsu", threads, os.path.join(build, "python"))
    theirs = Side(args.torch_python, "torch", threads, None) if os.path.exists(args.torch_python) else None
    results = {}
    for name in names:
        results[name] = compare(ours, theirs, name, args.rounds)
        show(name, results[name])
    for side in (ours, theirs):
        if side:
            side.close()
    return results


def run_startup(args, build):
    env = dict(os.environ, PYTHONPATH=os.path.join(build, "python"))
    pairs = [sys.executable, "taimatsu"] + ([args.torch_python, "torch"] if os.path.exists(args.torch_python) else [])
    command = [sys.executable, os.path.join(ROOT, "bench", "startup.py"), *pairs]
    out = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout
    rows = [json.loads(line) for line in out.splitlines()]
    for row in rows:
        print(f"import {row['module']:17} {row['import_ms']:8.1f} ms and {row['rss_mb']:6.1f} MB over a bare interpreter   (goal 60 ms, 40 MB)")
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--torch-python", default=os.path.join(ROOT, ".venv-torch", "bin", "python"))
    parser.add_argument("--rows", default=",".join(ROWS))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", default=os.path.join(ROOT, "bench", "results", "foundation.json"))
    args = parser.parse_args()
    build = os.path.abspath(args.build)
    results = {"machine": {"cpu": platform.processor() or platform.machine(), "cpus": os.cpu_count(), "python": platform.python_version()},
               "threads": args.threads}
    overhead = json.loads(subprocess.run([os.path.join(build, "bench", "overhead")], capture_output=True, text=True, check=True).stdout)
    results["c"] = {name: {"ns": ns} for name, ns in overhead.items()}
    for name, row in results["c"].items():
        show(f"c {name}", row)
    results["rows"] = run_rows(args, build, args.threads, [n for n in args.rows.split(",") if n in ROWS])
    results["startup"] = run_startup(args, build)
    os.makedirs(os.path.dirname(args.out), exist_ok=True)
    with open(args.out, "w", encoding="utf-8") as f:
        json.dump(results, f, indent=1)
        f.write("\n")
    print(f"written: {os.path.relpath(args.out, ROOT)}")


if __name__ == "__main__":
    main()
