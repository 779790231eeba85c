"""numpy, DLPack and the buffer protocol, in both directions."""
import gc

import pytest

import taimatsu as torch

np = pytest.importorskip("numpy", reason="skipped: no numpy")

NAMES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128", "uint16", "uint32", "uint64"]


@pytest.mark.parametrize("name", NAMES)
def test_round_trip_shares_memory(name):
    a = np.arange(6).reshape(2, 3).astype(name)
    t = torch.from_numpy(a)
    assert t.dtype is getattr(torch, name) and t.tolist() == a.tolist() and t.data_ptr() == a.ctypes.data
    back = t.numpy()
    assert back.dtype == a.dtype and back.ctypes.data == a.ctypes.data and np.array_equal(back, a)
    assert torch.from_dlpack(a).data_ptr() == a.ctypes.data
    assert np.from_dlpack(t).ctypes.data == a.ctypes.data
    assert np.asarray(t).ctypes.data == a.ctypes.data


def test_strides_survive():
    a = np.arange(24.0).reshape(4, 6)[::2, 1::2]
    t = torch.from_numpy(a)
    assert t.stride() == (12, 2) and t.tolist() == a.tolist() and t.T.numpy().tolist() == a.T.tolist()


def test_memory_lives_as_long_as_either_side():
    t = torch.from_numpy(np.full(1000, 7.0))
    view = torch.full((1000,), 3.0).numpy()
    gc.collect()
    assert t.sum().item() == 7000 and view.sum() == 3000


@pytest.mark.parametrize("array, error, text", [
    (3, TypeError, "expected np.ndarray (got int)"), (np.array(["a"], dtype=object), TypeError, "can't convert np.ndarray of type numpy.object_."),
    (np.arange(3)[::-1], ValueError, "At least one stride in the given numpy array is negative"),
    (np.arange(3).astype(">i4"), ValueError, "given numpy array has byte order different from the native byte order.")])
def test_refused_arrays(array, error, text):
    with pytest.raises(error) as caught:
        torch.from_numpy(array)
    assert str(caught.value).startswith(text)


def test_refused_tensors():
    with pytest.raises(RuntimeError, match=r"Can't call numpy\(\) on Tensor that requires grad. Use tensor.detach\(\).numpy\(\) instead."):
        torch.ones(2, requires_grad=True).numpy()
    with pytest.raises(TypeError, match="Got unsupported ScalarType BFloat16"):
        torch.ones(2, dtype=torch.bfloat16).numpy()
    with pytest.raises(BufferError):
        torch.ones(2, requires_grad=True).__dlpack__()
    assert torch.ones(2, requires_grad=True).numpy(force=True).tolist() == [1, 1]


def test_numpy_values_as_arguments():
    x = torch.ones(3)
    assert (x * np.float32(2)).tolist() == (np.float32(2) * x).tolist() == [2, 2, 2]
    assert x[np.int64(1)].item() == 1 and x[np.array([True, False, True])].shape == (2,) and torch.zeros(np.int64(2)).shape == (2,)
    assert torch.tensor(np.float64(2)).dtype is torch.float64 and torch.tensor(np.arange(3, dtype=np.int32)).dtype is torch.int32
    assert torch.as_tensor(np.ones(2, np.float32)).dtype is torch.float32 and torch.tensor([np.arange(2), np.arange(2)]).shape == (2, 2)


def test_read_only_arrays_warn():
    a = np.ones(2)
    a.flags.writeable = False
    with pytest.warns(UserWarning, match="not writable"):
        torch.from_numpy(a)


def test_capsules():
    x = torch.ones(2, 3)
    assert "dltensor_versioned" in repr(x.__dlpack__(max_version=(1, 0))) and "dltensor_versioned" not in repr(x.__dlpack__())
    capsule = x.__dlpack__()
    assert torch.from_dlpack(capsule).data_ptr() == x.data_ptr()
    with pytest.raises(RuntimeError, match="can be consumed only once"):
        torch.from_dlpack(capsule)
    assert tuple(x.__dlpack_device__()) == (1, 0)
    assert torch.from_dlpack(torch.ones(2, dtype=torch.bfloat16)).dtype is torch.bfloat16
    copied = torch.from_dlpack(x, copy=True)
    assert copied.data_ptr() != x.data_ptr() and torch.equal(copied, x)


def test_buffer_protocol():
    view = memoryview(torch.arange(6, dtype=torch.int32).reshape(2, 3))
    assert view.shape == (2, 3) and view.format == "i" and view.tolist() == [[0, 1, 2], [3, 4, 5]]
    view[0, 1] = 9
    data = bytearray(8)
    t = torch.frombuffer(data, dtype=torch.float32)
    t[0] = 1
    assert data[:4] == b"\x00\x00\x80?"
    assert torch.frombuffer(bytearray(16), dtype=torch.int16, count=2, offset=4).shape == (2,)
    with pytest.raises(ValueError, match=r"buffer length \(7 bytes\) after offset \(0 bytes\) must be a multiple of element size \(4\)"):
        torch.frombuffer(bytearray(7), dtype=torch.float32)
    with pytest.raises(ValueError, match=r"offset \(9 bytes\) must be non-negative and no greater than buffer length \(8 bytes\) minus 1"):
        torch.frombuffer(bytearray(8), dtype=torch.float32, offset=9)
