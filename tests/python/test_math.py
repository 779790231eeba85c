"""Elementwise maths against long double (numpy): at most 2 units in the last place for f32 and f64, special values, odd lengths and steps."""
import math

import numpy as np
import pytest

import taimatsu as torch

L = np.longdouble
INF, NAN = float("inf"), float("nan")


def erf_reference(x):
    """Series for small arguments, continued fraction of erfc for large ones, in long double."""
    out = np.empty(len(x), L)
    for i, v in enumerate(x):
        v = L(v)
        a = abs(v)
        if a < 2.5:
            term, total, k = a, a, 0
            while abs(term) > total * L(2) ** -70:
                k += 1
                term = -term * a * a / k
                total += term / (2 * k + 1)
            r = 2 / np.sqrt(L(np.pi) + L(1.2246467991473532e-16)) * total
        else:
            t = L(0)
            for k in range(120, 0, -1):
                t = L(k) / 2 / (a + t)
            r = 1 - np.exp(-a * a) / (a + t) / np.sqrt(L(np.pi) + L(1.2246467991473532e-16))
        out[i] = -r if v < 0 else r
    return out


# name: (reference, ranges for f32, ranges for f64)
FUNCTIONS = {
    "exp": (np.exp, [(-103, 88.7), (-1, 1)], [(-744, 709.7), (-1, 1)]),
    "exp2": (np.exp2, [(-148, 127.9)], [(-1073, 1023.9)]),
    "expm1": (np.expm1, [(-20, 88), (-1, 1), (-1e-3, 1e-3)], [(-40, 700), (-1, 1)]),
    "log": (np.log, [(1e-40, 1e38), (0.5, 2), (0.99, 1.01)], [(1e-310, 1e300), (0.5, 2), (0.99, 1.01)]),
    "log2": (np.log2, [(1e-40, 1e38), (0.5, 2)], [(1e-300, 1e300), (0.5, 2)]),
    "log10": (np.log10, [(1e-40, 1e38), (0.5, 2)], [(1e-300, 1e300), (0.5, 2)]),
    "log1p": (np.log1p, [(-0.999, 1), (-1e-3, 1e-3), (1, 1e30)], [(-0.999, 1), (-1e-3, 1e-3)]),
    "sin": (np.sin, [(-10, 10), (-1e5, 1e5)], [(-10, 10), (-1e5, 1e5)]),
    "cos": (np.cos, [(-10, 10), (-1e5, 1e5)], [(-10, 10), (-1e5, 1e5)]),
    "tan": (np.tan, [(-10, 10), (-1e4, 1e4)], [(-10, 10)]),
    "asin": (np.arcsin, [(-1, 1)], [(-1, 1)]),
    "acos": (np.arccos, [(-1, 1)], [(-1, 1)]),
    "atan": (np.arctan, [(-10, 10), (-1e10, 1e10)], [(-10, 10)]),
    "sinh": (np.sinh, [(-88, 88), (-1, 1), (-1e-2, 1e-2)], [(-700, 700), (-1, 1)]),
    "cosh": (np.cosh, [(-88, 88), (-1, 1)], [(-700, 700), (-1, 1)]),
    "tanh": (np.tanh, [(-10, 10), (-1, 1), (-1e-3, 1e-3)], [(-20, 20), (-1, 1), (-1e-3, 1e-3)]),
    "asinh": (np.arcsinh, [(-10, 10), (-1e10, 1e10)], [(-10, 10)]),
    "acosh": (np.arccosh, [(1, 10), (1, 1e10)], [(1, 10)]),
    "atanh": (np.arctanh, [(-0.9999, 0.9999)], [(-0.9999, 0.9999)]),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), [(-80, 80), (-5, 5)], [(-700, 700), (-5, 5)]),
    "sqrt": (np.sqrt, [(0, 1e30)], [(0, 1e300)]),
    "erf": (erf_reference, [(-4.5, 4.5), (-1, 1)], [(-6.5, 6.5), (-1, 1)]),
}


