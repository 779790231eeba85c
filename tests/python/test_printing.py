"""repr of tensors against the model of PyTorch's rules in tests/spec/spec_print.py."""
import math
import os
import random
import runpy

import pytest

import taimatsu as torch

SHAPES = [(), (1,), (3,), (0,), (2, 0), (17,), (200,), (1001,), (2, 3), (3, 4, 5), (40, 30), (2, 600), (11, 11, 11), (0, 3, 2), (1, 1, 1, 1, 2)]
DTYPES = ["float32", "float64", "float16", "bfloat16", "int64", "int32", "uint8", "bool", "complex64", "float8_e5m2"]


@pytest.fixture(scope="module")
def model(root):
    return runpy.run_path(os.path.join(root, "tests", "spec", "spec_print.py"))


def numbers(rnd, n):
    kind = rnd.randrange(5)
    scale = 10.0 ** rnd.randint(-7, 9) if kind == 1 else 1.0
    values = [rnd.gauss(0, 1) * scale for _ in range(n)]
    if kind == 2:
        values = [float(round(v * 1000)) for v in values]
    if kind == 3:
        values = [rnd.choice([v, math.nan, math.inf, -math.inf, 0.0]) for v in values]
    return values


def make(rnd, shape, name):
    dtype = getattr(torch, name)
    n = math.prod(shape)
    values = numbers(rnd, n)
    if name == "complex64":
        values = [complex(v, w) for v, w in zip(values, numbers(rnd, n))]
    elif name == "bool":
        values = [v > 0 for v in values]
    elif not dtype.is_floating_point:
        values = [rnd.randrange(0, 100) for _ in values]
    return torch.tensor(values, dtype=dtype).reshape(shape)


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("options", [{}, {"precision": 2}, {"sci_mode": True}, {"sci_mode": False}, {"linewidth": 40}, {"threshold": 5}, {"edgeitems": 1, "threshold": 5},
                                     {"edgeitems": 0, "threshold": 5}, {"profile": "short"}, {"profile": "full"}])
def test_against_the_model(model, name, options):
    rnd = random.Random(name + str(options))
    opts = model["PROFILES"][options["profile"]] if "profile" in options else options
    with torch.printoptions(**options):
        for shape in SHAPES:
            t = make(rnd, shape, name)
            assert repr(t) == model["tensor_repr"](t.tolist(), shape, name, opts=opts)
            if name.startswith("float") and "8" not in name:
                p = t.requires_grad_()
                assert repr(p) == model["tensor_repr"](t.tolist(), shape, name, requires_grad=True, opts=opts)
                q = p * 2
                assert repr(q) == model["tensor_repr"](q.tolist(), shape, name, grad_fn="MulBackward0", opts=opts)


def test_other_forms():
    assert repr(torch.empty(3, 2, device="meta", dtype=torch.float16)) == "tensor(..., device='meta', size=(3, 2), dtype=torch.float16)"
    assert repr(torch.nn.Parameter(torch.ones(2))) == "Parameter containing:\ntensor([1., 1.], requires_grad=True)"

    class Mine(torch.Tensor):
        pass

    assert repr(torch.ones(2).as_subclass(Mine)) == "Mine([1., 1.])"
    assert f"{torch.tensor(1.5):.3f}" == "1.500"
