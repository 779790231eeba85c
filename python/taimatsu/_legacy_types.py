"""torch.FloatTensor and the other class names per dtype: constructors, and answers for isinstance."""
from . import _core as core
from ._core import Tensor, _C

_NAMES = {"Float": "float32", "Double": "float64", "Half": "float16", "BFloat16": "bfloat16", "Long": "int64", "Int": "int32", "Short": "int16",
          "Char": "int8", "Byte": "uint8", "Bool": "bool"}


class _TypeOfDtype(type):
    """FloatTensor(...) makes a plain Tensor; isinstance asks for the dtype."""

    def __call__(cls, *args, **kwargs):
        return _C._legacy_new(cls.dtype, args, kwargs)

    def __instancecheck__(cls, instance):
        return isinstance(instance, Tensor) and instance.dtype is cls.dtype and not instance.is_meta


def __getattr__(name):
    kind = name.removesuffix("Tensor")
    if kind == name or kind not in _NAMES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    made = _TypeOfDtype(name, (), {"dtype": getattr(core, _NAMES[kind]), "is_cuda": False, "is_sparse": False, "__module__": __name__.partition(".")[0]})
    globals()[name] = made
    return made
