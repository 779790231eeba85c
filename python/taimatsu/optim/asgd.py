"""Averaged stochastic gradient descent (Polyak and Juditsky, 1992)."""
from .. import _core as core
from ._per_tensor import PerTensorOptimizer, step_counter, zeros
from .optimizer import _check_at_least, _check_tensor_lr, _get_value, _restore_steps, _to_scalar

__all__ = ["ASGD"]


class ASGD(PerTensorOptimizer):
    """SGD with a falling rate; ``state["ax"]`` is the average of the parameters from step ``t0`` on."""

    _group_defaults = dict(foreach=None, maximize=False, differentiable=False, capturable=False)
    _real_state = ("ax",)

    def __init__(self, params, lr=0.01, lambd=0.0001, alpha=0.75, t0=1000000.0, weight_decay=0, foreach=None, maximize=False,
                 differentiable=False, capturable=False):
        _check_tensor_lr(lr)
        _check_at_least(((lr, "Invalid learning rate"), (weight_decay, "Invalid weight_decay value")))
        super().__init__(params, dict(lr=lr, lambd=lambd, alpha=alpha, t0=t0, weight_decay=weight_decay, foreach=foreach, maximize=maximize,
                                      differentiable=differentiable, capturable=capturable))

    def __setstate__(self, state):
        super().__setstate__(state)
        for key in ("eta", "mu"):
            _restore_steps(self, key)

    def _init_state(self, p, group):
        step = step_counter(group, p)
        return {"step": step, "eta": core.full_like(step, float(_to_scalar(group["lr"]))), "mu": core.ones_like(step), "ax": zeros(p)}

    def _update(self, p, grad, state, group):
        lr, lambd = _to_scalar(group["lr"]), group["lambd"]
        mu, ax, eta, step = state["mu"], state["ax"], state["eta"], _get_value(state["step"])
        rate = _get_value(eta)
        p.mul_(1 - lambd * rate)
        p.add_(grad, alpha=-rate)
        if mu.item() != 1:
            ax.add_(p.sub(ax).mul_(mu))
        else:
            ax.copy_(p)
        eta.copy_(core.as_tensor(lr / (1 + lambd * lr * step) ** group["alpha"]))
        mu.copy_(core.as_tensor(1 / max(1, step - group["t0"])))
