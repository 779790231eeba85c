"""RAdam: Adam with a rectified variance (Liu et al., 2019)."""
from ._per_tensor import PerTensorOptimizer, step_counter, zeros
from .adamax import check_betas
from .optimizer import _check_at_least, _check_tensor_lr, _get_value, _to_scalar

__all__ = ["RAdam"]


class RAdam(PerTensorOptimizer):
    """Adam that takes plain momentum steps until its variance estimate can be trusted."""

    _group_defaults = dict(foreach=None, maximize=False, differentiable=False, decoupled_weight_decay=False, capturable=False)
    _real_state = ("exp_avg", "exp_avg_sq")

    def __init__(self, params, lr=0.001, betas=(0.9, 0.999), eps=1e-08, weight_decay=0, decoupled_weight_decay=False, *, foreach=None,
                 maximize=False, capturable=False, differentiable=False):
        _check_tensor_lr(lr)
        _check_at_least(((lr, "Invalid learning rate"), (eps, "Invalid epsilon value")))
        check_betas(betas)
        _check_at_least(((weight_decay, "Invalid weight_decay value"),))
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, maximize=maximize, foreach=foreach,
                                      capturable=capturable, decoupled_weight_decay=decoupled_weight_decay, differentiable=differentiable))

    def _init_state(self, p, group):
        return {"step": step_counter(group, p), "exp_avg": zeros(p), "exp_avg_sq": zeros(p)}

    def _update(self, p, grad, state, group):
        (beta1, beta2), lr = group["betas"], _to_scalar(group["lr"])
        mean, second, step = state["exp_avg"], state["exp_avg_sq"], _get_value(state["step"])
        mean.lerp_(grad, 1 - beta1)
        second.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        correction2 = 1 - beta2**step
        corrected = mean / (1 - beta1**step)
        longest = 2 / (1 - beta2) - 1               # the length of the moving average in the limit
        length = longest - 2 * step * beta2**step / correction2
        if length <= 5.0:
            p.add_(corrected * lr, alpha=-1.0)
            return
        rectifier = ((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)) ** 0.5
        root = second.sqrt()
        root = root.add(group["eps"]) if group["differentiable"] else root.add_(group["eps"])
        p.add_(corrected * lr * (correction2**0.5 / root) * rectifier, alpha=-1.0)
