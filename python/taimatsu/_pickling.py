"""Pickling with PyTorch's class names, whatever name this package was imported under.

Files always say ``torch.nn.modules.linear.Linear``; reading maps such names to this package and never imports another torch.
"""
import pickle

from . import _core as core
from ._core import Tensor

_ROOT = __name__.partition(".")[0]      # "taimatsu", or "torch" under the alias


def outward(module):
    """Our module name as files say it."""
    if module == _ROOT or module.startswith(_ROOT + "."):
        return "torch" + module[len(_ROOT):]
    return module


def inward(module):
    """A module name of a file as we know it."""
    for name in ("torch", "taimatsu"):
        if module == name or module.startswith(name + "."):
            module = _ROOT + module[len(name):]
            return _ROOT + "._tensor" if module == _ROOT + ".tensor" else module
    return module


def _dtype_name(dtype):
    return str(dtype).rpartition(".")[2]


class PicklerMixin:
    """What is added to pickle's Python pickler: our names, and tensors taken apart the way files hold them."""

    def reducer_override(self, obj):
        if isinstance(obj, Tensor):
            return self._reduce_tensor(obj)
        kind = type(obj)
        if kind is core.dtype:
            return _Global("torch", _dtype_name(obj))
        if kind is core.device:
            return core.device, ((obj.type,) if obj.index is None else (obj.type, obj.index))
        if kind is core.Size:
            return core.Size, (tuple(obj),)
        if kind is core.layout:
            from .serialization import _get_layout
            return _get_layout, (str(obj),)
        if kind is core.memory_format:
            return _Global("torch", str(obj).rpartition(".")[2])
        return NotImplemented

    @staticmethod
    def _reduce_tensor(obj):
        kind = type(obj)
        if "__reduce_ex__" in kind.__dict__ and kind is not Tensor:
            return obj.__reduce_ex__(2)
        for base in kind.__mro__:
            if base is Tensor:
                break
            if "__reduce_ex__" in base.__dict__:
                return obj.__reduce_ex__(2)
        from ._tensor import reduce_ex
        return reduce_ex(obj, 2)

    def save(self, obj, save_persistent_id=True):
        if type(obj) is _Global:
            return self._write_global(obj.module, obj.name)
        pid = self.persistent_id(obj) if save_persistent_id else None
        if pid is None and self.memo.get(id(obj)) is None:
            reduced = self.reducer_override(obj)
            if type(reduced) is _Global:
                self._write_global(reduced.module, reduced.name)
                self.memoize(obj)
                return None
        return super().save(obj, save_persistent_id)

    def save_global(self, obj, name=None):
        name = name or getattr(obj, "__qualname__", None) or obj.__name__
        module = pickle.whichmodule(obj, name)
        outer = outward(module)
        if outer == module or "." in name:
            return super().save_global(obj, name)
        self._write_global(outer, name)
        self.memoize(obj)
        return None

    def _write_global(self, module, name):
        if self.proto >= 4:
            super().save(module)
            super().save(name)
            self.write(pickle.STACK_GLOBAL)
        else:
            self.write(pickle.GLOBAL + module.encode() + b"\n" + name.encode() + b"\n")

    # Classes and functions go through save_global above, not through pickle's own table.
    def save_type(self, obj):
        if obj is type(None) or obj is type(NotImplemented) or obj is type(...):
            return pickle._Pickler.save_type(self, obj)
        return self.save_global(obj)


class _Global:
    __slots__ = ("module", "name")

    def __init__(self, module, name):
        self.module, self.name = module, name


def make_pickler(pickle_module):
    """A pickler class that writes PyTorch's names; pickle modules other than the standard one keep their own pickler."""
    if pickle_module is not pickle:
        return pickle_module.Pickler

    class Pickler(PicklerMixin, pickle._Pickler):
        dispatch = dict(pickle._Pickler.dispatch)

    import types
    Pickler.dispatch[type] = PicklerMixin.save_type
    Pickler.dispatch[types.FunctionType] = PicklerMixin.save_global
    return Pickler


def make_unpickler(pickle_module):
    """An unpickler class that reads PyTorch's names."""

    class Unpickler(pickle_module.Unpickler):
        def find_class(self, module, name):
            if "Storage" in name:
                from .storage import by_name
                try:
                    return by_name(name)
                except KeyError:
                    pass
            return super().find_class(inward(module), name)

    return Unpickler
