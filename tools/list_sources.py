#!/usr/bin/env python3
"""Prints the files that match the given patterns, relative to the repository, sorted: the build's source lists."""
import glob
import os
import sys

root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
for pattern in sys.argv[1:]:
    for path in sorted(glob.glob(os.path.join(root, pattern))):
        print(os.path.relpath(path, root))
