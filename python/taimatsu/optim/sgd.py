"""Stochastic gradient descent, with momentum (Sutskever et al., 2013) and Nesterov's variant."""
from .. import _core as core
from .._core import Tensor
from .optimizer import (Optimizer, _by_device_and_dtype, _check_tensor_lr, _device_dtype_check_for_fused, _evaluate, _has_op, _to_scalar,
                        _use_grad_for_differentiable)

__all__ = ["SGD", "sgd"]


class SGD(Optimizer):
    """p -= lr * b, where b is the gradient, or its running sum with momentum."""

    def __init__(self, params, lr=0.001, momentum=0, dampening=0, weight_decay=0, nesterov=False, *, maximize=False, foreach=None,
                 differentiable=False, fused=None):
        _check_tensor_lr(lr)
        for value, what in ((lr, "learning rate"), (momentum, "momentum value"), (weight_decay, "weight_decay value")):
            if value < 0.0:
                raise ValueError(f"Invalid {what}: {value}")
        defaults = dict(lr=lr, momentum=momentum, dampening=dampening, weight_decay=weight_decay, nesterov=nesterov, maximize=maximize,
                        foreach=foreach, differentiable=differentiable, fused=fused)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, defaults)
        if fused:
            self._step_supports_amp_scaling = True
            if differentiable:
                raise RuntimeError("`fused` does not support `differentiable`")
            if foreach:
                raise RuntimeError("`fused` and `foreach` cannot be `True` together.")

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            for name, default in (("nesterov", False), ("maximize", False), ("foreach", None), ("differentiable", False), ("fused", False)):
                group.setdefault(name, default)

    @_use_grad_for_differentiable
    def step(self, closure=None):
        loss = _evaluate(closure)
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            if group["fused"]:
                for p in params:
                    _device_dtype_check_for_fused(p)
            buffers = [self.state[p].get("momentum_buffer") for p in params] if group["momentum"] != 0 else []
            sgd(params, [p.grad for p in params], buffers, any(p.grad.is_sparse for p in params), group["foreach"], group["fused"],
                getattr(self, "grad_scale", None), getattr(self, "found_inf", None), weight_decay=group["weight_decay"],
                momentum=group["momentum"], lr=group["lr"], dampening=group["dampening"], nesterov=group["nesterov"],
                maximize=group["maximize"])
            for p, buffer in zip(params, buffers):
                self.state[p]["momentum_buffer"] = buffer
        return loss


def sgd(params, d_p_list, momentum_buffer_list, has_sparse_grad=False, foreach=None, fused=None, grad_scale=None, found_inf=None, *,
        weight_decay, momentum, lr, dampening, nesterov, maximize):
    """One step of SGD over lists of tensors; new momentum buffers are put into ``momentum_buffer_list``."""
    options = dict(weight_decay=weight_decay, momentum=momentum, lr=lr, dampening=dampening, nesterov=nesterov, maximize=maximize)
    if fused and _has_op("_fused_sgd_"):
        _fused(params, d_p_list, momentum_buffer_list, grad_scale, found_inf, has_sparse_grad, **options)
    elif foreach and _has_op("_foreach_add_") and not has_sparse_grad:
        _foreach(params, d_p_list, momentum_buffer_list, **options)
    else:
        _single(params, d_p_list, momentum_buffer_list, **options)


def _decayed(grad, param, weight_decay):
    if isinstance(weight_decay, Tensor) and weight_decay.requires_grad:
        return grad.addcmul_(param.clone(), weight_decay)
    return grad.add(param, alpha=weight_decay)


def _single(params, grads, buffers, *, weight_decay, momentum, lr, dampening, nesterov, maximize):
    lr = _to_scalar(lr)
    for i, param in enumerate(params):
        grad = -grads[i] if maximize else grads[i]
        if weight_decay != 0:
            grad = _decayed(grad, param, weight_decay)
        if momentum != 0:
            if buffers[i] is None:
                buffers[i] = grad.detach().clone()
            else:
                buffers[i].mul_(momentum).add_(grad, alpha=1 - dampening)
            grad = grad.add(buffers[i], alpha=momentum) if nesterov else buffers[i]
        if isinstance(lr, Tensor) and lr.requires_grad:
            param.addcmul_(grad, lr, value=-1)
        else:
            param.add_(grad, alpha=-lr)


def _foreach(params, grads, buffers, *, weight_decay, momentum, lr, dampening, nesterov, maximize):
    index = {id(p): i for i, p in enumerate(params)}
    for ps, gs, bs in _by_device_and_dtype(params, grads, buffers):
        if maximize:
            gs = core._foreach_neg(gs)
        if weight_decay != 0:
            gs = core._foreach_add(gs, ps, alpha=weight_decay)
        if momentum != 0:
            if all(b is not None for b in bs):
                core._foreach_mul_(bs, momentum)
                core._foreach_add_(bs, gs, alpha=1 - dampening)
            else:
                bs = [g.detach().clone() if b is None else b.mul_(momentum).add_(g, alpha=1 - dampening) for b, g in zip(bs, gs)]
                for p, b in zip(ps, bs):
                    buffers[index[id(p)]] = b
            gs = core._foreach_add(gs, bs, alpha=momentum) if nesterov else bs
        core._foreach_add_(ps, gs, alpha=-float(lr))


def _fused(params, grads, buffers, grad_scale, found_inf, has_sparse_grad, *, momentum, **options):
    if not params:
        return
    if has_sparse_grad:
        raise RuntimeError("`_fused_sgd` does not support sparse gradients")
    first = momentum != 0 and all(b is None for b in buffers)
    if first:
        buffers[:] = [core.empty_like(g) for g in grads]
    for ps, gs, bs in _by_device_and_dtype(params, grads, buffers):
        core._fused_sgd_(ps, gs, bs if momentum != 0 else [], momentum=momentum, is_first_step=first, grad_scale=grad_scale,
                         found_inf=found_inf, **options)
