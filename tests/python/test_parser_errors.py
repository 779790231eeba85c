"""What the parser says about wrong arguments, and the calls it must accept."""
import os
import runpy

import pytest

import taimatsu as torch

A = torch.ones(2, 3)


@pytest.mark.parametrize("call, text", [
    ("A.mm()", 'mm() missing 1 required positional arguments: "mat2"'),
    ("A.mm(A, A)", "mm() takes 1 positional argument but 2 were given"),
    ("A.mm('a')", "mm(): argument 'mat2' (position 1) must be Tensor, not str"),
    ("torch.add(A, 'a')", "add(): argument 'other' (position 2) must be Tensor, not str"),
    ("A.add('a')", "add(): argument 'other' (position 1) must be Tensor, not str"),
    ("torch.add(A)", "add() received an invalid combination of arguments - got (Tensor), but expected (Tensor input, Tensor other, *, Number alpha = 1, Tensor out = None)"),
    ("A.add_(1, out=A)", "add_() got an unexpected keyword argument 'out'"),
    ("torch.relu(A, A)", "relu() takes 1 positional argument but 2 were given"),
    ("torch.relu(A, foo=1)", "relu() got an unexpected keyword argument 'foo'"),
    ("torch.relu(input=A, x=A)", "relu() got an unexpected keyword argument 'x'"),
    ("A.relu(1)", "TensorBase.relu() takes no arguments (1 given)"),
    ("A.relu(foo=1)", "TensorBase.relu() takes no keyword arguments"),
    ("torch.softmax(A)", 'softmax() missing 1 required positional arguments: "dim"'),
    ("torch.softmax(A, dim='a')", "softmax(): argument 'dim' must be int, not str"),
    ("torch.cat(A)", "cat(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor"),
    ("torch.cat([A], 1, 2, 3)", "cat() takes from 1 to 2 positional arguments but 4 were given"),
    ("torch.cat([1, 2])", "expected Tensor as element 0 in argument 0, but got int"),
    ("torch.stack([A, 1])", "expected Tensor as element 1 in argument 0, but got int"),
    ("A.permute(1.0, 0)", "permute() takes 1 positional argument but 2 were given"),
    ("A.repeat('a')", "repeat(): argument 'repeats' (position 1) must be tuple of ints, not str"),
    ("A.expand(2, 'x')", "expand(): argument 'size' failed to unpack the object at pos 2 with error \"type must be tuple of ints,but got str\""),
    ("A.sum(0, 1)", "sum(): argument 'keepdim' (position 2) must be bool, not int"),
    ("A.sum('a')", "sum() received an invalid combination of arguments - got (str), but expected one of:\n * (*, torch.dtype dtype = None)\n"
                   " * (tuple of ints dim, bool keepdim = False, *, torch.dtype dtype = None)\n"),
    ("torch.max(A, 1, 2)", "max() received an invalid combination of arguments - got (Tensor, int, int), but expected one of:\n * (Tensor input, *, Tensor out = None)\n"
                           "      didn't match because some of the arguments have invalid types: (Tensor, !int!, !int!)\n * (Tensor input, Tensor other, *, Tensor out = None)\n"
                           " * (Tensor input, int dim, bool keepdim = False, *, tuple of Tensors out = None)\n"),
    ("torch.zeros(2, dtype=3)", "zeros(): argument 'dtype' must be torch.dtype, not int"),
    ("torch.ones(2, 3, requires_grad=1)", "ones(): argument 'requires_grad' must be bool, not int"),
    ("torch.tensor()", 'tensor() missing 1 required positional arguments: "data"'),
    ("torch.tensor(1, 2)", "tensor() takes 1 positional argument but 2 were given"),
    ("torch.tensor(1, foo=3)", "tensor() got an unexpected keyword argument 'foo'"),
    ("A.size('a')", "size(): argument 'dim' (position 1) must be int, not str"),
    ("A.size(1, 2)", "size() takes from 0 to 1 positional arguments but 2 were given"),
    ("A.transpose(0)", 'transpose() missing 1 required positional arguments: "dim1"')])
def test_type_errors(call, text):
    with pytest.raises(TypeError) as caught:
        eval(call, {"torch": torch, "A": A})
    assert str(caught.value) == text


