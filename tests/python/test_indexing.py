"""x[...] and x[...] = v against plain Python."""
import pytest

import taimatsu as torch

A = torch.arange(6.0).reshape(2, 3)
B = torch.arange(24).reshape(2, 3, 4)
T = torch.tensor


@pytest.mark.parametrize("index, expected", [
    (0, [0, 1, 2]), (-1, [3, 4, 5]), ((1, 2), 5), ((slice(None), 1), [1, 4]), (slice(1, None), [[3, 4, 5]]), (slice(-10, 1), [[0, 1, 2]]), (slice(5, None), []),
    ((slice(None), slice(0, 3, 2)), [[0, 2], [3, 5]]), ((..., 0), [0, 3]), ((0, ...), [0, 1, 2]), (None, [[[0, 1, 2], [3, 4, 5]]]), ((0, None), [[0, 1, 2]]),
    (True, [[[0, 1, 2], [3, 4, 5]]]), (False, []), (T(1), [3, 4, 5]), (T([0, 1, 1]), [[0, 1, 2], [3, 4, 5], [3, 4, 5]]), ([1, 0], [[3, 4, 5], [0, 1, 2]]),
    ((slice(None), T([2, 0])), [[2, 0], [5, 3]]), ((T([0, 1]), T([1, 2])), [1, 5]), ((T([[0], [1]]), T([[0, 2]])), [[0, 2], [3, 5]]), ([True, False], [[0, 1, 2]]),
    (T([True, False]), [[0, 1, 2]]), (T([[True, False, True], [False, True, False]]), [0, 2, 4]), (([0, 1], [1, 2]), [1, 5]), ((T([True, False]), 0), [0]),
    ((T([0]), slice(None), None), [[[0], [1], [2]]]), ([], []), (T([1], dtype=torch.int32), [[3, 4, 5]]), (range(1), [[0, 1, 2]]), ((), [[0, 1, 2], [3, 4, 5]])])
def test_read(index, expected):
    assert A[index].tolist() == expected


def test_shapes_of_mixed_indices():
    assert B[0, :, T([0, 1])].shape == (3, 2) and B[:, T([0, 1]), T([1, 2])].shape == (2, 2)
    assert B[T([0, 1]), :, T([1, 2])].shape == (2, 3) and B[..., T([0, 1])].shape == (2, 3, 2) and B[False].shape == (0, 2, 3, 4)


def test_views_share_memory_and_tensors_copy():
    x = torch.zeros(2, 3)
    x[0].fill_(1)
    x[:, 1:].add_(1)
    x[T([0])].fill_(9)
    assert x.tolist() == [[1, 2, 2], [0, 1, 1]]
    assert x[...] is not x and x[...].data_ptr() == x.data_ptr()


@pytest.mark.parametrize("index, value, expected", [
    (0, 5, [[5, 5, 5], [3, 4, 5]]), ((1, 1), 9.0, [[0, 1, 2], [3, 9, 5]]), (slice(0, 1), T([7.0, 8.0, 9.0]), [[7, 8, 9], [3, 4, 5]]),
    (T([True, False]), -1, [[-1, -1, -1], [3, 4, 5]]), ((slice(None), T([0, 2])), 0, [[0, 1, 0], [0, 4, 0]]), ((T([0, 1]), T([1, 2])), T([10.0, 20.0]), [[0, 10, 2], [3, 4, 20]]),
    (None, 3, [[3, 3, 3], [3, 3, 3]]), (True, 3, [[3, 3, 3], [3, 3, 3]]), (False, 3, [[0, 1, 2], [3, 4, 5]]), (..., T(2.0), [[2, 2, 2], [2, 2, 2]]),
    (slice(0, 2), torch.ones(1, 1, 3), [[1, 1, 1], [1, 1, 1]]), (0, T([1, 2, 3]), [[1, 2, 3], [3, 4, 5]])])
def test_write(index, value, expected):
    x = A.clone()
    x[index] = value
    assert x.tolist() == expected


@pytest.mark.parametrize("index, error, text", [
    (5, IndexError, "index 5 is out of bounds for dimension 0 with size 2"), ((0, 7), IndexError, "index 7 is out of bounds for dimension 1 with size 3"),
    ((0, 0, 0), IndexError, "too many indices for tensor of dimension 2"), (T([5]), IndexError, "index 5 is out of bounds for dimension 0 with size 2"),
    (T([1.0]), IndexError, "tensors used as indices must be long, int, byte or bool tensors"),
    (1.0, IndexError, "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got float)"),
    ({}, IndexError, "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got dict)"),
    (T([True, False, True]), IndexError, "The shape of the mask [3] at index 0 does not match the shape of the indexed tensor [2, 3] at index 0"),
    ((T([0, 1]), T([0, 1, 2])), IndexError, "shape mismatch: indexing tensors could not be broadcast together with shapes [2], [3]"),
    (slice(None, None, -1), ValueError, "step must be greater than zero"), (slice(None, None, 0), ValueError, "slice step cannot be zero"),
    ("a", TypeError, "new(): invalid data type 'str'"), (2**70, ValueError, "Overflow when unpacking long long")])
def test_read_errors(index, error, text):
    with pytest.raises(error) as caught:
        A[index]
    assert str(caught.value) == text


@pytest.mark.parametrize("index, value, error, text", [
    (0, "a", TypeError, "can't assign a str to a torch.FloatTensor"), (0, [1, 2, 3], TypeError, "can't assign a list to a torch.FloatTensor"),
    (0, torch.ones(4), RuntimeError, "The expanded size of the tensor (3) must match the existing size (4) at non-singleton dimension 0.  Target sizes: [3].  Tensor sizes: [4]"),
    (0, 1j, RuntimeError, "value cannot be converted to type float without overflow"), (5, 1, IndexError, "index 5 is out of bounds for dimension 0 with size 2")])
def test_write_errors_change_nothing(index, value, error, text):
    x = A.clone()
    with pytest.raises(error) as caught:
        x[index] = value
    assert str(caught.value) == text and torch.equal(x, A)


def test_zero_dim_and_deletion():
    with pytest.raises(IndexError, match="invalid index of a 0-dim tensor"):
        torch.tensor(1.0)[0]
    with pytest.raises(TypeError, match="Tensor does not support deleting items"):
        del A[0]
    assert torch.tensor(5)[None].tolist() == [5] and torch.tensor(5)[...].item() == 5


def test_gradients():
    x = torch.ones(2, 3, requires_grad=True)
    for index, name in ((0, "SelectBackward0"), (slice(0, 1), "SliceBackward0"), (None, "UnsqueezeBackward0"), (..., "AliasBackward0"), (T([0, 0]), "IndexBackward0")):
        assert type(x[index].grad_fn).__name__ == name
    (x[T([0, 0])].sum() + x[1, 2]).backward()
    assert x.grad.tolist() == [[2, 2, 2], [0, 0, 1]]
    y = x * 1
    y[0] = 5
    y.sum().backward()
    assert x.grad.tolist() == [[2, 2, 2], [1, 1, 2]]


def test_iteration():
    assert [row.tolist() for row in A] == [[0, 1, 2], [3, 4, 5]]
    assert [row.tolist() for row in reversed(A)] == [[3, 4, 5], [0, 1, 2]]
