"""Global settings: default dtype and device, determinism, matmul precision."""
import warnings

from . import _core as core
from ._core import Tensor, _C

_deterministic = [False, False]     # on, warn only
_precision = "highest"
_warn_always = False


def set_default_dtype(d, /):
    """The floating dtype of new tensors that are given none."""
    _C._set_default_dtype(d)


def get_default_device():
    """The device of new tensors that are given none."""
    return _C._get_default_device() if hasattr(_C, "_get_default_device") else core.device("cpu")


def set_default_device(device):
    """The device of new tensors that are given none; None is the CPU."""
    device = core.device("cpu" if device is None else device)
    if hasattr(_C, "_set_default_device"):
        _C._set_default_device(device)
    elif device.type != "cpu":
        raise RuntimeError(f"the default device can only be cpu, got {device}")


def set_default_tensor_type(t, /):
    """Deprecated form of set_default_dtype: a tensor type or its name."""
    warnings.warn("torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use torch.set_default_dtype() and "
                  "torch.set_default_device() as alternatives.", stacklevel=2)
    name = t if isinstance(t, str) else t.__name__
    names = {"FloatTensor": "float32", "DoubleTensor": "float64", "HalfTensor": "float16", "BFloat16Tensor": "bfloat16"}
    short = name.rpartition(".")[2]
    if short not in names:
        raise TypeError("invalid type object: only floating-point types are supported as the default type")
    set_default_dtype(getattr(core, names[short]))


def use_deterministic_algorithms(mode, *, warn_only=False):
    """Ask for deterministic algorithms. The CPU's are always deterministic, whatever the number of threads."""
    _deterministic[:] = [bool(mode), bool(warn_only)]


def are_deterministic_algorithms_enabled():
    return _deterministic[0]


def is_deterministic_algorithms_warn_only_enabled():
    return _deterministic[1]


_MODES = {"default": 0, "warn": 1, "error": 2}


def set_deterministic_debug_mode(debug_mode):
    """0 "default", 1 "warn", 2 "error"."""
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if isinstance(debug_mode, str):
        if debug_mode not in _MODES:
            raise RuntimeError("invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got " + debug_mode)
        debug_mode = _MODES[debug_mode]
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}")
    use_deterministic_algorithms(debug_mode > 0, warn_only=debug_mode == 1)


def get_deterministic_debug_mode():
    return 0 if not _deterministic[0] else 1 if _deterministic[1] else 2


def set_float32_matmul_precision(precision):
    """"highest", "high" or "medium": how exact float32 products must be. The CPU's are always exact."""
    global _precision
    if precision not in ("highest", "high", "medium"):
        warnings.warn(f"{precision} is not one of 'highest', 'high', or 'medium'; the current setFloat32MatmulPrecision call has no effect.",
                      stacklevel=2)
        return
    _precision = precision


def get_float32_matmul_precision():
    return _precision


def set_warn_always(b, /):
    """Whether warnings that are usually given once are given every time."""
    global _warn_always
    _warn_always = bool(b)


def is_warn_always_enabled():
    return _warn_always


def is_tensor(obj, /):
    """Whether ``obj`` is a tensor."""
    return isinstance(obj, Tensor)


def get_device_module(device=None):
    """The module of a device type, as torch.cpu."""
    import importlib
    kind = core.device("cpu" if device is None else device).type
    try:
        return importlib.import_module(f"{__name__.partition('.')[0]}.{kind}")
    except ModuleNotFoundError:
        raise RuntimeError(f"Invalid device '{kind}', missing corresponding torch.{kind} module, device module not found.") from None


def compiled_with_cxx11_abi():
    return True
