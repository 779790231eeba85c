"""Adamax: Adam with the infinity norm (Kingma and Ba, 2014)."""
from .. import _core as core
from ._per_tensor import PerTensorOptimizer, step_counter, zeros
from .optimizer import _check_at_least, _check_tensor_lr, _get_value, _to_scalar

__all__ = ["Adamax"]


def check_betas(betas):
    for i in (0, 1):
        if not 0.0 <= betas[i] < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {betas[i]}")


class Adamax(PerTensorOptimizer):
    """The running mean of gradients over the decayed maximum of their sizes."""

    _group_defaults = dict(foreach=None, maximize=False, differentiable=False, capturable=False)
    _real_state = ("exp_avg", "exp_inf")

    def __init__(self, params, lr=0.002, betas=(0.9, 0.999), eps=1e-08, weight_decay=0, foreach=None, *, maximize=False,
                 differentiable=False, capturable=False):
        _check_tensor_lr(lr)
        _check_at_least(((lr, "Invalid learning rate"), (eps, "Invalid epsilon value")))
        check_betas(betas)
        _check_at_least(((weight_decay, "Invalid weight_decay value"),))
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, foreach=foreach, maximize=maximize,
                                      differentiable=differentiable, capturable=capturable))

    def _init_state(self, p, group):
        return {"step": step_counter(group, p), "exp_avg": zeros(p), "exp_inf": zeros(p)}

    def _update(self, p, grad, state, group):
        (beta1, beta2), mean, largest = group["betas"], state["exp_avg"], state["exp_inf"]
        mean.lerp_(grad, 1 - beta1)
        size = grad.abs().add_(group["eps"])
        if group["differentiable"]:
            largest.copy_(core.amax(core.stack([largest.mul_(beta2), size]), 0))
        else:
            core.maximum(largest.mul_(beta2), size, out=largest)
        rate = _to_scalar(group["lr"]) / (1 - beta1 ** _get_value(state["step"]))
        p.addcdiv_(mean, largest, value=-rate)
