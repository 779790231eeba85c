"""RMSprop (Hinton's lecture notes), optionally centred (Graves, 2013) and with momentum."""
from ._per_tensor import PerTensorOptimizer, step_counter, zeros
from .optimizer import _check_at_least, _check_tensor_lr, _to_scalar

__all__ = ["RMSprop"]


class RMSprop(PerTensorOptimizer):
    """Gradients over the root of the running mean of their squares."""

    _group_defaults = dict(momentum=0, centered=False, foreach=None, maximize=False, differentiable=False, capturable=False)
    _real_state = ("square_avg", "grad_avg", "momentum_buffer")

    def __init__(self, params, lr=0.01, alpha=0.99, eps=1e-08, weight_decay=0, momentum=0, centered=False, capturable=False, foreach=None,
                 maximize=False, differentiable=False):
        _check_tensor_lr(lr)
        _check_at_least(((lr, "Invalid learning rate"), (eps, "Invalid epsilon value"), (momentum, "Invalid momentum value"),
                         (weight_decay, "Invalid weight_decay value"), (alpha, "Invalid alpha value")))
        super().__init__(params, dict(lr=lr, momentum=momentum, alpha=alpha, eps=eps, centered=centered, weight_decay=weight_decay,
                                      capturable=capturable, foreach=foreach, maximize=maximize, differentiable=differentiable))

    def _init_state(self, p, group):
        state = {"step": step_counter(group, p), "square_avg": zeros(p)}
        if group["momentum"] > 0:
            state["momentum_buffer"] = zeros(p)
        if group["centered"]:
            state["grad_avg"] = zeros(p)
        return state

    def _update(self, p, grad, state, group):
        lr, alpha, square = _to_scalar(group["lr"]), group["alpha"], state["square_avg"]
        square.mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
        if group["centered"]:
            mean = state["grad_avg"]
            mean.lerp_(grad, 1 - alpha)
            root = square.addcmul(mean, mean, value=-1).sqrt_()
        else:
            root = square.sqrt()
        root = root.add(group["eps"]) if group["differentiable"] else root.add_(group["eps"])
        if group["momentum"] > 0:
            buffer = state["momentum_buffer"]
            buffer.mul_(group["momentum"]).addcdiv_(grad, root)
            p.add_(buffer, alpha=-lr)
        else:
            p.addcdiv_(grad, root, value=-lr)
