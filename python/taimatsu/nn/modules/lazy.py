"""Modules that learn their sizes from the first input."""
import warnings

from ... import _core as core
from ..parameter import is_lazy
from .module import Module

__all__ = ["LazyModuleMixin"]


class LazyModuleMixin(Module.__base__):      # the base's layout: __class__ can be assigned
    """Base of lazy modules: parameters are uninitialised until the first call, which also turns the module into ``cls_to_become``."""

    cls_to_become = None

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)
        warnings.warn("Lazy modules are a new feature under heavy development so changes to the API or functionality can happen at any "
                      "moment.", stacklevel=2)

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        for name, t in self._parameters.items():
            if t is not None:
                destination[prefix + name] = t if is_lazy(t) or keep_vars else t.detach()
        for name, t in self._buffers.items():
            if t is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = t if is_lazy(t) or keep_vars else t.detach()

    def _lazy_load_hook(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        """Give uninitialised parameters the shapes of what is about to be loaded."""
        for name, t in (*self._parameters.items(), *self._buffers.items()):
            given = state_dict.get(prefix + name)
            if t is not None and given is not None and is_lazy(t) and not is_lazy(given):
                with core.no_grad():
                    t.materialize(given.shape)

    def initialize_parameters(self, *args, **kwargs):
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self):
        return any(is_lazy(t) for t in (*self._parameters.values(), *self._buffers.values()))

    def _infer_parameters(self, module, args, kwargs=None):
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        module._initialize_hook.remove()
        module._load_hook.remove()
        del module._initialize_hook, module._load_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become

    def _replicate_for_data_parallel(self):
        raise RuntimeError("Modules with uninitialized parameters can't be used with `DataParallel`. Run a dummy forward pass to "
                           "correctly initialize the modules")
