"""How tensors of subclasses, or with attributes, are pickled and copied. Files name these functions as torch._tensor.*."""
import copy

from . import _utils
from ._core import Tensor


def _rebuild_from_type_v2(func, new_type, args, state):
    """Build a tensor with ``func(*args)``, give it its class and its attributes."""
    made = func(*args)
    if type(made) is not new_type:
        made = made.as_subclass(new_type)
    if getattr(new_type, "__setstate__", Tensor.__setstate__ if hasattr(Tensor, "__setstate__") else None) is not getattr(
            Tensor, "__setstate__", None):
        made.__setstate__(state)
        return made
    return _utils._set_obj_state(made, state)


def _rebuild_from_type(func, type, args, dict):
    """The same in files of older versions."""
    return _rebuild_from_type_v2(func, type, args, dict)


def reduce_ex(tensor, proto):
    """``Tensor.__reduce_ex__``."""
    state = _utils._get_obj_state(tensor)
    function, args = _utils._reduce_tensor(tensor)
    if type(tensor) is Tensor and not state:
        return function, args
    return _rebuild_from_type_v2, (function, type(tensor), args, state)


def deepcopy(tensor, memo):
    """``Tensor.__deepcopy__``: a copy that shares nothing, views of one storage staying views of one storage."""
    if id(tensor) in memo:
        return memo[id(tensor)]
    if not tensor.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  If you were "
            "attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage, see "
            "https://github.com/pytorch/pytorch/pull/103001")
    from . import _core as core
    with core.no_grad():
        if tensor.device.type == "meta":
            made = core.empty_strided(tuple(tensor.size()), tensor.stride(), dtype=tensor.dtype, device="meta")
        else:
            storage = _copied_storage(tensor, memo)
            made = _utils._tensor_over(storage, tensor.dtype, tensor.storage_offset(), tuple(tensor.size()), tensor.stride())
        if type(tensor) is not Tensor:
            made = made.as_subclass(type(tensor))
        made.requires_grad = tensor.requires_grad
        if tensor.grad is not None:
            made.grad = copy.deepcopy(tensor.grad, memo)
    memo[id(tensor)] = made
    for name, value in (getattr(tensor, "__dict__", None) or {}).items():
        setattr(made, name, copy.deepcopy(value, memo))
    return made


def _copied_storage(tensor, memo):
    """The copy of the tensor's storage, made once per deepcopy."""
    storage = tensor.untyped_storage()
    copies = memo.setdefault("torch", {})
    key = storage.data_ptr() or id(storage)
    if key not in copies:
        copies[key] = storage.clone()
    return copies[key]
