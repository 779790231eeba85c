"""torch.linalg: the extension's linalg_* operators without their prefix."""
from ._core import _C, _linalg

LinAlgError = getattr(_C, "_LinAlgError", RuntimeError)

__all__ = []
for _name in dir(_linalg) if _linalg is not None else ():
    if _name.startswith("linalg_"):
        globals()[_name[7:]] = getattr(_linalg, _name)
        __all__.append(_name[7:])
