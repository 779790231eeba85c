"""The Tensor object: construction, attributes, operators, conversion to Python values."""
import copy
import math
import pickle

import pytest

import taimatsu as torch


def test_from_values_infers_dtype_and_shape():
    assert torch.tensor([[1, 2], [3, 4]]).dtype is torch.int64
    assert torch.tensor([1, 2.5]).dtype is torch.float32
    assert torch.tensor([True, False]).dtype is torch.bool
    assert torch.tensor([True, 2]).dtype is torch.int64
    assert torch.tensor([1 + 2j]).dtype is torch.complex64
    assert torch.tensor([]).dtype is torch.float32
    assert torch.tensor([[], []]).shape == (2, 0)
    assert torch.tensor(3).shape == ()
    assert torch.tensor(range(3)).tolist() == [0, 1, 2]


@pytest.mark.parametrize("value, dtype, expected", [
    (1.5, "int64", 1), (-1, "uint8", 255), (True, "float32", 1.0), (70000.0, "float16", math.inf), (1e300, "float32", math.inf), (3, "bool", True)])
def test_stored_value(value, dtype, expected):
    assert torch.tensor(value, dtype=getattr(torch, dtype)).item() == expected


@pytest.mark.parametrize("value, kwargs, error, text", [
    ([[1, 2], [3]], {}, ValueError, "expected sequence of length 2 at dim 1 (got 1)"),
    ("abc", {}, TypeError, "new(): invalid data type 'str'"),
    ([1, "a"], {}, TypeError, "new(): invalid data type 'str'"),
    ({}, {}, RuntimeError, "Could not infer dtype of dict"),
    ([None], {}, RuntimeError, "Could not infer dtype of NoneType"),
    (2**63, {}, ValueError, "Overflow when unpacking long long"),
    (300, {"dtype": torch.uint8}, RuntimeError, "value cannot be converted to type uint8 without overflow"),
    (math.inf, {"dtype": torch.int64}, RuntimeError, "value cannot be converted to type int64 without overflow"),
    ([[1, 2], 3], {}, TypeError, "not a sequence")])
def test_bad_values(value, kwargs, error, text):
    with pytest.raises(error) as caught:
        torch.tensor(value, **kwargs)
    assert str(caught.value) == text


def test_attributes():
    x = torch.ones(2, 3)
    assert x.shape == x.size() == torch.Size([2, 3])
    assert (x.ndim, x.dim(), x.numel(), x.element_size(), x.nbytes, x.itemsize) == (2, 2, 6, 4, 24, 4)
    assert x.stride() == (3, 1) and x.stride(0) == 3 and x.size(-1) == 3
    assert x.dtype is torch.float32 and x.device == torch.device("cpu") and x.layout is torch.strided
    assert x.is_contiguous() and not x.T.is_contiguous() and x.T.shape == (3, 2) and x.mT.stride() == (1, 3)
    assert x[1].storage_offset() == 3 and x[1].data_ptr() == x.data_ptr() + 12
    assert x.is_cpu and not x.is_cuda and x.is_leaf and not x.requires_grad and x.grad is None and x.grad_fn is None
    assert x.untyped_storage().nbytes() == 24 and len(x) == 2
    with pytest.raises(IndexError, match=r"Dimension out of range \(expected to be in range of \[-2, 1\], but got 2\)"):
        x.size(2)


def test_size_stays_a_size():
    s = torch.ones(2, 3, 4).shape
    assert repr(s) == "torch.Size([2, 3, 4])" and s.numel() == 24
    for other in (s[1:], s + (5,), (5,) + s, s * 2):
        assert type(other) is torch.Size
    with pytest.raises(TypeError, match=r"torch.Size\(\) takes an iterable of 'int' \(item 1 is 'str'\)"):
        torch.Size([1, "a"])


def test_python_numbers():
    assert float(torch.tensor([2.5])) == 2.5 and int(torch.tensor(3)) == 3 and [10, 20][torch.tensor(1)] == 20
    assert bool(torch.tensor([1])) and not torch.tensor(0.0)
    assert complex(torch.tensor(2.0)) == 2 + 0j
    assert torch.tensor([[1.5]]).item() == 1.5
    for make, error in ((lambda: bool(torch.ones(2)), RuntimeError), (lambda: float(torch.ones(2)), ValueError), (lambda: torch.ones(2).item(), RuntimeError),
                        (lambda: range(torch.tensor(1.5)), TypeError), (lambda: len(torch.tensor(1)), TypeError), (lambda: list(torch.tensor(1)), TypeError)):
        with pytest.raises(error):
            make()


