"""Taimatsu: a deep-learning framework with PyTorch's API, written in C.

Names are gathered here; everything that is not needed at once (nn, optim, serialization, ...) is imported when it is first used.
"""
import importlib as _importlib
import math as _math

from . import _core, _tensor_api, functional as _functional  # noqa: F401  (_tensor_api completes Tensor)
from ._core import Generator, Size, Tensor, _C, device, dtype, layout, memory_format, typename  # noqa: F401
from .version import __version__  # noqa: F401

inf = _math.inf
nan = _math.nan
pi = _math.pi
e = _math.e
newaxis = None


def _gather():
    """Put the extension's functions and constants, and then our functions over them, into this namespace."""
    space = globals()
    for source in (_core._functions, _C):
        for name in dir(source):
            if not name.startswith("__") and name not in space and not name.startswith("_linalg") and name not in _HIDDEN:
                space[name] = getattr(source, name)
    space["legacy_contiguous_format"] = _core.legacy_contiguous_format
    for name in _functional.__all__:
        if hasattr(_functional, name):
            space[name] = getattr(_functional, name)


# The extension's own namespaces and switches, which are no part of torch.
_HIDDEN = {"_nn", "_fft", "_special", "_VariableFunctions", "_autograd", "_ModuleBase", "_FunctionBase", "_InferenceMode"}
_gather()
functional = _functional

# Attribute -> the module that defines it.
_NAMES = {}
for _module, _names in {
    "autograd.grad_mode": "no_grad enable_grad set_grad_enabled inference_mode",
    "random": "manual_seed seed initial_seed get_rng_state set_rng_state default_generator",
    "serialization": "save load",
    "storage": "UntypedStorage TypedStorage FloatStorage DoubleStorage HalfStorage BFloat16Storage LongStorage IntStorage ShortStorage "
               "CharStorage ByteStorage BoolStorage ComplexFloatStorage ComplexDoubleStorage is_storage",
    "_legacy_types": "FloatTensor DoubleTensor HalfTensor BFloat16Tensor LongTensor IntTensor ShortTensor CharTensor ByteTensor BoolTensor",
    "_tensor_str": "set_printoptions get_printoptions printoptions",
    "_settings": "set_default_dtype set_default_device get_default_device set_default_tensor_type use_deterministic_algorithms "
                 "are_deterministic_algorithms_enabled is_deterministic_algorithms_warn_only_enabled set_deterministic_debug_mode "
                 "get_deterministic_debug_mode set_float32_matmul_precision get_float32_matmul_precision set_warn_always "
                 "is_warn_always_enabled is_tensor get_device_module compiled_with_cxx11_abi",
    "_checks": "_assert _check _check_index _check_value _check_type _check_not_implemented _check_is_size _check_with "
               "_check_tensor_all _check_tensor_all_with",
    "_compile": "compile",
    "torch_version": "TorchVersion",
    "_alias": "install_alias",
}.items():
    for _name in _names.split():
        _NAMES[_name] = _module
_MODULES = {"nn", "optim", "utils", "autograd", "serialization", "random", "linalg", "special", "fft", "func", "testing", "overrides",
            "return_types", "storage", "types", "torch_version", "version", "backends", "cuda", "mps", "xpu", "mtia", "cpu", "accelerator",
            "compiler", "jit", "distributed", "safetensors", "amp", "_utils", "_tensor"}
for _name in _NAMES:
    globals().pop(_name, None)      # ours go before the extension's


def __getattr__(name):
    if name in _NAMES:
        try:
            value = getattr(_importlib.import_module(f"{__name__}.{_NAMES[name]}"), name)
        except (ModuleNotFoundError, AttributeError) as error:
            if isinstance(error, ModuleNotFoundError) and not str(error.name).startswith(__name__):
                raise
            raise AttributeError(f"module 'torch' has no attribute '{name}'") from None
        globals()[name] = value
        return value
    if name in _MODULES:
        try:
            return _importlib.import_module(f"{__name__}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{name}":
                raise
    raise AttributeError(f"module 'torch' has no attribute '{name}'")


def __dir__():
    return sorted({*globals(), *_NAMES})


del _module, _names, _name
