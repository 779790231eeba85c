"""state_dict and load_state_dict of Module, as plain functions over a module."""
import warnings
from collections import OrderedDict, namedtuple
from collections.abc import Mapping

from ... import _core as core
from ..._core import Tensor
from ...utils.hooks import RemovableHandle
from ..parameter import Parameter, is_lazy
from ._calling import _WrappedHook

_EXTRA_STATE_KEY_SUFFIX = "_extra_state"


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """What load_state_dict found: keys the module has and the dictionary lacks, and the reverse."""

    __slots__ = ()

    def __repr__(self):
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


def _overrides(module, method):
    """Whether the class of ``module`` defines get_extra_state or set_extra_state itself."""
    from .module import Module
    return getattr(type(module), method) is not getattr(Module, method)


def save_own(module, destination, prefix, keep_vars):
    """Put the parameters and persistent buffers of ``module`` itself into ``destination``."""
    for name, t in module._parameters.items():
        if t is not None:
            destination[prefix + name] = t if keep_vars else t.detach()
    for name, t in module._buffers.items():
        if t is not None and name not in module._non_persistent_buffers_set:
            destination[prefix + name] = t if keep_vars else t.detach()
    if _overrides(module, "get_extra_state"):
        destination[prefix + _EXTRA_STATE_KEY_SUFFIX] = module.get_extra_state()


def state_dict(self, *args, destination=None, prefix="", keep_vars=False):
    """A dictionary name -> tensor of all parameters and persistent buffers (detached unless ``keep_vars``; they share memory)."""
    if args:
        warnings.warn(
            "Positional args are being deprecated, use kwargs instead. Refer to https://pytorch.org/docs/main/generated/"
            "torch.nn.Module.html#torch.nn.Module.state_dict for details.", FutureWarning, stacklevel=2)
        destination = args[0] if destination is None else destination
        prefix = args[1] if len(args) > 1 and prefix == "" else prefix
        keep_vars = args[2] if len(args) > 2 and keep_vars is False else keep_vars
    if destination is None:
        destination = OrderedDict()
        destination._metadata = OrderedDict()
    metadata = dict(version=self._version)
    if hasattr(destination, "_metadata"):
        destination._metadata[prefix[:-1]] = metadata
    for hook in self._state_dict_pre_hooks.values():
        hook(self, prefix, keep_vars)
    self._save_to_state_dict(destination, prefix, keep_vars)
    for name, child in self._modules.items():
        if child is not None:
            child.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
    for hook in self._state_dict_hooks.values():
        out = hook(self, destination, prefix, metadata)
        if getattr(hook, "_from_public_api", False):
            if out is not None:
                raise RuntimeError("state_dict post-hook must return None")
        elif out is not None:
            destination = out
    return destination


def _fit(module, name, own, given, key, assign):
    """Copy (or assign) the tensor ``given`` to the attribute ``name``; returns an error message or None."""
    if not isinstance(given, Tensor) and not hasattr(type(given), "__torch_function__"):
        return (f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from checkpoint but '
                f"received {type(given)}")
    lazy = is_lazy(own)
    if not lazy and len(own.shape) == 0 and len(given.shape) == 1 and given.shape[0] == 1:
        given = given[0]        # files from before 0-d tensors existed
    if not lazy and given.shape != own.shape:
        return (f"size mismatch for {key}: copying a param with shape {given.shape} from checkpoint, the shape in current model is "
                f"{own.shape}.")
    if own.is_meta and not given.is_meta and not assign:
        warnings.warn(
            f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the current model, which is a "
            "no-op. (Did you mean to pass `assign=True` to assign items in the state dictionary to their corresponding key in the "
            "module instead of copying them in place?)", stacklevel=3)
    try:
        with core.no_grad():
            if not assign:
                own.copy_(given)
                return None
            if isinstance(own, Parameter):
                if isinstance(given, Parameter):
                    given.requires_grad_(own.requires_grad)
                else:
                    given = Parameter(given, requires_grad=own.requires_grad)
            setattr(module, name, given)
    except Exception as error:
        return (f'While copying the parameter named "{key}", whose dimensions in the model are {own.size()} and whose dimensions in '
                f"the checkpoint are {given.size()}, an exception occurred : {error.args}.")
    return None