def test_operators():
    x = torch.tensor([1.0, 2.0, 4.0])
    assert (x + 1).tolist() == (1 + x).tolist() == [2, 3, 5]
    assert (2 - x).tolist() == [1, 0, -2] and (8 / x).tolist() == [8, 4, 2] and (2 ** x).tolist() == [2, 4, 16]
    assert (x // 3).tolist() == [0, 0, 1] and (x % 3).tolist() == [1, 2, 1] and (9 // x).tolist() == [9, 4, 2] and (9 % x).tolist() == [0, 1, 1]
    assert (-x).tolist() == [-1, -2, -4] and abs(-x).tolist() == [1, 2, 4] and (x @ x).item() == 21
    assert (x == 2).tolist() == [False, True, False] and (x < torch.tensor([2.0])).tolist() == [True, False, False]
    i = torch.tensor([5, 6])
    assert (i & 4).tolist() == [4, 4] and (i | 1).tolist() == [5, 7] and (i ^ 1).tolist() == [4, 7] and (~i).tolist() == [-6, -7]
    assert (x == "a") is False and (x != None) is True                       # noqa: E711
    assert 2.0 in x and 3.0 not in x
    y = x
    y += 1
    y *= 2
    assert y is x and x.tolist() == [4, 6, 10]
    with pytest.raises(TypeError) as caught:
        x + "a"
    assert str(caught.value) == "unsupported operand type(s) for +: 'Tensor' and 'str'"


def test_to_gives_the_same_object_when_nothing_changes():
    x = torch.ones(2)
    assert x.to("cpu") is x and x.to(torch.float32) is x and x.float() is x and x.to(x) is x and x.contiguous() is x
    assert x.double().dtype is torch.float64 and x.to(torch.int8).dtype is torch.int8 and x.to(dtype=torch.half).dtype is torch.float16
    assert x.to(torch.float32, copy=True) is not x
    assert x.type() == "torch.FloatTensor" and x.type(torch.int64).type() == "torch.LongTensor" and x.type("torch.DoubleTensor").dtype is torch.float64
    with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
        x.cuda()


def test_legacy_constructors():
    assert torch.Tensor(2, 3).shape == (2, 3) and torch.Tensor([1, 2]).tolist() == [1, 2] and torch.Tensor().shape == (0,)
    assert torch.LongTensor([1, 2]).dtype is torch.int64 and isinstance(torch.ones(1), torch.FloatTensor) and not isinstance(torch.ones(1), torch.LongTensor)


def test_singletons_pickle_and_print():
    for value in (torch.float32, torch.device("cpu"), torch.device("cuda", 1), torch.Size([1, 2]), torch.strided, torch.channels_last):
        again = pickle.loads(pickle.dumps(value))
        assert again == value and repr(again) == repr(value)
        assert copy.deepcopy(value) == value
    assert pickle.loads(pickle.dumps(torch.float32)) is torch.float32
    assert repr(torch.float32) == "torch.float32" and torch.half is torch.float16 and torch.long is torch.int64
    assert repr(torch.device("cuda:1")) == "device(type='cuda', index=1)" and str(torch.device("cpu")) == "cpu"
    assert torch.device("cpu") == torch.device(type="cpu") and torch.device("cpu") != "cpu" and len({torch.device("cpu"), torch.device("cpu")}) == 1
    g = torch.Generator().manual_seed(3)
    h = pickle.loads(pickle.dumps(g))
    assert torch.rand(2, generator=g).tolist() == torch.rand(2, generator=h).tolist()


def test_finfo_iinfo():
    assert torch.finfo(torch.float32).eps == 2**-23 and torch.finfo().bits == 32 and torch.finfo(torch.bfloat16).max == 3.3895313892515355e38
    assert (torch.iinfo(torch.int8).min, torch.iinfo(torch.uint8).max, torch.iinfo(torch.int64).max) == (-128, 255, 2**63 - 1)
    assert repr(torch.iinfo(torch.int8)) == "iinfo(min=-128, max=127, dtype=int8)"
    with pytest.raises(TypeError):
        torch.iinfo(torch.float32)


def test_named_results():
    r = torch.tensor([[1.0, 3.0, 2.0]]).max(1)
    assert type(r).__name__ == "max" and r.values.tolist() == [3.0] and r.indices.tolist() == [1]
    values, indices = r
    assert values is r[0] and indices is r[1]
    assert repr(r) == "torch.return_types.max(\nvalues=tensor([3.]),\nindices=tensor([1]))"


def test_default_device_reaches_factories():
    with torch.device("meta"):
        assert torch.ones(2).is_meta and torch.tensor([1, 2]).is_meta and torch.rand(2, device="cpu").is_cpu
    assert torch.ones(2).is_cpu


def test_deepcopy_and_pickle():
    x = torch.randn(3, requires_grad=True)
    x.tag = "kept"
    for again in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert torch.equal(again, x) and again.requires_grad and again.tag == "kept" and again.data_ptr() != x.data_ptr()
    with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
        copy.deepcopy(x * 2)
    p = torch.nn.Parameter(torch.ones(2))
    assert type(copy.deepcopy(p)) is torch.nn.Parameter
