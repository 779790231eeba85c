"""Handles of registered hooks, and the machinery behind a Module's full backward hooks."""
import warnings
import weakref
from collections import OrderedDict

from .. import _core as core
from .._core import Tensor

__all__ = ["RemovableHandle", "unserializable_hook", "warn_if_has_hooks", "BackwardHook"]


class RemovableHandle:
    """Removes a hook from the dictionary it was registered in, and its marks from ``extra_dict`` (one or a list)."""

    next_id = 0

    def __init__(self, hooks_dict, *, extra_dict=None):
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        extra = [extra_dict] if isinstance(extra_dict, dict) else extra_dict or ()
        self.extra_dict_ref = tuple(weakref.ref(d) for d in extra)

    def remove(self):
        for ref in (self.hooks_dict_ref, *self.extra_dict_ref):
            owner = ref()
            if owner is not None:
                owner.pop(self.id, None)

    def __getstate__(self):
        return self.hooks_dict_ref(), self.id, tuple(ref() for ref in self.extra_dict_ref)

    def __setstate__(self, state):
        owner, self.id = state[0], state[1]
        self.hooks_dict_ref = weakref.ref(OrderedDict() if owner is None else owner)
        extra = state[2] if len(state) > 2 and state[2] is not None else ()
        self.extra_dict_ref = tuple(weakref.ref(d) for d in extra)
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, tb):
        self.remove()


def unserializable_hook(f):
    """Decorator: this hook is knowingly not saved with its tensor, so do not warn."""
    f.__torch_unserializable__ = True
    return f


def warn_if_has_hooks(tensor):
    """Warn for every backward hook of ``tensor`` that will be lost when it is saved."""
    for hook in (getattr(tensor, "_backward_hooks", None) or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, you can decorate the function "
                "with @torch.utils.hooks.unserializable_hook to suppress this warning", stacklevel=2)


def _spread(positions, values, size):
    """A tuple of ``size`` entries, ``values`` at ``positions`` and None elsewhere."""
    full = [None] * size
    for i, value in zip(positions, values):
        full[i] = value
    return tuple(full)


class BackwardHook:
    """One call of a module whose backward is watched.

    The tensors among the inputs pass through one identity node and those among the outputs through another. The output
    node's hook sees grad_output first; the input node's hook, run when all input gradients are there, calls the user.
    """

    def __init__(self, module, user_hooks, user_pre_hooks):
        self.module = module
        self.user_hooks = user_hooks
        self.user_pre_hooks = user_pre_hooks
        self.grad_outputs = None
        self.n_inputs = self.n_outputs = -1
        self.input_tensors_index = self.output_tensors_index = None

    def setup_input_hook(self, args):
        args, self.input_tensors_index, node = self._through_identity(args)
        if node is not None:
            node.register_hook(self._on_input_grads)
        self.n_inputs = len(args)
        return args

    def setup_output_hook(self, result):
        is_tuple = isinstance(result, tuple)
        args, self.output_tensors_index, node = self._through_identity(result if is_tuple else (result,))
        self.n_outputs = len(args)
        if node is not None:
            node.register_hook(self._on_output_grads)
        return args if is_tuple else args[0]

    @staticmethod
    def _through_identity(args):
        """(args with their tensors replaced, positions of the tensors, the node); (args, None, None) if nothing needs grad."""
        where = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        if not core.is_grad_enabled() or not any(args[i].requires_grad for i in where):
            return args, None, None
        from ..nn.modules._functions import BackwardHookFunction
        passed = BackwardHookFunction.apply(*[args[i] for i in where])
        nodes = [t.grad_fn for t in passed if t.grad_fn is not None and t.grad_fn.name() == "BackwardHookFunctionBackward"]
        if not nodes:
            raise RuntimeError("Error while setting up backward hooks. Please open an issue with a code sample to reproduce this.")
        mixed = list(args)
        for i, t in zip(where, passed):
            mixed[i] = t
        return (tuple(mixed) if type(args) is tuple else type(args)(*mixed)), where, nodes[0]

    def _on_output_grads(self, _, grad_output):
        self.grad_outputs = _spread(self.output_tensors_index, grad_output, self.n_outputs)
        for hook in self.user_pre_hooks or ():
            changed = hook(self.module, self.grad_outputs)
            if changed is None:
                continue
            if len(changed) != self.n_outputs:
                raise RuntimeError("Backward pre hook returned an invalid number of grad_output, "
                                   f"got {len(changed)}, but expected {self.n_outputs}")
            self.grad_outputs = changed
        grads = self.grad_outputs
        if self.input_tensors_index is None:
            self._call_without_inputs()
        return tuple(grads[i] for i in self.output_tensors_index)

    def _call_without_inputs(self):
        warnings.warn("Full backward hook is firing when gradients are computed with respect to module outputs since no inputs "
                      "require gradients. See https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html"
                      "#torch.nn.Module.register_full_backward_hook for more details.", stacklevel=5)
        grad_inputs = (None,) * self.n_inputs
        for hook in self.user_hooks:
            out = hook(self.module, grad_inputs, self.grad_outputs)
            if out is not None and not (isinstance(out, tuple) and all(g is None for g in out)):
                raise RuntimeError("Backward hook for Modules where no input requires gradient should always return None or None "
                                   "for all gradients.")
        self.grad_outputs = None

    def _on_input_grads(self, grad_input, _):
        if self.grad_outputs is None:       # the gradient reached the inputs without passing the outputs
            return None
        grads = _spread(self.input_tensors_index, grad_input, self.n_inputs)
        for hook in self.user_hooks:
            changed = hook(self.module, grads, self.grad_outputs)
            if changed is None:
                continue
            if len(changed) != len(grads):
                raise RuntimeError(f"Backward hook returned an invalid number of grad_input, got {len(changed)}, "
                                   f"but expected {len(grads)}")
            grads = changed
        self.grad_outputs = None
        return tuple(grads[i] for i in self.input_tensors_index)
