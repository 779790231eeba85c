"""Optimizer, the base of all optimisers: parameter groups, state, hooks."""
import functools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Iterable
from copy import deepcopy
from itertools import chain

from .. import _core as core
from .._core import Tensor, typename
from ..utils.hooks import RemovableHandle

__all__ = ["Optimizer", "register_optimizer_step_pre_hook", "register_optimizer_step_post_hook"]

ParamsT = Iterable      # of tensors, of dicts (groups), or of (name, tensor) pairs

_global_optimizer_pre_hooks = OrderedDict()
_global_optimizer_post_hooks = OrderedDict()


class _RequiredParameter:
    def __repr__(self):
        return "<required parameter>"


required = _RequiredParameter()


def _add_hook(hooks, hook, prepend=False):
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def register_optimizer_step_pre_hook(hook):
    """``hook(optimizer, args, kwargs)`` before the step of every optimiser."""
    return _add_hook(_global_optimizer_pre_hooks, hook)


def register_optimizer_step_post_hook(hook):
    """``hook(optimizer, args, kwargs)`` after the step of every optimiser."""
    return _add_hook(_global_optimizer_post_hooks, hook)


# ---- helpers of the single optimisers

def _use_grad_for_differentiable(func):
    """Decorator of ``step``: gradients are recorded inside it only with differentiable=True."""
    @functools.wraps(func)
    def step(self, *args, **kwargs):
        before = core.is_grad_enabled()
        core._C._set_grad_enabled(bool(self.defaults["differentiable"]))
        try:
            return func(self, *args, **kwargs)
        finally:
            core._C._set_grad_enabled(before)

    return step


def _evaluate(closure):
    """The loss of ``closure``, computed with gradients on; None without one."""
    if closure is None:
        return None
    with core.enable_grad():
        return closure()


def _get_value(x):
    return x.item() if isinstance(x, Tensor) else x


def _to_scalar(x):
    return x.squeeze() if isinstance(x, Tensor) and x.dim() != 0 else x


def _get_scalar_dtype(is_fused=None):
    """The dtype of step counters."""
    if is_fused:
        return core.float32
    return core.float64 if core.get_default_dtype() == core.float64 else core.float32


def _step_counter(group, p):
    """A new counter for parameter ``p``: on its device for fused and capturable groups, else on the CPU."""
    there = group.get("capturable") or group.get("fused")
    return core.zeros((), dtype=_get_scalar_dtype(group.get("fused")), device=p.device if there else "cpu")


def _restore_steps(optimizer, key="step"):
    """Counters of old files are Python numbers; make them tensors."""
    for group in optimizer.param_groups:
        for p in group["params"]:
            state = optimizer.state.get(p, [])
            if len(state) != 0 and not isinstance(state[key], Tensor):
                counter = _step_counter(group, p)
                counter.fill_(float(state[key]))
                state[key] = counter


def _get_capturable_supported_devices(supports_xla=True):
    devices = ["cuda", "xpu", "hpu"]
    return devices + ["xla"] if supports_xla else devices


def _check_capturable(capturable, *tensors):
    if not capturable:
        return
    kinds = {t.device.type for t in tensors}
    supported = _get_capturable_supported_devices()
    if len(kinds) != 1 or kinds.pop() not in supported:
        raise AssertionError(f"If capturable=True, params and state_steps must be on supported devices: {supported}.")


def _check_step_tensors(state_steps):
    if not all(isinstance(t, Tensor) for t in state_steps):
        raise RuntimeError("API has changed, `state_steps` argument must contain a list of singleton tensors")


def _default_to_fused_or_foreach(params, differentiable, use_fused=False):
    """(fused, foreach) for optimisers that were told neither. CPU parameters take the loop over single tensors."""
    return False, False


_FUSED_DEVICES = ["mps", "cuda", "xpu", "hpu", "cpu", "mtia"]


def _device_dtype_check_for_fused(p, cuda_unsupported=False):
    supported = [d for d in _FUSED_DEVICES if not (cuda_unsupported and d == "cuda")]
    if p.device.type not in supported or not p.is_floating_point():
        raise RuntimeError("`fused=True` requires all the params to be floating point Tensors of supported devices: "
                           f"{supported} but {p.dtype} and {p.device.type}")


def _has_op(name):
    return hasattr(core._functions, name)


