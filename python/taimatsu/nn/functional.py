"""torch.nn.functional: layers as plain functions, gathered from the _fn_* files of this folder."""
from .._core import Tensor  # noqa: F401
from . import _fn_activation, _fn_attention, _fn_layers, _fn_loss, _fn_pooling, _fn_vision, _reduction as _Reduction  # noqa: F401

_OWN = ("_get_softmax_dim", "_in_projection_packed", "_in_projection", "_mha_shape_check", "_canonical_mask", "_none_or_dtype",
        "_no_grad_embedding_renorm_", "_verify_batch_size", "_verify_spatial_size", "_unpool_output_size", "_is_integer")
_HELPERS = {"core", "math", "warnings", "get_enum", "resolve", "legacy_get_string", "Tensor"}


def _gather():
    for part in (_fn_activation, _fn_layers, _fn_loss, _fn_pooling, _fn_vision, _fn_attention):
        for name, value in vars(part).items():
            if value is None or name in _HELPERS or (name.startswith("_") and name not in _OWN):
                continue
            globals()[name] = value
            if getattr(value, "__module__", None) == part.__name__:
                value.__module__ = __name__


_gather()


def boolean_dispatch(arg_name, arg_index, default, if_true, if_false, module_name, func_name):
    """A function that calls ``if_true`` or ``if_false`` by the value of its flag ``arg_name``."""
    def fn(*args, **kwargs):
        flag = kwargs.get(arg_name, args[arg_index] if arg_index < len(args) else default)
        return (if_true if flag else if_false)(*args, **kwargs)

    fn.__module__, fn.__name__, fn.__doc__ = module_name, func_name, if_true.__doc__ or if_false.__doc__
    return fn


def assert_int_or_pair(arg, arg_name, message):
    if not (isinstance(arg, int) or len(arg) == 2):
        raise AssertionError(message.format(arg_name))
