"""Identity, attributes, garbage collection, subclasses, hooks, custom functions: what Python and C share."""
import gc
import threading
import weakref

import pytest

import taimatsu as torch
from taimatsu import autograd


def test_one_object_per_tensor():
    x = torch.ones(2, requires_grad=True)
    (x * 2).sum().backward()
    assert x.grad is x.grad
    x.grad.tag = "kept"
    gc.collect()
    assert x.grad.tag == "kept"


def test_attributes_live_while_c_holds_the_tensor():
    a = torch.ones(2, requires_grad=True)
    b = a * 3
    b.tag = "kept"
    c = b * b
    ref = weakref.ref(b)
    del b
    gc.collect()
    assert ref() is not None and ref().tag == "kept" and c.grad_fn._saved_self is ref()
    del c
    gc.collect()
    assert ref() is None


def test_accumulator_leads_back_to_the_leaf():
    a = torch.ones(2, requires_grad=True)
    assert (a * 1).grad_fn.next_functions[0][0].variable is a


@pytest.mark.parametrize("tie", [
    lambda t: t.register_hook(lambda g: t.sum() and None), lambda t: setattr(t, "me", t), lambda t: t.grad_fn.metadata.update(me=t), lambda t: setattr(t, "f", lambda: t)])
def test_cycles_are_freed(tie):
    def make():
        x = torch.ones(2, requires_grad=True)
        y = x * 2
        tie(y)
        return weakref.ref(x), weakref.ref(y)

    x, y = make()
    gc.collect()
    assert x() is None and y() is None


def test_cycle_through_a_module():
    def make():
        m = torch.nn.Linear(2, 2)
        m.weight.register_hook(lambda g: m)
        m.register_forward_hook(lambda mod, args, out: None)
        m.me = [m]
        return weakref.ref(m)

    ref = make()
    gc.collect()
    assert ref() is None or ref().weight is not None      # a leaf's own hook may keep the module (docs/decisions.md), never half of it


def test_tensors_are_freed_at_once():
    x = torch.ones(1000)
    ref = weakref.ref(x)
    del x
    assert ref() is None


def test_subclass_with_slots_and_dict():
    class Slotted(torch.Tensor):
        __slots__ = ("mark",)

    class Plain(torch.Tensor):
        pass

    s, p = torch.ones(2).as_subclass(Slotted), Plain([1.0, 2.0])
    s.mark = 1
    p.any_name = 2
    assert s.mark == 1 and p.any_name == 2 and s.sum().item() == 2 and type(p) is Plain and p.tolist() == [1, 2]
    assert weakref.ref(s)() is s


def test_results_of_a_subclass_are_of_the_subclass():
    class Mine(torch.Tensor):
        pass

    m = torch.ones(2, 2).as_subclass(Mine)
    for r in (m + 1, 1 + m, torch.add(torch.ones(2, 2), m), m.sum(), m[0], m.t(), torch.stack([m, m])):
        assert type(r) is Mine
    assert type(torch.nn.Parameter(torch.ones(2)) * 2) is torch.Tensor and all(type(v) is Mine for v in m.max(0))


def test_torch_function_sees_function_types_and_arguments():
    calls = []

    class Logged:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            calls.append((func.__name__, types, len(args), kwargs))
            return "handled"

    class Refusing:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    x = Logged()
    assert torch.add(torch.ones(1), x, alpha=2) == "handled" and torch.cat([torch.ones(1), x]) == "handled" and torch.ones(1) + x == "handled"
    assert [c[0] for c in calls] == ["add", "cat", "add"] and calls[0][1] == (Logged,) and calls[0][3] == {"alpha": 2}
    with pytest.raises(TypeError, match="no implementation found"):
        torch.exp(Refusing())


def test_hooks():
    x = torch.ones(2, requires_grad=True)
    y = x * 3
    seen = []
    handle = y.register_hook(lambda g: seen.append(g.tolist()) or g * 2)
    x.register_post_accumulate_grad_hook(lambda leaf: seen.append(leaf is x))
    y.sum().backward(retain_graph=True)
    assert seen == [[1, 1], True] and x.grad.tolist() == [6, 6]
    handle.remove()
    y.sum().backward()
    assert x.grad.tolist() == [9, 9]
    z = x * 2
    z.grad_fn.register_prehook(lambda grads: (grads[0] * 10,))
    z.grad_fn.register_hook(lambda inputs, outputs: seen.append((inputs[0].tolist(), outputs[0].tolist())))
    z.sum().backward()
    assert seen[-1] == ([20, 20], [10, 10]) or seen[-2] == ([20, 20], [10, 10])
    with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that doesn't require gradient"):
        torch.ones(1).register_hook(print)


