"""How a Module is called: global hooks and the path that runs hooks around ``forward``.

The fast path (no hook anywhere) is ``Module.__call__`` itself; ``call_with_hooks`` is everything else.
"""
import warnings
import weakref
from collections import OrderedDict

from ..._core import Tensor, _C
from ...utils.hooks import BackwardHook, RemovableHandle

_global_buffer_registration_hooks = OrderedDict()
_global_module_registration_hooks = OrderedDict()
_global_parameter_registration_hooks = OrderedDict()
_global_backward_pre_hooks = OrderedDict()
_global_backward_hooks = OrderedDict()
_global_is_full_backward_hook = None
_global_forward_pre_hooks = OrderedDict()
_global_forward_hooks = OrderedDict()
_global_forward_hooks_always_called = OrderedDict()
_global_forward_hooks_with_kwargs = OrderedDict()

# The dictionaries that a call must look at besides the module's own.
CALL_HOOKS = (_global_backward_pre_hooks, _global_backward_hooks, _global_forward_hooks, _global_forward_pre_hooks)
if hasattr(_C, "_set_global_module_hooks"):
    _C._set_global_module_hooks(CALL_HOOKS)

_MIXED = ("Cannot use both regular backward hooks and full backward hooks as a global Module hook. "
          "Please use only one of them.")


def _register(hooks, hook, extra_dict=None):
    handle = RemovableHandle(hooks, extra_dict=extra_dict)
    hooks[handle.id] = hook
    return handle


def register_module_buffer_registration_hook(hook):
    """``hook(module, name, buffer)`` at every register_buffer; what it returns, unless None, is registered instead."""
    return _register(_global_buffer_registration_hooks, hook)


def register_module_module_registration_hook(hook):
    """``hook(module, name, submodule)`` at every registration of a submodule."""
    return _register(_global_module_registration_hooks, hook)


def register_module_parameter_registration_hook(hook):
    """``hook(module, name, param)`` at every registration of a parameter."""
    return _register(_global_parameter_registration_hooks, hook)


def register_module_forward_pre_hook(hook):
    """``hook(module, args)`` before the forward of every module."""
    return _register(_global_forward_pre_hooks, hook)


def register_module_forward_hook(hook, *, with_kwargs=False, always_call=False):
    """``hook(module, args, output)`` after the forward of every module."""
    handle = _register(_global_forward_hooks, hook, extra_dict=_global_forward_hooks_always_called)
    if with_kwargs:
        _global_forward_hooks_with_kwargs[handle.id] = True
    if always_call:
        _global_forward_hooks_always_called[handle.id] = True
    return handle


def _register_backward(hook, full):
    global _global_is_full_backward_hook
    if _global_is_full_backward_hook is (not full):
        raise RuntimeError(_MIXED)
    _global_is_full_backward_hook = full
    return _register(_global_backward_hooks, hook)


def register_module_backward_hook(hook):
    """Deprecated form of :func:`register_module_full_backward_hook`: sees the gradients of the last operator only."""
    return _register_backward(hook, False)


def register_module_full_backward_pre_hook(hook):
    """``hook(module, grad_output)`` before the backward of every module."""
    return _register(_global_backward_pre_hooks, hook)


def register_module_full_backward_hook(hook):
    """``hook(module, grad_input, grad_output)`` after the backward of every module."""
    return _register_backward(hook, True)


def _has_any_global_hook():
    return any(CALL_HOOKS)


class _WrappedHook:
    """A hook, with a weak reference to the module that it wants as its first argument."""

    def __init__(self, hook, module=None):
        self.hook = hook
        for name in ("__module__", "__name__", "__qualname__", "__doc__"):
            if hasattr(hook, name):
                setattr(self, name, getattr(hook, name))
        self.with_module = module is not None
        if self.with_module:
            self.module = weakref.ref(module)

    def __call__(self, *args, **kwargs):
        if not self.with_module:
            return self.hook(*args, **kwargs)
        module = self.module()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args, **kwargs)

    def __getstate__(self):
        state = {"hook": self.hook, "with_module": self.with_module}
        if self.with_module:
            state["module"] = self.module()
        return state

    def __setstate__(self, state):
        self.hook, self.with_module = state["hook"], state["with_module"]
        if self.with_module:
            if state["module"] is None:
                raise RuntimeError("You are trying to revive the hook of a dead Module!")
            self.module = weakref.ref(state["module"])


def backward_hooks(module):
    """(full hooks, old-style hooks) that a call of ``module`` must set up, global ones first."""
    full, old = [], []
    for kind, hooks in ((_global_is_full_backward_hook, _global_backward_hooks),
                        (module._is_full_backward_hook, module._backward_hooks)):
        if kind is True:
            full += hooks.values()
        elif kind is False:
            old += hooks.values()
    return full, old


