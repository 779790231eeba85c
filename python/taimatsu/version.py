"""Versions: PyTorch's, whose behaviour this package has, with our own as the local part."""
from .torch_version import TorchVersion as _TorchVersion

taimatsu_version = "0.1.0"
__version__ = _TorchVersion("2.13.0+taimatsu")
debug = False
cuda = None
git_version = "unknown"
hip = None
rocm = None
xpu = None
