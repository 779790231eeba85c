"""Methods of Tensor that are written in Python. Importing this module installs them on the class."""
from ._core import Tensor, _C


def _convert(result, cls):
    """Results of a subclass's operators are of the subclass."""
    if cls is Tensor:
        return result
    if isinstance(result, Tensor) and not isinstance(result, cls):
        return result.as_subclass(cls)
    if isinstance(result, (tuple, list)):
        return type(result)(_convert(r, cls) for r in result)
    return result


_unwrapped = {Tensor._base.__get__, Tensor.grad.__get__, Tensor._grad.__get__}


def __torch_function__(cls, func, types, args=(), kwargs=None):
    """Run ``func`` with the protocol off and give its results this class."""
    if not all(issubclass(cls, t) for t in types):
        return NotImplemented
    with _C.DisableTorchFunctionSubclass():
        result = func(*args, **(kwargs or {}))
        return result if func in _unwrapped else _convert(result, cls)


def __repr__(self, *, tensor_contents=None):
    if type(self) is not Tensor and _C._has_torch_function_unary(self):
        return _C._handle_torch_function(Tensor.__repr__, (self,), (self,), {"tensor_contents": tensor_contents})
    from . import _tensor_str
    return _tensor_str._str(self, tensor_contents=tensor_contents)


def __format__(self, format_spec):
    if self.dim() == 0 and not self.is_meta and type(self) is Tensor:
        return self.item().__format__(format_spec)
    return object.__format__(self, format_spec)


def __deepcopy__(self, memo):
    from . import _tensor
    return _tensor.deepcopy(self, memo)


def __reduce_ex__(self, proto):
    from . import _tensor
    return _tensor.reduce_ex(self, proto)


def __setstate__(self, state):
    if not self.is_leaf:
        raise RuntimeError("__setstate__ can be only called on leaf Tensors")
    if isinstance(state, dict):
        self.__dict__.update(state)
        return
    self.set_(*state[:4] if len(state) >= 4 else state)
    if len(state) == 5:
        self.requires_grad_(state[4])


def __complex__(self):
    return complex(self.item())


def __rdiv__(self, other):
    return self.reciprocal() * other


def __reversed__(self):
    return self if self.dim() == 0 else self.flip(0)


def __dir__(self):
    names = set(dir(type(self))) | set(self.__dict__)
    return sorted(names - {"volatile", "__cuda_array_interface__"})


def storage(self):
    """The tensor's storage as elements of its dtype."""
    from .storage import TypedStorage
    return TypedStorage(wrap_storage=self.untyped_storage(), dtype=self.dtype, _internal=True)


def storage_type(self):
    from . import storage as module
    return module.by_name(module.class_name(self.dtype))


def dim_order(self, *, ambiguity_check=False):
    """The dimensions from the outermost in memory to the innermost."""
    return tuple(sorted(range(self.dim()), key=lambda d: (-self.stride(d), d)))


def module_load(self, other, assign=False):
    """What Module.load_state_dict does with a tensor for this parameter or buffer."""
    return other.detach() if assign else self.detach().copy_(other)


def _through_functional(name):
    """A method that is the function of torch.functional of this name."""
    def method(self, *args, **kwargs):
        from . import functional
        return getattr(functional, name)(self, *args, **kwargs)
    method.__name__ = method.__qualname__ = name
    return method


def sum_to_size(self, *size):
    """The sum over the dimensions that were broadcast from ``size``."""
    size = tuple(size[0]) if len(size) == 1 and isinstance(size[0], (tuple, list)) else size
    lead = self.dim() - len(size)
    if lead < 0 or any(n not in (1, m) for n, m in zip(size, self.shape[lead:])):
        raise RuntimeError(f"size {{{list(size)}}} is not expandable to size {{{list(self.shape)}}}.")
    dims = [*range(lead), *(lead + i for i, n in enumerate(size) if n == 1 and self.shape[lead + i] != 1)]
    out = self.sum(dims, keepdim=True) if dims else self
    return out.reshape(size) if lead else out


def share_memory_(self):
    raise RuntimeError("this build cannot move a tensor's memory into memory shared between processes")


def _install():
    for name in ("__repr__", "__format__", "__deepcopy__", "__reduce_ex__", "__setstate__", "__complex__", "__rdiv__", "__reversed__", "__dir__", "storage",
                 "storage_type", "dim_order", "module_load", "sum_to_size", "share_memory_"):
        setattr(Tensor, name, globals()[name])
    for name in ("norm", "unique", "unique_consecutive", "stft"):
        setattr(Tensor, name, _through_functional(name))
    Tensor.__torch_function__ = classmethod(__torch_function__)
    Tensor.__array_priority__ = 1000


_install()
