"""The tensor layer: the one module through which the package reaches the C extension.

Everything else in the package says ``from ._core import Tensor`` or ``core.empty(...)``. Operators are looked up in the
extension's namespaces by PyTorch's names and kept here once found; an operator that the extension lacks is an AttributeError
that names it.
"""
from . import _C

_functions = getattr(_C, "_VariableFunctions", _C)
_nn = getattr(_C, "_nn", _functions)
_linalg = getattr(_C, "_linalg", None)
_special = getattr(_C, "_special", None)
_fft = getattr(_C, "_fft", None)

Tensor = _C.Tensor
Size = _C.Size
Generator = _C.Generator
dtype = _C.dtype
device = _C.device
layout = _C.layout
memory_format = _C.memory_format


def __getattr__(name):
    if name in ("no_grad", "enable_grad"):      # written over this module, so they come late
        from .autograd import grad_mode
        globals().update(no_grad=grad_mode.no_grad, enable_grad=grad_mode.enable_grad)
        return globals()[name]
    for space in (_functions, _C):
        value = getattr(space, name, None)
        if value is not None:
            globals()[name] = value
            return value
    raise AttributeError(f"module '{__name__.partition('.')[0]}' has no attribute '{name}'")


legacy_contiguous_format = _C.contiguous_format


def _has_compatible_shallow_copy_type(a, b):
    """Whether ``a.data = b`` is possible: every tensor here is strided, so it is."""
    return a.layout == b.layout


def broadcast_tensors(*tensors):
    from . import functional
    return functional.broadcast_tensors(*tensors)


def export(names, into, source=None):
    """Copy those of ``names`` that ``source`` has into the namespace ``into``. What the extension lacks stays absent."""
    source = _functions if source is None else source
    for name in names:
        value = getattr(source, name, None)
        if value is not None:
            into[name] = value


def has_torch_function(args):
    """Whether any of ``args`` is of a class that takes part in the ``__torch_function__`` protocol."""
    for a in args:
        kind = type(a)
        if kind is not Tensor and hasattr(kind, "__torch_function__") and kind.__torch_function__ not in _plain:
            return True
    return False


_plain = [getattr(Tensor, "__torch_function__", None), getattr(_C, "_disabled_torch_function_impl", None)]


def typename(obj, /):
    """``torch.typename``: 'torch.FloatTensor' for tensors, else the class path of ``obj`` (or of its class)."""
    if isinstance(obj, Tensor):
        return obj.type()
    module = getattr(obj, "__module__", None) or ""
    if hasattr(obj, "__qualname__"):
        name = obj.__qualname__
    elif hasattr(obj, "__name__"):
        name = obj.__name__
    else:
        module = type(obj).__module__ or ""
        name = type(obj).__qualname__
    return name if module in ("", "builtins") else f"{module}.{name}"
