"""torch.autograd: Function, hooks, grad modes, checkpointing, gradcheck, functional derivatives."""
import pytest
import taimatsu as torch
from taimatsu import nn
from taimatsu.autograd import Function
from taimatsu.utils.checkpoint import checkpoint, checkpoint_sequential


def doubles(*shape):
    torch.manual_seed(0)
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return 2 * x * g


class Wrong(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 3


class Split(Function):
    @staticmethod
    def forward(x, n):
        return x[:n].clone(), x[n:].clone()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.n = inputs[1]
        assert ctx.needs_input_grad == (True, False)

    @staticmethod
    def backward(ctx, a, b):
        return torch.cat([a, b * 10]), None


def test_functions():
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    Square.apply(x).sum().backward()
    assert x.grad.tolist() == [2, 4, 6]
    x.grad = None
    a, b = Split.apply(x, 1)
    (a.sum() + b.sum()).backward()
    assert x.grad.tolist() == [1, 10, 10]
    assert Square.apply(x).grad_fn.name() == "SquareBackward"


def test_gradcheck():
    assert torch.autograd.gradcheck(Square.apply, (doubles(3),))
    assert torch.autograd.gradgradcheck(Square.apply, (doubles(3),))
    assert torch.autograd.gradcheck(lambda a, b: (a @ b).sin(), (doubles(2, 3), doubles(3, 2)))
    with pytest.raises(torch.autograd.gradcheck.__globals__["GradcheckError"], match="Jacobian mismatch for output 0 with respect to input 0"):
        torch.autograd.gradcheck(Wrong.apply, (doubles(2),))
    assert not torch.autograd.gradcheck(Wrong.apply, (doubles(2),), raise_exception=False)


def test_functional_derivatives():
    x = torch.tensor([1.0, 2.0])
    F = torch.autograd.functional
    assert F.jacobian(lambda v: v**2, x).tolist() == [[2, 0], [0, 4]]
    assert F.hessian(lambda v: (v**3).sum(), x).tolist() == [[6, 0], [0, 12]]
    assert F.vjp(lambda v: v**2, x, torch.ones(2))[1].tolist() == [2, 4]
    assert F.jvp(lambda v: v**2, x, torch.ones(2))[1].tolist() == [2, 4]
    assert F.hvp(lambda v: (v**3).sum(), x, torch.ones(2))[1].tolist() == [6, 12]


def test_grad():
    x = torch.tensor([2.0], requires_grad=True)
    y = x**3
    first, = torch.autograd.grad(y, x, create_graph=True)
    second, = torch.autograd.grad(first, x)
    assert (first.item(), second.item()) == (12.0, 12.0)
    z = torch.ones(1, requires_grad=True)
    with pytest.raises(RuntimeError, match="The differentiated Tensor at index 0 appears to not have been used in the graph"):
        torch.autograd.grad(x * 2, z)
    assert torch.autograd.grad(x * 2, z, allow_unused=True) == (None,)
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        (doubles(2) * 2).backward()


def test_grad_modes():
    x = torch.ones(1, requires_grad=True)
    with torch.no_grad():
        assert not (x * 2).requires_grad
        with torch.enable_grad():
            assert (x * 2).requires_grad

    @torch.no_grad()
    def f(v):
        return v * 2

    assert not f(x).requires_grad
    with torch.set_grad_enabled(False):
        assert not torch.is_grad_enabled()
    with torch.inference_mode():
        assert (x * 2).is_inference()


def test_saved_tensor_hooks():
    x, seen = torch.tensor([3.0], requires_grad=True), []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: (seen.append("pack"), t)[1], lambda t: (seen.append("unpack"), t)[1]):
        y = x * x
    y.backward()
    assert x.grad.item() == 6
    assert set(seen) == {"pack", "unpack"}


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoint_computes_the_same(reentrant):
    model = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5), nn.GELU(), nn.Linear(8, 1))
    x = torch.ones(4, 3, requires_grad=True)

    def run(call):
        torch.manual_seed(1)
        out = call()
        out.sum().backward()
        grads = [x.grad.clone(), *(p.grad.clone() for p in model.parameters())]
        x.grad = None
        model.zero_grad()
        return [out, *grads]

    plain = run(lambda: model(x))
    again = run(lambda: checkpoint(model, x, use_reentrant=reentrant))
    parts = run(lambda: checkpoint_sequential(model, 2, x, use_reentrant=reentrant))
    assert all(torch.equal(a, b) for a, b in zip(plain, again))
    assert all(torch.equal(a, b) for a, b in zip(plain, parts))


def test_functional_call():
    layer = nn.Linear(2, 1)
    out = torch.func.functional_call(layer, {"weight": torch.ones(1, 2), "bias": torch.zeros(1)}, (torch.tensor([[1.0, 2.0]]),))
    assert out.item() == 3


def test_assert_close_texts():
    torch.testing.assert_close(torch.ones(2), torch.ones(2) + 1e-7)
    with pytest.raises(AssertionError) as error:
        torch.testing.assert_close(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
    assert str(error.value) == ("Tensor-likes are not close!\n\nMismatched elements: 1 / 2 (50.0%)\nGreatest absolute difference: 2.0 at index (1,) "
                                "(up to 1e-05 allowed)\nGreatest relative difference: 0.5 at index (1,) (up to 1.3e-06 allowed)")
    with pytest.raises(AssertionError, match="The values for attribute 'dtype' do not match: torch.float32 != torch.float64"):
        torch.testing.assert_close(torch.ones(1), torch.ones(1, dtype=torch.float64))
