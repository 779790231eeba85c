"""Adadelta (Zeiler, 2012)."""
from ._per_tensor import PerTensorOptimizer, step_counter, zeros
from .optimizer import _check_at_least, _check_tensor_lr, _to_scalar

__all__ = ["Adadelta"]


class Adadelta(PerTensorOptimizer):
    """Steps scaled by the ratio of the running sizes of past steps and of gradients."""

    _group_defaults = dict(foreach=None, maximize=False, differentiable=False, capturable=False)
    _real_state = ("square_avg", "acc_delta")

    def __init__(self, params, lr=1.0, rho=0.9, eps=1e-06, weight_decay=0, foreach=None, *, capturable=False, maximize=False,
                 differentiable=False):
        _check_tensor_lr(lr)
        _check_at_least(((lr, "Invalid learning rate"),))
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        _check_at_least(((eps, "Invalid epsilon value"), (weight_decay, "Invalid weight_decay value")))
        super().__init__(params, dict(lr=lr, rho=rho, eps=eps, weight_decay=weight_decay, maximize=maximize, capturable=capturable,
                                      foreach=foreach, differentiable=differentiable))

    def _init_state(self, p, group):
        return {"step": step_counter(group, p), "square_avg": zeros(p), "acc_delta": zeros(p)}

    def _update(self, p, grad, state, group):
        rho, eps, square, delta_sum = group["rho"], group["eps"], state["square_avg"], state["acc_delta"]
        square.mul_(rho).addcmul_(grad, grad, value=1 - rho)
        root = square.add(eps).sqrt_()
        delta = delta_sum.add(eps).sqrt_()
        if group["differentiable"]:
            delta = delta.clone()
        delta.div_(root).mul_(grad)
        delta_sum.mul_(rho).addcmul_(delta, delta, value=1 - rho)
        p.add_(delta, alpha=-_to_scalar(group["lr"]))