def test_accepted_spellings():
    x = torch.arange(6.0).reshape(2, 3)
    assert x.view(3, 2).shape == x.view((3, 2)).shape == x.view(size=(3, 2)).shape == x.view([3, -1]).shape == (3, 2)
    assert x.permute(1, 0).shape == torch.permute(x, (1, 0)).shape == (3, 2)
    assert x.sum(dim=1).tolist() == x.sum(axis=1).tolist() == x.sum((1,)).tolist() == x.sum(-1).tolist() == [3, 12]
    assert x.sum(1, keepdim=True).shape == x.sum(1, keepdims=True).shape == torch.sum(input=x, dim=1, keepdim=True).shape == (2, 1)
    assert torch.add(x, x, alpha=2)[1, 2] == 15 and torch.add(x, 1, alpha=2)[0, 0] == 2 and torch.add(x1=x, x2=x)[0, 1] == 2
    assert torch.relu(x=x).shape == torch.relu(a=x).shape
    assert torch.zeros(2, dtype=float).dtype is torch.get_default_dtype() and torch.zeros(2, dtype=int).dtype is torch.int64
    assert torch.ones(2, 3).shape == torch.ones((2, 3)).shape == torch.ones([2, 3]).shape == torch.ones(torch.Size([2, 3])).shape == torch.ones(torch.tensor(2), 3).shape
    assert torch.zeros(()).shape == () and torch.zeros(2, device="cpu", dtype=None, requires_grad=True).requires_grad
    assert x.clamp(min=torch.tensor(1.0))[0, 0] == 1 and x.clamp(1, 2).max() == 2 and x.clamp(max=2).max() == 2


def test_out_argument():
    out = torch.empty(3)
    r = torch.add(torch.ones(3), 1, out=out)
    assert r is out and out.tolist() == [2, 2, 2]
    values, indices = torch.empty(0), torch.empty(0, dtype=torch.int64)
    r = torch.max(torch.tensor([[1.0, 5.0]]), 1, out=(values, indices))
    assert r.values is values and values.tolist() == [5] and indices.tolist() == [1]


def test_in_place_returns_self():
    x = torch.ones(2)
    assert x.add_(1) is x and x.mul_(2).add_(1) is x and x.tolist() == [5, 5]


def test_overflowing_numbers():
    with pytest.raises(RuntimeError, match="Overflow when unpacking long long"):
        A.sum(2**70)


PARSER_CASES = ("t.cat([1, 2])", "t.ones(2.5)", "t.from_numpy(3)", "A + 'a'", "A + None", "t.add(A)", "t.ones('a')", "A.foo", "t.ones(2, names=('a',))",
                "t.ones(1, dtype='float32')", "t.Tensor(2, dtype=t.int64)", "A.type('foo')", "t.device('cuda:-1')", "t.device('cuda:x')", "A.to('mps')", "A.to('cuda')",
                "t.ones(1, device='foo')", "bool(t.ones(2))", "float(t.ones(2))", "range(t.tensor(1.5))", "A['a']", "A[1.0]", "A[::0]", "A[::-1]", "x.numpy()",
                "t.ones(2, dtype=t.int64).requires_grad_()", "t.ones(2, dtype=t.int64, requires_grad=True)", "setattr(x * 2, 'requires_grad', False)")


@pytest.mark.parametrize("code", PARSER_CASES)
def test_messages_of_the_table(root, code):
    """The rows of tests/spec/spec_errors.py that the extension alone decides."""
    table = runpy.run_path(os.path.join(root, "tests", "spec", "spec_errors.py"))
    error, text = next((e, m) for c, e, m in table["CASES"] if c == code)
    with pytest.raises(Exception) as caught:
        eval(code, {"t": torch, "A": torch.ones(2, 3), "x": torch.ones(2, requires_grad=True)})
    assert (type(caught.value).__name__, str(caught.value)) == (error, text)


def test_where_as_a_method_and_dtype_of_out():
    c = A > 0
    assert A.where(c, A * 2).tolist() == [[1, 1, 1], [1, 1, 1]] and A.where(~c, 5).tolist() == [[5, 5, 5], [5, 5, 5]]
    assert torch.where(c, 1, A).dtype is torch.float32 and torch.where(c, A, 2).tolist() == A.tolist()
    with pytest.raises(RuntimeError, match=r"dtype Float does not match dtype of out parameter \(Double\)"):
        torch.ones(2, dtype=torch.float32, out=torch.empty(2, dtype=torch.float64))
