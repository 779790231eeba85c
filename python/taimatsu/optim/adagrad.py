"""Adagrad (Duchi et al., 2011)."""
from .. import _core as core
from ._per_tensor import PerTensorOptimizer, step_counter
from .optimizer import _check_at_least, _check_tensor_lr, _device_dtype_check_for_fused, _get_value, _to_scalar

__all__ = ["Adagrad"]


class Adagrad(PerTensorOptimizer):
    """Gradients over the root of the sum of their squares."""

    _group_defaults = dict(foreach=None, maximize=False, differentiable=False, fused=None)
    _real_state = ("sum",)

    def __init__(self, params, lr=0.01, lr_decay=0, weight_decay=0, initial_accumulator_value=0, eps=1e-10, foreach=None, *,
                 maximize=False, differentiable=False, fused=None):
        _check_tensor_lr(lr)
        _check_at_least(((lr, "Invalid learning rate"), (lr_decay, "Invalid lr_decay value"), (weight_decay, "Invalid weight_decay value"),
                         (initial_accumulator_value, "Invalid initial_accumulator_value value"), (eps, "Invalid epsilon value")))
        super().__init__(params, dict(lr=lr, lr_decay=lr_decay, eps=eps, weight_decay=weight_decay,
                                      initial_accumulator_value=initial_accumulator_value, foreach=foreach, maximize=maximize,
                                      differentiable=differentiable, fused=fused))
        if fused:
            if differentiable:
                raise RuntimeError("`fused` does not support `differentiable`")
            if foreach:
                raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
            self._step_supports_amp_scaling = True
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p].update(self._init_state(p, group))

    def _init_state(self, p, group):
        if group["fused"]:
            _device_dtype_check_for_fused(p)
        start = self.defaults["initial_accumulator_value"]
        start = complex(start, start) if p.is_complex() else start
        return {"step": step_counter(group, p), "sum": core.full_like(p, start, memory_format=core.preserve_format)}

    def share_memory(self):
        """Put the state where child processes see it."""
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["sum"].share_memory_()

    def _update(self, p, grad, state, group):
        rate = _to_scalar(group["lr"]) / (1 + (_get_value(state["step"]) - 1) * group["lr_decay"])
        total = state["sum"]
        total.addcmul_(grad, grad, value=1)
        root = total.sqrt() + group["eps"] if group["differentiable"] else total.sqrt().add_(group["eps"])
        p.addcdiv_(grad, root, value=-rate)
