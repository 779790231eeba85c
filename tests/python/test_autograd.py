"""Differentiation from Python: recording, backward, in-place and views, hooks, custom functions, errors. What PyTorch 2.13 answers is
written down in autograd_expected.json; the last test asks PyTorch itself where it is installed."""
import json
import os

import autograd_cases
import pytest
import taimatsu

HERE = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(HERE, "autograd_expected.json"), encoding="utf-8") as f:
    EXPECTED = json.load(f)


def test_every_case_has_an_answer():
    assert set(EXPECTED) == set(autograd_cases.CASES)


@pytest.mark.parametrize("name", list(autograd_cases.CASES))
def test_case(name):
    assert json.loads(json.dumps(autograd_cases.run(name, taimatsu))) == EXPECTED[name]


def test_pytorch_agrees(run_torch):
    assert json.loads(run_torch(os.path.join(HERE, "autograd_cases.py"))) == EXPECTED


def test_inplace_on_itself_is_freed():
    """In PyTorch `h.add_(h * h)` without a backward leaks; here the graph goes."""
    import weakref

    class Mark:
        pass

    x = taimatsu.ones(2, requires_grad=True)
    h = x * 1
    h.tag = Mark()
    ref = weakref.ref(h.tag)
    h.add_(h * h)
    del h
    assert ref() is None


def test_cycle_through_a_result_is_collected():
    """hook -> closure -> object -> tensor -> its node's hook: PyTorch 2.13 keeps this one for ever."""
    import gc
    import weakref

    class Mark:
        pass

    y = taimatsu.ones(2, requires_grad=True) * 2
    m = Mark()
    m.y = y
    y.register_hook((lambda mark: lambda grad: mark and None)(m))
    ref = weakref.ref(m)
    del y, m
    gc.collect()
    assert ref() is None
