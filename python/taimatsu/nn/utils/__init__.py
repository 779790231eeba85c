"""Helpers around modules and parameters."""
import importlib

from .clip_grad import clip_grad_norm, clip_grad_norm_, clip_grad_value_, clip_grads_with_norm_, get_total_norm  # noqa: F401
from .convert_parameters import parameters_to_vector, vector_to_parameters  # noqa: F401

_LAZY_MODULES = ("rnn", "stateless")


def __getattr__(name):
    if name in _LAZY_MODULES:
        try:
            return importlib.import_module(f"{__name__}.{name}")
        except ModuleNotFoundError:
            pass
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
