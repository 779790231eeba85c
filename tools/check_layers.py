#!/usr/bin/env python3
"""Fails when a file includes a higher layer's header, or when two files of the tree share a name.

Layers, lowest first (docs/tour.md): base 0, core 1, ops and autograd 2, cpu and graph 3, codegen and gpu 4, nn and io 5, dist 6. A file
includes only lower layers, or its equals. Public headers and generated ones are at the layer of what they declare; edge/ shares nothing
with src/; Python.h belongs to python/csrc/ alone.
"""
import os
import re
import sys
from collections import defaultdict

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LAYERS = {"base": 0, "core": 1, "ops": 2, "autograd": 2, "cpu": 3, "graph": 3, "codegen": 4, "gpu": 4, "nn": 5, "io": 5, "dist": 6}
PUBLIC = {"base.h": 0, "tensor.h": 1, "ops.h": 2, "autograd.h": 2, "nn.h": 5, "optim.h": 5, "io.h": 5}
GENERATED = {"ops.h": 2, "op_ids.h": 2, "op_bodies.h": 2}
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]', re.M)
NAMED = (".c", ".h", ".S", ".ops", ".def", ".py")
REPEATED = {"__init__.py", "__main__.py", "conftest.py"}
# The package mirrors PyTorch's module names; the judges are programs of their own.
OWN_NAMES = ("python/taimatsu/", "python/torch_alias/", "tests/conform/", "bench/pair/")


def tree_files():
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [d for d in folders if not d.startswith((".", "build")) and d not in ("__pycache__", "out", "dist")]
        for name in names:
            yield os.path.relpath(os.path.join(folder, name), ROOT)


def layer_of_file(path):
    parts = path.split(os.sep)
    if parts[0] == "src" and len(parts) > 2:
        return LAYERS.get(parts[1])
    if path.startswith(os.path.join("include", "taimatsu", "")):
        return PUBLIC.get(parts[-1])
    return None


def layer_of_include(path, target):
    """The layer that #include "target" in `path` reaches, None where the name is not ours."""
    head, name = os.path.split(target)
    if head == "taimatsu" or (head == "" and target in GENERATED):
        return PUBLIC.get(name, GENERATED.get(name))
    folder = os.path.normpath(os.path.join(os.path.dirname(path), head)).split(os.sep)
    for top in (head.split("/")[0], folder[1] if folder[0] == "src" and len(folder) > 1 else ""):
        if top in LAYERS:
            return LAYERS[top]
    return None


def check_includes(path, text):
    own = layer_of_file(path)
    for kind, target in INCLUDE.findall(text):
        where = f"{path}: includes {target}"
        if target == "Python.h" and not path.startswith(os.path.join("python", "csrc", "")):
            yield f"{where}: only python/csrc may"
        if path.startswith("edge" + os.sep) and layer_of_include(path, target) is not None:
            yield f"{where}: edge/ shares nothing with the library"
        if own is None or kind == "<" and not target.startswith("taimatsu/"):
            continue
        theirs = layer_of_include(path, target)
        if theirs is not None and theirs > own:
            yield f"{where}: layer {own} reaches up to layer {theirs}"


def check_names(paths):
    places = defaultdict(list)
    for path in paths:
        if path.endswith(NAMED) and not path.startswith(OWN_NAMES):
            places[os.path.basename(path)].append(path)
    for name, where in sorted(places.items()):
        if len(where) > 1 and name not in REPEATED:
            yield f"{name}: the name is used twice: {', '.join(sorted(where))}"


def main():
    paths = sorted(tree_files())
    faults, checked = list(check_names(paths)), 0
    for path in paths:
        if path.endswith((".c", ".h", ".S")):
            with open(os.path.join(ROOT, path), encoding="utf-8") as f:
                faults += check_includes(path, f.read())
            checked += 1
    for fault in faults:
        print(fault)
    print(f"layers: {checked} files, {len(faults)} faults")
    return 1 if faults or not checked else 0


sys.exit(main())
