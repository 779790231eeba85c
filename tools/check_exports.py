#!/usr/bin/env python3
"""Fails unless the library exports exactly what the public headers declare: tm_* and nothing else.

    check_exports.py BUILD
"""
import glob
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DECLARATION = re.compile(r"TM_API[^;{]*?\b(\w+)\s*\(", re.S)


def exported(library):
    text = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    return {line.split()[-1].split("@")[0] for line in text.splitlines() if line.split()[-2] not in ("A",)}


def declared(build):
    names = set()
    for path in glob.glob(os.path.join(ROOT, "include/taimatsu/*.h")) + glob.glob(os.path.join(build, "include/taimatsu/*.h")):
        with open(path, encoding="utf-8") as f:
            text = re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)
        text = re.sub(r"^\s*#.*$", "", text, flags=re.M)
        names |= set(DECLARATION.findall(text))
    return names


def main():
    build = sys.argv[1] if len(sys.argv) > 1 else "build"
    out, public = exported(os.path.join(build, "libtaimatsu.so")), declared(build)
    faults = [f"exported, but no tm_ name: {n}" for n in sorted(out) if not n.startswith("tm_")]
    faults += [f"exported, but in no public header: {n}" for n in sorted(out - public) if n.startswith("tm_")]
    faults += [f"declared, but not exported: {n}" for n in sorted(public - out)]
    print("\n".join(faults + [f"exports: {len(out)} names, {len(faults)} faults"]))
    return 1 if faults or not out else 0


sys.exit(main())