def _by_device_and_dtype(*lists):
    """The lists (parallel, of tensors; empty ones allowed) cut into groups whose first tensors share device and dtype."""
    groups = {}
    for i, p in enumerate(lists[0]):
        groups.setdefault((p.device, p.dtype), []).append(i)
    return [[[column[i] for i in indices] if column else [] for column in lists] for indices in groups.values()]


def _real(*tensors):
    """Complex tensors as real views; real ones as they are."""
    return [core.view_as_real(t) if isinstance(t, Tensor) and t.is_complex() else t for t in tensors]


def _check_at_least(zero_checks):
    """Raise ValueError for the first (value, message) whose value is below zero (or is NaN)."""
    for value, message in zero_checks:
        if not 0.0 <= value:
            raise ValueError(f"{message}: {value}")


def _check_tensor_lr(lr):
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")


class Optimizer:
    """Base of optimisers. ``params`` are tensors, (name, tensor) pairs, or dicts with "params" and options of their own."""

    def __init__(self, params, defaults):
        self.defaults = defaults
        self._make_hooks()
        self._patch_step_function()
        if isinstance(params, Tensor):
            raise TypeError("params argument given to the optimizer should be an iterable of Tensors or dicts, but got " + typename(params))
        self.state = defaultdict(dict)
        self.param_groups = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)
        self._warned_capturable_if_run_uncaptured = True

    def _make_hooks(self):
        for kind in ("step_pre", "step_post", "state_dict_pre", "state_dict_post", "load_state_dict_pre", "load_state_dict_post"):
            self.__dict__.setdefault(f"_optimizer_{kind}_hooks", OrderedDict())

    def __getstate__(self):
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._make_hooks()
        self._patch_step_function()
        self.defaults.setdefault("differentiable", False)

    def __repr__(self):
        text = type(self).__name__ + " ("
        for i, group in enumerate(self.param_groups):
            text += f"\nParameter Group {i}\n"
            for key in sorted(group):
                if key != "params":
                    text += f"    {key}: {group[key]}\n"
        return text + ")"

    # ---- step and its hooks

    @staticmethod
    def profile_hook_step(func):
        """``func`` (a step) with the step hooks around it."""
        @functools.wraps(func)
        def wrapper(*args, **kwargs):
            self = args[0]
            for hook in chain(_global_optimizer_pre_hooks.values(), self._optimizer_step_pre_hooks.values()):
                changed = hook(self, args, kwargs)
                if changed is None:
                    continue
                if not (isinstance(changed, tuple) and len(changed) == 2):
                    raise RuntimeError(f"{func} must return None or a tuple of (new_args, new_kwargs), but got {changed}.")
                args, kwargs = changed
            out = func(*args, **kwargs)
            self._optimizer_step_code()
            for hook in chain(self._optimizer_step_post_hooks.values(), _global_optimizer_post_hooks.values()):
                hook(self, args, kwargs)
            return out

        return wrapper

    def _optimizer_step_code(self):
        """Called inside every step; tools that trace programs look for it."""

    def _patch_step_function(self):
        cls = type(self)
        self._zero_grad_profile_name = f"Optimizer.zero_grad#{cls.__name__}.zero_grad"
        if not getattr(cls.step, "hooked", None):
            cls.step = self.profile_hook_step(cls.step)
            cls.step.hooked = True

    def step(self, closure=None):
        """Change the parameters once. ``closure``, where given, computes the loss again and returns it."""
        raise NotImplementedError

    def register_step_pre_hook(self, hook):
        """``hook(optimizer, args, kwargs)`` before every step; may return changed (args, kwargs)."""
        return _add_hook(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook):
        """``hook(optimizer, args, kwargs)`` after every step."""
        return _add_hook(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook, prepend=False):
        """``hook(optimizer)`` before state_dict."""
        return _add_hook(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook, prepend=False):
        """``hook(optimizer, state_dict)`` after state_dict; may return another dictionary."""
        return _add_hook(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook, prepend=False):
        """``hook(optimizer, state_dict)`` before load_state_dict; may return another dictionary."""
        return _add_hook(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook, prepend=False):
        """``hook(optimizer)`` after load_state_dict."""
        return _add_hook(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    def zero_grad(self, set_to_none=True):
        """Clear all gradients: drop them, or with ``set_to_none=False`` fill them with zeros."""
        for group in self.param_groups:
            for p in group["params"]:
                grad = p.grad
                if grad is None:
                    continue
                if set_to_none:
                    p.grad = None
                else:
                    grad.detach_() if grad.grad_fn is not None else grad.requires_grad_(False)
                    grad.zero_()

    # ---- state

    def state_dict(self):
        """State and groups with parameters replaced by numbers, in the order in which they were given."""
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        numbers = {}
        groups = []
        start = 0
        for group in self.param_groups:
            packed = {k: v for k, v in group.items() if k != "params"}
            for i, p in enumerate(group["params"], start):
                numbers.setdefault(id(p), i)
            packed["params"] = [numbers[id(p)] for p in group["params"]]
            start += len(packed["params"])
            groups.append(packed)
        state = {numbers[id(k)] if isinstance(k, Tensor) else k: v for k, v in self.state.items()}
        result = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            changed = hook(self, result)
            if changed is not None:
                result = changed
        return result

    @staticmethod
    def _process_value_according_to_param_policy(param, value, param_id, param_groups, key=None):
        """A state tensor with the dtype and device that ``param`` asks for; step counters keep theirs."""
        group = next((g for g in param_groups if param_id in g["params"]), {})
        if key == "step":
            if group.get("capturable") or group.get("fused"):
                return value.to(dtype=core.float32, device=param.device)
            return value
        if param.is_floating_point():
            return value.to(dtype=param.dtype, device=param.device)
        return value.to(device=param.device)

    def _cast_state(self, param, value, number, groups, key=None):
        if isinstance(value, Tensor):
            return Optimizer._process_value_according_to_param_policy(param, value, number, groups, key)
        if isinstance(value, dict):
            return {k: self._cast_state(param, v, number, groups, k) for k, v in value.items()}
        if isinstance(value, Iterable):
            return type(value)(self._cast_state(param, v, number, groups) for v in value)
        return value

    def load_state_dict(self, state_dict):
        """Take over what :meth:`state_dict` gave; parameters are matched by their order."""
        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            changed = hook(self, state_dict)
            if changed is not None:
                state_dict = changed
        groups = self.param_groups
        saved = deepcopy(state_dict["param_groups"])
        if len(groups) != len(saved):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(g["params"]) != len(s["params"]) for g, s in zip(groups, saved)):
            raise ValueError("loaded state dict contains a parameter group that doesn't match the size of optimizer's group")
        by_number = {n: p for g, s in zip(groups, saved) for n, p in zip(s["params"], g["params"])}
        state = defaultdict(dict)
        for number, value in state_dict["state"].items():
            if number in by_number:
                param = by_number[number]
                state[param] = self._cast_state(param, value, number, state_dict["param_groups"])
            else:
                state[number] = value
        for group, new in zip(groups, saved):
            new["params"] = group["params"]
            if "param_names" in group and "param_names" not in new:
                new["param_names"] = group["param_names"]
        self.__setstate__({"state": state, "param_groups": saved})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    # ---- groups

    def add_param_group(self, param_group):
        """Add a dict with "params" and options; missing options are the optimiser's defaults."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        given = param_group["params"]
        if isinstance(given, set):
            raise TypeError("optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets will "
                            "change between runs. Please use a list instead.")
        given = [given] if isinstance(given, Tensor) else list(given)
        names = [p[0] for p in given if isinstance(p, tuple)]
        if names and len(names) != len(given):
            raise ValueError("all optimizer params should be with/without names. Some param names are missing")
        params = param_group["params"] = [p[1] if isinstance(p, tuple) else p for p in given]
        if names:
            param_group["param_names"] = names
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError("optimizer can only optimize Tensors, but one of the params is " + typename(p))
            if not self.defaults.get("differentiable", None) and not (p.is_leaf or p.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            param_group.setdefault(name, default)
        if len(params) != len(set(params)):
            warnings.warn("optimizer contains a parameter group with duplicate parameters; in future, this will cause an error; see "
                          "github.com/pytorch/pytorch/issues/40967 for more information", stacklevel=3)
        self._check_against_others(param_group)
        self.param_groups.append(param_group)

    def _check_against_others(self, param_group):
        named = "param_names" in param_group
        present = set()
        for group in self.param_groups:
            present.update(group["params"])
            if named != ("param_names" in group):
                raise ValueError("all optimizer param groups should be with/without names. cannot add param group "
                                 f"{'with names' if named else 'without names'} to the optimizer")
        if not present.isdisjoint(param_group["params"]):
            raise ValueError("some parameters appear in more than one parameter group")