def load_own(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
    """Copy into ``module`` itself (not its children) what ``state_dict`` holds under ``prefix``."""
    for hook in module._load_state_dict_pre_hooks.values():
        hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
    skipped = module._non_persistent_buffers_set
    own = {k: v for k, v in module._parameters.items() if v is not None}
    own.update((k, v) for k, v in module._buffers.items() if v is not None and k not in skipped)
    assign = local_metadata.get("assign_to_params_buffers", False)
    for name, t in own.items():
        key = prefix + name
        if key in state_dict:
            complaint = _fit(module, name, t, state_dict[key], key, assign)
            if complaint:
                error_msgs.append(complaint)
        elif strict:
            missing_keys.append(key)
    extra = prefix + _EXTRA_STATE_KEY_SUFFIX
    if _overrides(module, "set_extra_state"):
        if extra in state_dict:
            module.set_extra_state(state_dict[extra])
        elif strict:
            missing_keys.append(extra)
    elif strict and extra in state_dict:
        unexpected_keys.append(extra)
    if strict:
        for key in state_dict:
            if key.startswith(prefix) and key != extra:
                head, dot, _ = key[len(prefix):].partition(".")
                if head not in (module._modules if dot else own):
                    unexpected_keys.append(key)


def _load_tree(module, state_dict, prefix, metadata, assign, missing, unexpected, errors):
    local = {} if metadata is None else metadata.get(prefix[:-1], {})
    if assign:
        local["assign_to_params_buffers"] = assign
    module._load_from_state_dict(state_dict, prefix, local, True, missing, unexpected, errors)
    for name, child in module._modules.items():
        if child is not None:
            below = f"{prefix}{name}."
            part = {k: v for k, v in state_dict.items() if k.startswith(below)}
            _load_tree(child, part, below, metadata, assign, missing, unexpected, errors)
    found = _IncompatibleKeys(missing, unexpected)
    for hook in module._load_state_dict_post_hooks.values():
        if hook(module, found) is not None:
            raise AssertionError(
                "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new values, if "
                "incompatible_keys need to be modified, it should be done inplace.")


def load_state_dict(self, state_dict, strict=True, assign=False):
    """Copy the tensors of ``state_dict`` into the parameters and buffers; with ``assign`` they take their place instead."""
    if not isinstance(state_dict, Mapping):
        raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
    metadata = getattr(state_dict, "_metadata", None)
    state_dict = OrderedDict(state_dict)        # hooks may change it
    if metadata is not None:
        state_dict._metadata = metadata
    missing, unexpected, errors = [], [], []
    _load_tree(self, state_dict, "", metadata, assign, missing, unexpected, errors)
    if strict:
        for keys, word in ((unexpected, "Unexpected"), (missing, "Missing")):
            if keys:
                errors.insert(0, f"{word} key(s) in state_dict: " + ", ".join(f'"{k}"' for k in keys) + ". ")
    if errors:
        raise RuntimeError("Error(s) in loading state_dict for {}:\n\t{}".format(type(self).__name__, "\n\t".join(errors)))
    return _IncompatibleKeys(missing, unexpected)


def _register(hooks, hook):
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def register_state_dict_hook(self, hook):
    """``hook(module, state_dict, prefix, local_metadata)`` after state_dict; may return a replacement."""
    if getattr(hook, "_from_public_api", False):
        raise RuntimeError("Cannot register the same function as the state dict post hook that was previously registered via "
                           "register_state_dict_post_hook")
    return _register(self._state_dict_hooks, hook)


def register_state_dict_post_hook(self, hook):
    """``hook(module, state_dict, prefix, local_metadata) -> None`` after state_dict was filled."""
    hook._from_public_api = True
    return _register(self._state_dict_hooks, hook)


def register_state_dict_pre_hook(self, hook):
    """``hook(module, prefix, keep_vars) -> None`` before state_dict is filled."""
    return _register(self._state_dict_pre_hooks, hook)


def register_load_pre_hook(self, hook, with_module=False):
    return _register(self._load_state_dict_pre_hooks, _WrappedHook(hook, self if with_module else None))


def register_load_state_dict_pre_hook(self, hook):
    """``hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)`` before loading."""
    return register_load_pre_hook(self, hook, with_module=True)


def register_load_state_dict_post_hook(self, hook):
    """``hook(module, incompatible_keys) -> None`` after loading; may change the two lists in place."""
    return _register(self._load_state_dict_post_hooks, hook)