def test_exceptions_pass_through_as_the_same_object():
    error = KeyError("from a hook")

    def fail(g):
        raise error

    y = torch.ones(2, requires_grad=True) * 2
    y.register_hook(fail)
    with pytest.raises(KeyError) as caught:
        y.sum().backward()
    assert caught.value is error and "fail" in [f.name for f in caught.traceback]
    assert (torch.ones(2) + 1).tolist() == [2, 2]      # nothing is pending afterwards


class Cube(autograd.Function):
    @staticmethod
    def forward(ctx, x, k):
        ctx.save_for_backward(x)
        ctx.k = k
        return x ** 3 * k

    @staticmethod
    def backward(ctx, g):
        assert ctx.needs_input_grad == (True, False)
        (x,) = ctx.saved_tensors
        return 3 * x ** 2 * g * ctx.k, None


def test_custom_function():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = Cube.apply(x, 2)
    assert type(y.grad_fn).__name__ == "CubeBackward" and y.tolist() == [2, 16] and not Cube.apply(x.detach(), 1).requires_grad
    (g,) = autograd.grad(y.sum(), x, create_graph=True)
    assert g.tolist() == [6, 24]
    (gg,) = autograd.grad(g.sum(), x)
    assert gg.tolist() == [12, 24]
    y = Cube.apply(x, 1)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.sum().backward()


@pytest.mark.parametrize("result, error, text", [
    ((None, None, None, 1), RuntimeError, "returned an incorrect number of gradients"), (("a",), TypeError, "expected Variable or None")])
def test_custom_function_with_bad_gradients(result, error, text):
    class Bad(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return result

    with pytest.raises(error, match=text):
        Bad.apply(torch.ones(1, requires_grad=True)).sum().backward()


def test_custom_function_cycle_is_freed():
    def make():
        y = Cube.apply(torch.ones(1, requires_grad=True), 1)
        y.grad_fn.out = y
        return weakref.ref(y), weakref.ref(y.grad_fn)

    y, node = make()
    gc.collect()
    assert y() is None and node() is None


def test_grad_modes():
    x = torch.ones(1, requires_grad=True)
    with torch.no_grad():
        assert not (x * 2).requires_grad
        with torch.enable_grad():
            assert (x * 2).requires_grad
    with torch.inference_mode():
        y = x * 2
        assert y.is_inference() and torch.is_inference_mode_enabled()
    assert torch.is_grad_enabled() and not torch.is_inference_mode_enabled()


def test_threads_use_tensors_together():
    x = torch.ones(200, 200, requires_grad=True)
    problems = []

    def work():
        try:
            for _ in range(20):
                ((x @ x).relu() * 2).sum().backward()
        except Exception as e:      # noqa: BLE001
            problems.append(e)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not problems and x.grad is not None


def test_module_base():
    m = torch.nn.Linear(2, 3)
    assert m.weight is m._parameters["weight"]
    with pytest.raises(AttributeError) as caught:
        m.nothing
    assert str(caught.value) == "'Linear' object has no attribute 'nothing'"
    calls = []
    handle = m.register_forward_hook(lambda mod, args, out: calls.append(out.shape))
    m(torch.ones(1, 2))
    handle.remove()
    m(torch.ones(1, 2))
    assert calls == [(1, 3)]


def test_function_mode_sees_calls_and_nests():
    from taimatsu.overrides import TorchFunctionMode

    class Record(TorchFunctionMode):
        def __init__(self):
            self.names = []

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.names.append(func.__name__)
            return func(*args, **(kwargs or {}))

    outer, inner = Record(), Record()
    with outer:
        torch.ones(2)
        with inner:
            x = torch.ones(2) + 1
            x[0]
            x.sum().item()
    assert inner.names == ["ones", "add", "__getitem__", "sum", "item"] and outer.names == ["ones"] + inner.names
    torch.ones(1)
    assert len(outer.names) == 6


def test_factories_start_at_version_zero():
    for made in (torch.ones(2), torch.zeros(2), torch.full((2,), 3.0), torch.rand(2), torch.arange(3), torch.tensor([1.0])):
        assert made._version == 0
        made.add_(1)
        assert made._version == 1


def test_multi_grad_hook_counts_the_nodes_that_run():
    x, y = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
    seen = []
    autograd.graph.register_multi_grad_hook((x, y), lambda grads: seen.append([g is not None for g in grads]))
    (x * 2 + y).sum().backward()
    (x * 2).sum().backward()
    assert seen == [[True, True], [True, False]]
