"""torch.linalg: the operators whose names begin with linalg_, without that prefix."""
from . import _C

__all__ = []
for _name in dir(_C._linalg) if hasattr(_C, "_linalg") else ():
    if _name.startswith("linalg_") and not _name.startswith("linalg__"):
        globals()[_name[len("linalg_"):]] = getattr(_C._linalg, _name)
        __all__.append(_name[len("linalg_"):])
