"""NAdam: Adam with Nesterov momentum (Dozat, 2016)."""
from .. import _core as core
from ._per_tensor import PerTensorOptimizer, step_counter, zeros
from .adamax import check_betas
from .optimizer import _check_at_least, _check_tensor_lr, _get_value, _restore_steps, _to_scalar

__all__ = ["NAdam"]


class NAdam(PerTensorOptimizer):
    """Adam whose step looks one momentum step ahead."""

    _group_defaults = dict(maximize=False, foreach=None, capturable=False, differentiable=False, decoupled_weight_decay=False)
    _real_state = ("exp_avg", "exp_avg_sq")

    def __init__(self, params, lr=0.002, betas=(0.9, 0.999), eps=1e-08, weight_decay=0, momentum_decay=0.004,
                 decoupled_weight_decay=False, *, foreach=None, maximize=False, capturable=False, differentiable=False):
        _check_tensor_lr(lr)
        _check_at_least(((lr, "Invalid learning rate"), (eps, "Invalid epsilon value")))
        check_betas(betas)
        _check_at_least(((weight_decay, "Invalid weight_decay value"), (momentum_decay, "Invalid momentum_decay value")))
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, momentum_decay=momentum_decay,
                                      decoupled_weight_decay=decoupled_weight_decay, maximize=maximize, foreach=foreach,
                                      capturable=capturable, differentiable=differentiable))

    def __setstate__(self, state):
        super().__setstate__(state)
        _restore_steps(self, "mu_product")

    def _init_state(self, p, group):
        step = step_counter(group, p)
        return {"step": step, "mu_product": core.ones_like(step), "exp_avg": zeros(p), "exp_avg_sq": zeros(p)}

    def _update(self, p, grad, state, group):
        (beta1, beta2), lr = group["betas"], _to_scalar(group["lr"])
        mean, second, product = state["exp_avg"], state["exp_avg_sq"], state["mu_product"]
        step = _get_value(state["step"])
        mu = beta1 * (1.0 - 0.5 * 0.96 ** (step * group["momentum_decay"]))
        mu_next = beta1 * (1.0 - 0.5 * 0.96 ** ((step + 1) * group["momentum_decay"]))
        product *= mu
        mean.lerp_(grad, 1 - beta1)
        second.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        root = second.div(1 - beta2**step).sqrt().add_(group["eps"])
        so_far = _get_value(product)
        p.addcdiv_(grad, root, value=-lr * (1.0 - mu) / (1.0 - so_far))
        p.addcdiv_(mean, root, value=-lr * mu_next / (1.0 - so_far * mu_next))