def _run_pre_hooks(module, args, kwargs):
    for key, hook in (*_global_forward_pre_hooks.items(), *module._forward_pre_hooks.items()):
        if key in module._forward_pre_hooks_with_kwargs:
            changed = hook(module, args, kwargs)
            if changed is None:
                continue
            if not (isinstance(changed, tuple) and len(changed) == 2):
                raise RuntimeError(f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {changed}.")
            args, kwargs = changed
        else:
            changed = hook(module, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
    return args, kwargs


def _first_tensor(value):
    while not isinstance(value, Tensor):
        value = next(v for v in value.values() if isinstance(v, Tensor)) if isinstance(value, dict) else value[0]
    return value


def _attach_old_hooks(module, hooks, args, result):
    node = _first_tensor(result).grad_fn
    if node is not None:
        for hook in hooks:
            node.register_hook(_WrappedHook(hook, module))
        warn_about_old_hooks(args, result, node)


class _Call:
    """One call with hooks: what the handler of an exception must still know."""

    def __init__(self, module, args, kwargs):
        self.module, self.args, self.kwargs = module, args, kwargs
        self.result = None
        self.done = set()

    def forward_hook(self, key, hook):
        with_kwargs = key in self.module._forward_hooks_with_kwargs or key in _global_forward_hooks_with_kwargs
        extra = (self.args, self.kwargs) if with_kwargs else (self.args,)
        out = hook(self.module, *extra, self.result)
        if out is not None:
            self.result = out

    def run(self, forward):
        module = self.module
        pre = [*_global_backward_pre_hooks.values(), *module._backward_pre_hooks.values()]
        full, old = backward_hooks(module)
        self.args, self.kwargs = _run_pre_hooks(module, self.args, self.kwargs)
        watcher = None
        if full or pre:
            watcher = BackwardHook(module, full, pre)
            self.args = watcher.setup_input_hook(self.args)
        self.result = forward(*self.args, **self.kwargs)
        for key, hook in (*_global_forward_hooks.items(), *module._forward_hooks.items()):
            self.done.add(key)
            self.forward_hook(key, hook)
        if watcher is not None:
            if not isinstance(self.result, (Tensor, tuple)):
                warnings.warn("For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but received "
                              f"{type(self.result)}", stacklevel=2)
            self.result = watcher.setup_output_hook(self.result)
        if old:
            _attach_old_hooks(module, old, self.args, self.result)
        return self.result

    def run_always_called(self):
        """After an exception: the forward hooks with always_call=True that have not run."""
        module = self.module
        for kind, hooks, always in (("global module", _global_forward_hooks, _global_forward_hooks_always_called),
                                    ("module", module._forward_hooks, module._forward_hooks_always_called)):
            for key, hook in hooks.items():
                if key not in always or key in self.done:
                    continue
                try:
                    self.forward_hook(key, hook)
                except Exception as error:
                    warnings.warn(f"{kind} forward hook with ``always_call=True`` raised an exception that was silenced as another "
                                  f"error was raised in forward: {error}", stacklevel=2)


def call_with_hooks(module, args, kwargs):
    """``module.forward(*args, **kwargs)`` with every hook around it."""
    call = _Call(module, args, kwargs)
    try:
        return call.run(module.forward)
    except Exception:
        call.run_always_called()
        raise


def warn_about_old_hooks(inputs, result, node):
    """The warnings that old-style backward hooks deserve: they see only the last operator."""
    def warn(text):
        warnings.warn(text, FutureWarning, stacklevel=2)

    tail = "Please use register_full_backward_hook to get the documented behavior."
    for value, what, lost in ((result, "return", "grad_output"), (inputs, "take as input", "grad_input")):
        if not isinstance(value, Tensor) and not (isinstance(value, tuple) and all(isinstance(v, Tensor) for v in value)):
            warn(f"Using non-full backward hooks on a Module that does not {what} a single Tensor or a tuple of Tensors is "
                 f"deprecated and will be removed in future versions. This hook will be missing some of the {lost}. {tail}")
            return
    outs = (result,) if isinstance(result, Tensor) else result
    ins = (inputs,) if isinstance(inputs, Tensor) else inputs
    if isinstance(result, tuple) and len({o.grad_fn for o in outs}) > 1:
        warn("Using a non-full backward hook when outputs are generated by different autograd Nodes is deprecated and will be "
             f"removed in future versions. This hook will be missing some grad_output. {tail}")
        return
    sources = {i.grad_fn for i in ins if i.grad_fn is not None}
    following = {n[0] for n in node.next_functions}
    if not sources <= following:
        warn("Using a non-full backward hook when the forward contains multiple autograd Nodes is deprecated and will be removed "
             f"in future versions. This hook will be missing some grad_input. {tail}")
