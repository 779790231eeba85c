"""The __torch_function__ protocol for Python code."""
from . import _core as core
from ._core import Tensor, _C

__all__ = ["has_torch_function", "has_torch_function_unary", "has_torch_function_variadic", "handle_torch_function", "is_tensor_like",
           "TorchFunctionMode", "BaseTorchFunctionMode"]

_has = getattr(_C, "_has_torch_function", None)


def has_torch_function(relevant_args):
    """Whether one of the arguments wants to handle the call itself."""
    return _has(relevant_args) if _has is not None else core.has_torch_function(relevant_args)


def has_torch_function_unary(arg):
    return has_torch_function((arg,))


def has_torch_function_variadic(*args):
    return has_torch_function(args)


def _overloaded(relevant_args):
    """Arguments with a handler, one per class, subclasses first."""
    found = []
    for a in relevant_args:
        kind = type(a)
        if not core.has_torch_function((a,)) or any(type(f) is kind for f in found):
            continue
        at = next((i for i, f in enumerate(found) if issubclass(kind, type(f))), len(found))
        found.insert(at, a)
    return found


def handle_torch_function(public_api, relevant_args, *args, **kwargs):
    """Let the arguments' classes handle the call of ``public_api``."""
    overloaded = _overloaded(relevant_args)
    types = tuple(type(a) for a in overloaded)
    for a in overloaded:
        result = type(a).__torch_function__(public_api, types, args, kwargs)
        if result is not NotImplemented:
            return result
    name = f"{public_api.__module__}.{public_api.__name__}"
    raise TypeError(f"no implementation found for '{name}' on types that implement __torch_function__: {[type(a) for a in overloaded]}")


def is_tensor_like(inp):
    """Whether ``inp`` is a tensor or of a class with __torch_function__."""
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")


class TorchFunctionMode:
    """While open, every call of the API goes through ``__torch_function__`` of this object first."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError

    def __enter__(self):
        _C._push_on_torch_function_stack(self)
        return self

    def __exit__(self, exc_type, exc_value, traceback):
        _C._pop_torch_function_stack()


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing; a base for others."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))
