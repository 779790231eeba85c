"""Rebuilding of tensors from files and pickles. Files name these functions as torch._utils.*."""
from collections import OrderedDict

from . import _core as core
from ._core import Tensor


def _tensor_over(storage, dtype, offset, size, stride):
    """A tensor over a storage that is typed or untyped."""
    untyped = getattr(storage, "_untyped_storage", storage)
    if hasattr(core._C, "_storage_as_tensor"):
        return core._C._storage_as_tensor(untyped, dtype, offset, size, stride)
    return core.empty(0, dtype=dtype, device=untyped.device).set_(untyped, offset, size, stride)


def _rebuild_tensor(storage, storage_offset, size, stride):
    """A tensor over a typed storage."""
    return _tensor_over(storage, storage.dtype, storage_offset, size, stride)


def _set_metadata(tensor, metadata):
    for name in metadata or ():
        if not metadata[name]:
            continue
        if name not in ("conj", "neg"):
            raise ValueError(f"unknown tensor metadata {name}")
        tensor = core._conj(tensor) if name == "conj" else core._neg_view(tensor)
    return tensor


def _rebuild_tensor_v2(storage, storage_offset, size, stride, requires_grad, backward_hooks, metadata=None):
    """What pickled tensors call."""
    tensor = _rebuild_tensor(storage, storage_offset, size, stride)
    tensor.requires_grad = requires_grad
    if metadata:
        tensor = _set_metadata(tensor, metadata)
    return tensor


def _rebuild_tensor_v3(storage, storage_offset, size, stride, requires_grad, backward_hooks, dtype, metadata=None):
    """As _rebuild_tensor_v2, for dtypes whose storages have no class of their own."""
    tensor = _tensor_over(storage, dtype, storage_offset, size, stride)
    tensor.requires_grad = requires_grad
    if metadata:
        tensor = _set_metadata(tensor, metadata)
    return tensor


def _rebuild_meta_tensor_no_storage(dtype, size, stride, requires_grad):
    return core.empty_strided(size, stride, dtype=dtype, device="meta", requires_grad=requires_grad)


def _rebuild_parameter(data, requires_grad, backward_hooks):
    """What pickled parameters call."""
    from .nn.parameter import Parameter
    return Parameter(data, requires_grad)


def _set_obj_state(obj, state):
    own, slots = state if isinstance(state, tuple) else (state, None)
    for values in (own, slots):
        for name, value in (values or {}).items():
            setattr(obj, name, value)
    return obj


def _get_obj_state(obj):
    """The attributes that a user set on ``obj``."""
    state = dict(getattr(obj, "__dict__", None) or {})
    slots = {}
    for kind in type(obj).__mro__:
        names = kind.__dict__.get("__slots__", ())
        for name in (names,) if isinstance(names, str) else names:
            if name not in ("__dict__", "__weakref__") and hasattr(obj, name):
                slots[name] = getattr(obj, name)
    return (state, slots) if slots else state


def _rebuild_parameter_with_state(data, requires_grad, backward_hooks, state):
    """What pickled parameters with attributes of their own call."""
    return _set_obj_state(_rebuild_parameter(data, requires_grad, backward_hooks), state)


def _reduce_tensor(tensor):
    """How a plain tensor is taken apart: (function, arguments)."""
    if tensor.device.type == "meta":
        return _rebuild_meta_tensor_no_storage, (tensor.dtype, tuple(tensor.size()), tensor.stride(), tensor.requires_grad)
    from .storage import TypedStorage, has_class
    metadata = {name: True for name in ("conj", "neg") if getattr(tensor, f"is_{name}")()}
    storage = TypedStorage(wrap_storage=tensor.untyped_storage(), dtype=tensor.dtype, _internal=True)
    common = (tensor.storage_offset(), tuple(tensor.size()), tensor.stride(), tensor.requires_grad, OrderedDict())
    if not has_class(tensor.dtype):
        return _rebuild_tensor_v3, (storage._untyped_storage, *common, tensor.dtype, *([metadata] if metadata else []))
    return _rebuild_tensor_v2, (storage, *common, *([metadata] if metadata else []))
