#!/usr/bin/env python3
"""Makes BUILD/python usable as it stands: links the package's source files into it, beside the extension that the build puts there.

    link_package.py BUILD/python
"""
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SKIP = {"__pycache__", "meson.build"}


def link_into(source, target):
    """One symbolic link in `target` per entry of `source`; links to entries that went away are removed."""
    os.makedirs(target, exist_ok=True)
    names = {n for n in os.listdir(source) if n not in SKIP} if os.path.isdir(source) else set()
    for name in os.listdir(target):
        path = os.path.join(target, name)
        if os.path.islink(path) and (name not in names or not os.path.exists(path)):
            os.unlink(path)
    for name in names:
        path = os.path.join(target, name)
        if not os.path.islink(path):
            os.symlink(os.path.join(source, name), path)


def main():
    out = os.path.abspath(sys.argv[1])
    link_into(os.path.join(ROOT, "python", "taimatsu"), os.path.join(out, "taimatsu"))
    alias = os.path.join(out, "torch_alias")
    if os.path.isdir(os.path.join(ROOT, "python", "torch_alias")) and not os.path.islink(alias):
        os.symlink(os.path.join(ROOT, "python", "torch_alias"), alias)


main()
