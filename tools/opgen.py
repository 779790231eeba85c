#!/usr/bin/env python3
"""Reads operator blocks (src/ops/*.ops; the language is docs/adding-an-op.md) and writes everything that follows from them:

  ops.h          public C prototypes                    op_table.c   operator records, shape and body adaptors
  op_ids.h       one id per operator                    op_calls.c   typed C functions that fill boxed values
  op_bodies.h    prototypes of bodies, kernels, rules   op_grads.c   gradient formulas
  cpu_table.c    kernel adaptors and the CPU's table    py_methods.c Python name tables
  ops.json       the same facts for stubs, reference pages and tests

Standard library only.
"""
import argparse
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from opgen_emit import emit_all  # noqa: E402
from opgen_schema import BlockError, read_blocks  # noqa: E402


def write_if_changed(path, text):
    """A file that stays the same keeps its time, so that nothing is compiled again for it."""
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            if f.read() == text:
                return
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", required=True, help="folder for the generated files")
    parser.add_argument("files", nargs="+")
    options = parser.parse_args()
    try:
        ops = read_blocks(options.files)
        outputs = emit_all(ops)
    except BlockError as error:
        sys.exit(f"opgen: {error}")
    outputs["ops.json"] = json.dumps([op.facts() for op in ops], indent=1)
    for name, text in outputs.items():
        write_if_changed(os.path.join(options.out, name), text)


if __name__ == "__main__":
    main()
