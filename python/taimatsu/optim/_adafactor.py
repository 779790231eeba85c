"""Adafactor: adaptive rates with factored second moments (Shazeer and Stern, 2018)."""
from .. import _core as core
from ._per_tensor import PerTensorOptimizer, zeros
from .optimizer import _check_at_least, _check_tensor_lr, _get_scalar_dtype, _to_scalar

__all__ = ["Adafactor"]


class Adafactor(PerTensorOptimizer):
    """Adam-like steps that keep one number per row and per column of a matrix instead of one per element."""

    _group_defaults = dict(foreach=None)

    def __init__(self, params, lr=0.01, beta2_decay=-0.8, eps=(None, 0.001), d=1.0, weight_decay=0.0, *, foreach=None, maximize=False):
        _check_tensor_lr(lr)
        if not 0.0 <= lr:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not 0.0 >= beta2_decay:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None:
            _check_at_least(((eps[0], "epsilon1 should be >= 0 but is"),))
        _check_at_least(((eps[1], "epsilon2 should be >= 0 but is"),))
        if not 1.0 <= d:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        _check_at_least(((weight_decay, "weight_decay should be >= 0 but is"),))
        super().__init__(params, dict(lr=lr, beta2_decay=beta2_decay, eps=eps, d=d, weight_decay=weight_decay, foreach=foreach,
                                      maximize=maximize))

    def step(self, closure=None):
        loss = None
        if closure is not None:
            with core.enable_grad():
                loss = closure()
        with core.no_grad():
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is not None:
                        if p.is_complex():
                            raise RuntimeError("Adafactor does not support complex parameters")
                        self._step_one(p, p.grad, group)
        return loss

    def _init_state(self, p, group):
        state, grad = {"step": core.tensor(0.0, dtype=_get_scalar_dtype())}, p.grad
        if grad.dim() > 1:
            state["row_var"] = grad.new_zeros((*grad.shape[:-1], 1))
            state["col_var"] = grad.new_zeros((*grad.shape[:-2], 1, grad.shape[-1]))
        else:
            state["variance"] = zeros(grad)
        return state

    @staticmethod
    def _decay(p, grad, group):
        return grad         # comes later: the step's size depends on the parameter before it

    @staticmethod
    def _variance(grad, state, weight, eps1):
        if grad.dim() <= 1:
            state["variance"].lerp_(grad * grad, weight)
            return state["variance"].clone()
        row, col = state["row_var"], state["col_var"]
        for mean, dim in ((row, -1), (col, -2)):
            mean.lerp_(_norm(grad, dim).square_().div_(grad.size(dim)), weight)
        return (row @ col).div_(row.mean(dim=-2, keepdim=True).clamp_(min=eps1))

    def _update(self, p, grad, state, group):
        lr, (eps1, eps2) = _to_scalar(group["lr"]), group["eps"]
        eps1 = core.finfo(p.dtype).eps if eps1 is None else eps1
        step = state["step"].item()
        rate = max(eps2, p.norm(2).item() / p.numel() ** 0.5) * min(lr, 1 / step**0.5)
        if group["weight_decay"] != 0:
            p.mul_(1 - lr * group["weight_decay"])
        update = self._variance(grad, state, step ** group["beta2_decay"], eps1).clamp_(min=eps1 * eps1).rsqrt_()
        update.mul_(grad)
        clip = max(1.0, update.norm(2).item() / (update.numel() ** 0.5 * group["d"]))
        p.add_(update, alpha=-rate / clip)


def _norm(x, dim):
    return core._linalg.linalg_vector_norm(x, 2, [dim], True)
