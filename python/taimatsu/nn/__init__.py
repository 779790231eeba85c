"""Neural-network layers."""
import importlib

from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter  # noqa: F401
from .modules import *  # noqa: F403
from . import functional, init, modules, parameter, utils  # noqa: F401

_LAZY = ("attention", "parallel", "grad")


def factory_kwargs(kwargs):
    """The factory arguments (device, dtype, memory_format) among ``kwargs``, also from a nested ``factory_kwargs``; others are errors."""
    if kwargs is None:
        return {}
    simple = {"device", "dtype", "memory_format"}
    unknown = kwargs.keys() - simple - {"factory_kwargs"}
    if unknown:
        raise TypeError(f"unexpected kwargs {unknown}")
    made = dict(kwargs.get("factory_kwargs", {}))
    for key in simple & kwargs.keys():
        if key in made:
            raise TypeError(f"{key} specified twice, in **kwargs and in factory_kwargs")
        made[key] = kwargs[key]
    return made


def __getattr__(name):
    if name in _LAZY:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