def ulps(got, want, dtype):
    """Distance in units of the last place of the wanted value."""
    info = np.finfo(dtype)
    exponent = np.frexp(np.abs(want))[1].astype(np.int64) - 1
    exponent = np.maximum(exponent, info.minexp)
    unit = np.ldexp(L(1), (exponent - info.nmant).astype(np.int32))
    return float(np.max(np.abs(got.astype(L) - want) / unit))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_accuracy(name, dtype):
    reference, *ranges = FUNCTIONS[name]
    rng = np.random.default_rng(7)
    n = 401 if name == "erf" else 4001
    for low, high in ranges[dtype == np.float64]:
        if low > 0 and high / low > 1e20:
            x = np.exp(rng.uniform(math.log(low), math.log(high), n)).astype(dtype)
        else:
            x = rng.uniform(low, high, n).astype(dtype)
        got = getattr(torch, name)(torch.from_numpy(x)).numpy()
        assert got.dtype == dtype
        worst = ulps(got, reference(x.astype(L)), dtype)
        assert worst <= 2.0, f"{name} on [{low}, {high}]: {worst:.2f} ulp"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_pow_accuracy(dtype):
    rng = np.random.default_rng(8)
    x = np.exp2(rng.uniform(-20, 20, 4001)).astype(dtype)
    y = rng.uniform(-5, 5, 4001).astype(dtype)
    got = torch.pow(torch.from_numpy(x), torch.from_numpy(y)).numpy()
    assert ulps(got, np.power(x.astype(L), y.astype(L)), dtype) <= 2.0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_whole_powers_are_exact(dtype):
    base = torch.arange(1, 12, dtype=dtype)
    for k in range(7):
        got = torch.pow(base, torch.full_like(base, k)).tolist()
        assert got == [float(b ** k) for b in range(1, 12)]


SPECIAL = {
    "exp": {INF: INF, -INF: 0.0, 1000.0: INF, -1000.0: 0.0, 0.0: 1.0},
    "log": {INF: INF, -0.0: -INF, -1.0: NAN, 1.0: 0.0},
    "log1p": {INF: INF, -1.0: -INF, -2.0: NAN, -0.0: -0.0},
    "log2": {8.0: 3.0, 0.0: -INF, 1024.0: 10.0},
    "sqrt": {INF: INF, -1.0: NAN, -0.0: -0.0},
    "sin": {INF: NAN, -INF: NAN, -0.0: -0.0},
    "cos": {INF: NAN, 0.0: 1.0},
    "tan": {INF: NAN, -0.0: -0.0},
    "tanh": {INF: 1.0, -INF: -1.0, -0.0: -0.0},
    "erf": {INF: 1.0, -INF: -1.0, -0.0: -0.0},
    "erfc": {INF: 0.0, -INF: 2.0, 0.0: 1.0},
    "atan": {INF: math.pi / 2, -INF: -math.pi / 2, -0.0: -0.0},
    "asin": {2.0: NAN, -0.0: -0.0},
    "acosh": {0.5: NAN, 1.0: 0.0, INF: INF},
    "atanh": {1.0: INF, -1.0: -INF, 2.0: NAN},
    "asinh": {INF: INF, -INF: -INF, -0.0: -0.0},
    "sinh": {INF: INF, -INF: -INF, -0.0: -0.0},
    "cosh": {INF: INF, -INF: INF},
    "expm1": {-INF: -1.0, INF: INF, -0.0: -0.0},
    "sigmoid": {INF: 1.0, -INF: 0.0, 0.0: 0.5},
    "erfinv": {1.0: INF, -1.0: -INF, 0.0: 0.0, 2.0: NAN},
    "digamma": {0.0: -INF, -1.0: NAN},
    "lgamma": {0.0: INF, 1.0: 0.0, -1.0: INF},
    "round": {0.5: 0.0, 1.5: 2.0, 2.5: 2.0, -0.5: -0.0},
    "sign": {-0.0: 0.0, INF: 1.0, -3.0: -1.0},
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", SPECIAL)
def test_special_values(name, dtype):
    for x, want in {**SPECIAL[name], **({} if name == "sign" else {NAN: NAN})}.items():
        got = getattr(torch, name)(torch.tensor([x] * 11, dtype=dtype)).tolist()
        for g in got:
            if math.isnan(want):
                assert math.isnan(g), (name, x, g)
            else:
                tolerance = 1e-6 if dtype == torch.float32 else 1e-15
                assert g == want or abs(g - want) <= tolerance * abs(want), (name, x, g)
                assert math.copysign(1, g) == math.copysign(1, want), (name, x, g)


def test_denormals_are_kept():
    x = torch.tensor([1e-40, -1e-42], dtype=torch.float32)
    assert ((x * 1) != 0).all()
    assert torch.tanh(x).tolist() == x.tolist() and torch.sin(x).tolist() == x.tolist()
    assert torch.exp(torch.tensor([-100.0])).item() == pytest.approx(math.exp(-100.0), rel=2e-2)


@pytest.mark.parametrize("name", ["exp", "sin", "tanh", "erf", "log"])
def test_value_does_not_depend_on_place(name):
    """The vector's tail, steps and broadcasts give the bits that the middle gives."""
    f = getattr(torch, name)
    x = torch.linspace(0.1, 7, 67)
    whole = f(x)
    for i in range(67):
        assert f(x[i:i + 1]).item() == whole[i].item()
    assert f(x[::3]).tolist() == whole[::3].tolist()
    assert f(x.reshape(67, 1).expand(67, 5))[:, 3].tolist() == whole.tolist()
