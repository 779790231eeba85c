"""Helpers around modules and parameters."""
import importlib

from .clip_grad import clip_grad_norm, clip_grad_norm_, clip_grad_value_, clip_grads_with_norm_, get_total_norm  # noqa: F401
from .convert_parameters import parameters_to_vector, vector_to_parameters  # noqa: F401

_LAZY_MODULES = ("rnn", "parametrize", "parametrizations", "weight_norm", "spectral_norm", "stateless", "memory_format", "fusion", "prune")
_LAZY_NAMES = {"skip_init": "init", "fuse_conv_bn_eval": "fusion", "fuse_conv_bn_weights": "fusion", "fuse_linear_bn_eval": "fusion",
               "fuse_linear_bn_weights": "fusion", "remove_weight_norm": "weight_norm", "remove_spectral_norm": "spectral_norm",
               "convert_conv2d_weight_memory_format": "memory_format"}


def __getattr__(name):
    if name in ("weight_norm", "spectral_norm"):    # function and file of one name: the function wins, as in PyTorch
        value = getattr(importlib.import_module(f"{__name__}.{name}"), name)
        globals()[name] = value
        return value
    if name in _LAZY_NAMES:
        return getattr(importlib.import_module(f"{__name__}.{_LAZY_NAMES[name]}"), name)
    if name in _LAZY_MODULES:
        try:
            return importlib.import_module(f"{__name__}.{name}")
        except ModuleNotFoundError:
            pass
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
