"""Utilities around tensors, data and checkpoints."""
import importlib

_LAZY = ("data", "hooks", "checkpoint", "_pytree", "serialization", "collect_env", "model_zoo", "dlpack", "tensorboard", "backend_registration",
         "_contextlib", "weak", "bundled_inputs")


def __getattr__(name):
    if name in _LAZY:
        try:
            return importlib.import_module(f"{__name__}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{name}":
                raise
    if name == "set_module":
        return _set_module
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def _set_module(obj, mod):
    """Give ``obj`` the module name ``mod``."""
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod
