"""torch.fft: the extension's fft_* operators without their prefix."""
from ._core import _fft

__all__ = []
for _name in dir(_fft) if _fft is not None else ():
    if _name.startswith("fft_"):
        globals()[_name[4:]] = getattr(_fft, _name)
        __all__.append(_name[4:])
