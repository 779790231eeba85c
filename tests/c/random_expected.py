#!/usr/bin/env python3
"""Writes random_expected.h, the table that test_random.c checks the generator against, from the pure Python model tests/spec/spec_rng.py.

    python3 tests/c/random_expected.py > tests/c/random_expected.h

Distributions that need no libm are compared by a hash of all their bytes, the others by their first numbers. Every row also has a hash of the
generator's state afterwards."""
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "spec"))
import spec_rng as rng  # noqa: E402

FORMATS = {"f32": "f", "f64": "d", "f16": "e", "i64": "q", "i32": "i", "u8": "B", "b8": "B"}
NAMES = {"f32": "TM_F32", "f64": "TM_F64", "f16": "TM_F16", "bf16": "TM_BF16", "i64": "TM_I64", "i32": "TM_I32", "u8": "TM_U8", "b8": "TM_BOOL"}


def pack(values, dtype):
    if dtype == "bf16":
        return b"".join(struct.pack("<f", v)[2:] for v in values)
    return struct.pack(f"<{len(values)}{FORMATS[dtype]}", *values)


def fnv(data):
    h = 0xCBF29CE484222325
    for byte in data:
        h = (h ^ byte) * 0x100000001B3 & rng.M64
    return h


def exact_rows():
    for dtype in ("f32", "f64", "f16", "bf16"):
        for n in (1, 7, 1000, 3000):
            yield "UNIFORM", dtype, n, 0.0, 1.0, lambda g, d=dtype, n=n: rng.uniform_(g, n, 0.0, 1.0, d)
        for lo, hi in ((-0.3, 0.7), (2.0, 5.0), (1.0, 1.001)):
            yield "UNIFORM", dtype, 700, lo, hi, lambda g, d=dtype, lo=lo, hi=hi: rng.uniform_(g, 700, lo, hi, d)
    for dtype in ("f32", "f16", "bf16"):
        for n in (16, 17, 31, 1000, 2001):
            yield "NORMAL", dtype, n, 0.3, 0.02, lambda g, d=dtype, n=n: rng.normal_(g, n, 0.3, 0.02, d)
    for p in (0.0, 0.3, 1.0):
        yield "BERNOULLI", "f32", 600, p, 0.0, lambda g, p=p: rng.bernoulli_scalar(g, p, 600)
        yield "BERNOULLI", "b8", 600, p, 0.0, lambda g, p=p: rng.bernoulli_scalar(g, p, 600)
    for lo, hi in ((0, 10), (-5, 5), (0, 1), (0, 2**28 - 1), (0, 2**28), (-(2**40), 2**40)):
        yield "RANGE", "i64", 300, float(lo), float(hi), lambda g, lo=lo, hi=hi: rng.randint(g, lo, hi, 300)
    for n in (0, 1, 2, 10, 1000):
        yield "PERMUTATION", "i64", n, 0.0, 0.0, lambda g, n=n: rng.randperm(g, n)
    yield "FULL", "i64", 100, 0.0, 0.0, lambda g: [rng.random_int64(g) for _ in range(100)]
    yield "FULL", "u8", 100, 0.0, 0.0, lambda g: [g.random() % 256 for _ in range(100)]


def close_rows():
    for dtype, n in (("f64", 16), ("f64", 21), ("f64", 3), ("f32", 3), ("f32", 15)):
        yield "NORMAL", dtype, n, 0.3, 0.02, lambda g, d=dtype, n=n: rng.normal_(g, n, 0.3, 0.02, d)
    for dtype in ("f32", "f64"):
        yield "STRIDED_NORMAL", dtype, 40, 0.0, 1.0, lambda g, d=dtype: rng.normal_(g, 40, 0.0, 1.0, d, contiguous=False)
        yield "EXPONENTIAL", dtype, 50, 1.7, 0.0, lambda g, d=dtype: rng.exponential_(g, 50, 1.7, d)
        yield "GEOMETRIC", dtype, 50, 0.2, 0.0, lambda g, d=dtype: rng.geometric_(g, 50, 0.2, d)
        yield "LOG_NORMAL", dtype, 51, 1.0, 0.5, lambda g, d=dtype: rng.log_normal_(g, 51, 1.0, 0.5, d)
        yield "CAUCHY", dtype, 50, 0.5, 2.0, lambda g, d=dtype: rng.cauchy_(g, 50, 0.5, 2.0, d)


def main():
    print("/* Made by random_expected.py; do not edit. */")
    print("static const exact_row exact_rows[] = {")
    for what, dtype, n, a, b, draw in exact_rows():
        for seed in (0, 12345):
            g = rng.Generator(seed)
            data = pack(draw(g), dtype)
            print(f"    {{{what}, {NAMES[dtype]}, {n}, {a!r}, {b!r}, {seed}, 0x{fnv(data):016x}u, 0x{fnv(g.get_state()):016x}u}},")
    print("};\nstatic const close_row close_rows[] = {")
    for what, dtype, n, a, b, draw in close_rows():
        g = rng.Generator(7)
        first = ", ".join(repr(v) for v in draw(g)[-3:])
        print(f"    {{{what}, {NAMES[dtype]}, {n}, {a!r}, {b!r}, 7, {{{first}}}, {g.left}}},")
    print("};")


if __name__ == "__main__":
    main()
