"""Rprop: resilient backpropagation (Riedmiller and Braun, 1993)."""
from .. import _core as core
from ._per_tensor import PerTensorOptimizer, step_counter, zeros
from .optimizer import _check_at_least, _check_tensor_lr, _to_scalar

__all__ = ["Rprop"]


class Rprop(PerTensorOptimizer):
    """Each element has a step size of its own that grows while the gradient's sign stays and shrinks when it turns."""

    _group_defaults = dict(foreach=None, maximize=False, differentiable=False, capturable=False)
    _real_state = ("prev", "step_size")

    def __init__(self, params, lr=0.01, etas=(0.5, 1.2), step_sizes=(1e-06, 50), *, capturable=False, foreach=None, maximize=False,
                 differentiable=False):
        _check_tensor_lr(lr)
        _check_at_least(((lr, "Invalid learning rate"),))
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(params, dict(lr=lr, etas=etas, step_sizes=step_sizes, foreach=foreach, maximize=maximize,
                                      differentiable=differentiable, capturable=capturable))

    def _init_state(self, p, group):
        lr = _to_scalar(group["lr"])
        start = complex(lr, lr) if p.is_complex() else float(lr)
        return {"step": step_counter(group, p), "prev": zeros(p), "step_size": core.full_like(p.grad, start)}

    def _update(self, p, grad, state, group):
        (shrink, grow), prev, size = group["etas"], state["prev"], state["step_size"]
        sign = grad.mul(prev.clone() if group["differentiable"] else prev).sign()
        factor = core.where(sign.gt(0), grow, core.where(sign.lt(0), shrink, 1.0)).to(size.dtype)
        size.mul_(factor).clamp_(*group["step_sizes"])
        grad = core.where(sign.lt(0), core.zeros_like(grad), grad)      # no step where the sign turned
        p.addcmul_(grad.sign(), size, value=-1)
        prev.copy_(grad)
