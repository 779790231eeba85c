#!/usr/bin/env python3
"""Prints how large the parts are: files and lines by folder, function lengths (median, p90, maximum), library size.

    sizes.py [--build DIR] [--long N]     --long lists functions of more than N lines
Functions are found by this tree's style: the body's opening brace stands alone in column 0 and so does the closing one.
"""
import argparse
import os
import re
import statistics
from collections import defaultdict

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOPS = ("include", "src", "python", "tools", "tests", "bench", "examples", "docs")
KINDS = (".c", ".h", ".S", ".ops", ".def", ".py", ".sh", ".md")


def source_files():
    for top in TOPS:
        for folder, folders, names in os.walk(os.path.join(ROOT, top)):
            folders[:] = sorted(d for d in folders if d != "__pycache__")
            for name in sorted(names):
                if name.endswith(KINDS):
                    yield os.path.relpath(os.path.join(folder, name), ROOT)


def c_functions(path, lines):
    """(lines, name, path:line) of every function body."""
    start = None
    for number, line in enumerate(lines, 1):
        if line == "{":
            start = number
        elif line == "}" and start:
            head = " ".join(lines[max(0, start - 4):start - 1])
            names = re.findall(r"(\w+)\s*\(", head)
            yield number - start - 1, names[-1] if names else "?", f"{path}:{start}"
            start = None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--long", type=int, default=0)
    args = parser.parse_args()
    files, lines_of, functions, longest = defaultdict(int), defaultdict(int), [], []
    for path in source_files():
        with open(os.path.join(ROOT, path), encoding="utf-8") as f:
            lines = f.read().splitlines()
        part = "/".join(path.split("/")[:2]) if path.split("/")[0] in ("src", "python", "tests") else path.split("/")[0]
        files[part] += 1
        lines_of[part] += len(lines)
        longest.append((len(lines), path))
        if path.endswith((".c", ".h")) and path.startswith(("src", "python", "include")):
            functions += c_functions(path, lines)
    print(f"{'part':24}{'files':>7}{'lines':>9}")
    for part in sorted(files):
        print(f"{part:24}{files[part]:7}{lines_of[part]:9}")
    print(f"{'all':24}{sum(files.values()):7}{sum(lines_of.values()):9}")
    print("longest files: " + ", ".join(f"{p} {n}" for n, p in sorted(longest, reverse=True)[:5]))
    if functions:
        sizes = sorted(f[0] for f in functions)
        p90 = sizes[min(len(sizes) - 1, int(len(sizes) * 0.9))]
        print(f"C functions: {len(sizes)}, median {statistics.median(sizes):.0f} lines, p90 {p90}, longest {sizes[-1]}")
        for n, name, where in sorted(functions, reverse=True):
            if args.long and n > args.long:
                print(f"  {n:4} {name}  {where}")
    for folder, _, names in os.walk(os.path.join(ROOT, args.build)):
        for name in sorted(names):
            path = os.path.join(folder, name)
            if not os.path.islink(path) and ".so" in name and os.path.isfile(path) and not name.endswith(".symbols"):
                print(f"{os.path.relpath(path, ROOT)}: {os.path.getsize(path) / 1e6:.1f} MB")


main()
