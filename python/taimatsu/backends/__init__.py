"""torch.backends: what PyTorch's backends are here. Switches of absent backends can be set and do nothing."""
import sys
import types

from .._core import _C


def _module(name, doc, **members):
    made = types.ModuleType(f"{__name__}.{name}", doc)
    made.__dict__.update(members)
    sys.modules[made.__name__] = made
    return made


def _no():
    return False


class _Flags:
    """Switches that are kept and have no effect."""

    def __init__(self, **values):
        self.__dict__.update(values)


cuda = _module("cuda", "No CUDA.", is_built=_no, matmul=_Flags(allow_tf32=False, fp32_precision="none",
                                                               allow_fp16_reduced_precision_reduction=True,
                                                               allow_bf16_reduced_precision_reduction=True),
               flash_sdp_enabled=lambda: True, mem_efficient_sdp_enabled=lambda: True, math_sdp_enabled=lambda: True,
               cudnn_sdp_enabled=lambda: True, enable_flash_sdp=lambda enabled: None, enable_mem_efficient_sdp=lambda enabled: None,
               enable_math_sdp=lambda enabled: None, enable_cudnn_sdp=lambda enabled: None)
cudnn = _module("cudnn", "No cuDNN.", enabled=True, benchmark=False, deterministic=False, allow_tf32=True, benchmark_limit=None,
                is_available=_no, version=lambda: None)
mps = _module("mps", "No MPS.", is_available=_no, is_built=_no, is_macos_or_newer=lambda major, minor: False)
mkl = _module("mkl", "No MKL: matrix products are our own.", is_available=_no)
mkldnn = _module("mkldnn", "No oneDNN.", is_available=_no, enabled=False)
openmp = _module("openmp", "No OpenMP: threads are our own.", is_available=_no)
mha = _module("mha", "The fused inference path of MultiheadAttention.", get_fastpath_enabled=_no, set_fastpath_enabled=lambda value: None)
opt_einsum = _module("opt_einsum", "einsum contracts from left to right.", is_available=_no, enabled=False, strategy=None)
cpu = _module("cpu", "The CPU.", get_cpu_capability=lambda: getattr(_C, "_get_cpu_capability", lambda: "DEFAULT")())
fp32_precision = "none"
