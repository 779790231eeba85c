#!/usr/bin/env python3
"""Fails unless each public header compiles alone, as C17 and as C++20, without a warning.

    check_headers.py BUILD      (the build folder holds the generated ops.h)
"""
import glob
import os
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def main():
    build = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build")
    names = sorted(os.path.basename(p) for p in glob.glob(os.path.join(ROOT, "include/taimatsu/*.h"))) + ["ops.h"]
    headers = ["taimatsu.h"] + [f"taimatsu/{n}" for n in names]
    cc = os.environ.get("CC", "gcc").split()
    modes = [("c", cc + ["-std=c17", "-Wstrict-prototypes"])]
    cxx = next((c for c in ("g++", "clang++") if shutil.which(c)), None)
    # Without a C++ compiler of its own, clang checks the syntax all the same.
    modes += [("c++", [cxx or "clang", "-std=c++20"])] if cxx or shutil.which("clang") else []
    faults = 0
    for header in headers:
        for language, command in modes:
            command = command + ["-x", language, "-fsyntax-only", "-Wall", "-Wextra", "-Wshadow", "-Werror", "-pedantic",
                                 "-I", os.path.join(ROOT, "include"), "-I", os.path.join(build, "include"), "-"]
            run = subprocess.run(command, input=f"#include <{header}>\n", capture_output=True, text=True)
            if run.returncode:
                faults += 1
                print(f"{header} as {language}:\n{run.stderr}")
    print(f"headers: {len(headers)} as {' and '.join(m[0] for m in modes)}, {faults} faults")
    return 1 if faults else 0


sys.exit(main())
