"""torch.special: the extension's special_* operators without their prefix."""
from ._core import _special

__all__ = []
for _name in dir(_special) if _special is not None else ():
    if _name.startswith("special_"):
        globals()[_name[8:]] = getattr(_special, _name)
        __all__.append(_name[8:])
