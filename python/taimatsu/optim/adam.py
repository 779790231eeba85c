"""Adam (Kingma and Ba, 2014), AMSGrad (Reddi et al., 2018) and decoupled weight decay (Loshchilov and Hutter, 2017)."""
from .. import _core as core
from .._core import Tensor
from .optimizer import (Optimizer, _by_device_and_dtype, _check_at_least, _check_capturable, _check_step_tensors,
                        _device_dtype_check_for_fused, _evaluate, _get_value, _has_op, _real, _restore_steps, _step_counter, _to_scalar,
                        _use_grad_for_differentiable)

__all__ = ["Adam", "adam"]


def _check_tensor_option(name, value, foreach, capturable):
    if isinstance(value, Tensor):
        if foreach and not capturable:
            raise ValueError(f"{name} as a Tensor is not supported for capturable=False and foreach=True")
        if value.numel() != 1:
            raise ValueError(f"Tensor {name} must be 1-element")


class Adam(Optimizer):
    """Steps along the running mean of gradients over the root of the running mean of their squares."""

    def __init__(self, params, lr=0.001, betas=(0.9, 0.999), eps=1e-08, weight_decay=0, amsgrad=False, *, foreach=None, maximize=False,
                 capturable=False, differentiable=False, fused=None, decoupled_weight_decay=False):
        _check_tensor_option("lr", lr, foreach, capturable)
        _check_at_least(((lr, "Invalid learning rate"), (eps, "Invalid epsilon value")))
        for i in (0, 1):
            if not 0.0 <= betas[i] < 1.0:
                raise ValueError(f"Invalid beta parameter at index {i}: {betas[i]}")
        _check_at_least(((weight_decay, "Invalid weight_decay value"),))
        if not any(all(isinstance(b, kind) for b in (betas[0], betas[1])) for kind in (float, Tensor)):
            raise ValueError("betas must be either both floats or both Tensors")
        for i in (0, 1):
            _check_tensor_option(f"betas[{i}]", betas[i], foreach, capturable)
        betas = tuple(map(_to_scalar, betas))
        defaults = dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, amsgrad=amsgrad, maximize=maximize, foreach=foreach,
                        capturable=capturable, differentiable=differentiable, fused=fused, decoupled_weight_decay=decoupled_weight_decay)
        super().__init__(params, defaults)
        if fused:
            if differentiable:
                raise RuntimeError("`fused` does not support `differentiable`")
            self._step_supports_amp_scaling = True
            if foreach:
                raise RuntimeError("`fused` and `foreach` cannot be `True` together.")

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            for name, default in (("amsgrad", False), ("maximize", False), ("foreach", None), ("capturable", False),
                                  ("differentiable", False), ("decoupled_weight_decay", False), ("fused", None)):
                group.setdefault(name, default)
        _restore_steps(self)

    def _init_state(self, p, group):
        state = self.state[p]
        if len(state) == 0:
            if group["fused"]:
                _device_dtype_check_for_fused(p)
            state["step"] = _step_counter(group, p)
            state["exp_avg"] = core.zeros_like(p, memory_format=core.preserve_format)
            state["exp_avg_sq"] = core.zeros_like(p, memory_format=core.preserve_format)
            if group["amsgrad"]:
                state["max_exp_avg_sq"] = core.zeros_like(p, memory_format=core.preserve_format)
        if group["differentiable"] and state["step"].requires_grad:
            raise RuntimeError("`requires_grad` is not supported for `step` in differentiable mode")
        if group["foreach"] and isinstance(group["lr"], Tensor) and not group["capturable"]:
            raise RuntimeError("lr as a Tensor is not supported for capturable=False and foreach=True")
        return state

    @_use_grad_for_differentiable
    def step(self, closure=None):
        loss = _evaluate(closure)
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            if any(p.grad.is_sparse for p in params):
                raise RuntimeError("Adam does not support sparse gradients, please consider SparseAdam instead")
            states = [self._init_state(p, group) for p in params]
            beta1, beta2 = group["betas"]
            adam(params, [p.grad for p in params], [s["exp_avg"] for s in states], [s["exp_avg_sq"] for s in states],
                 [s["max_exp_avg_sq"] for s in states] if group["amsgrad"] else [], [s["step"] for s in states],
                 foreach=group["foreach"], capturable=group["capturable"], differentiable=group["differentiable"], fused=group["fused"],
                 grad_scale=getattr(self, "grad_scale", None), found_inf=getattr(self, "found_inf", None), amsgrad=group["amsgrad"],
                 beta1=beta1, beta2=beta2, lr=group["lr"], weight_decay=group["weight_decay"], eps=group["eps"],
                 maximize=group["maximize"], decoupled_weight_decay=group["decoupled_weight_decay"])
        return loss


def adam(params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, foreach=None, capturable=False, differentiable=False,
         fused=None, grad_scale=None, found_inf=None, has_complex=False, decoupled_weight_decay=False, *, amsgrad, beta1, beta2, lr,
         weight_decay, eps, maximize):
    """One step of Adam over lists of tensors."""
    _check_step_tensors(state_steps)
    lists = (params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps)
    options = dict(amsgrad=amsgrad, beta1=beta1, beta2=beta2, lr=lr, weight_decay=weight_decay, eps=eps, maximize=maximize)
    if fused and _has_op("_fused_adam_") and params:
        _fused(lists, decoupled_weight_decay, grad_scale, found_inf, **options)
    elif foreach and _has_op("_foreach_lerp_") and not differentiable and not capturable:
        _foreach(lists, decoupled_weight_decay, **options)
    else:
        if grad_scale is not None or found_inf is not None:
            raise AssertionError("Expected grad_scale and found_inf to be None")
        _single(lists, decoupled_weight_decay, differentiable, capturable, **options)


def _decay(grad, param, weight_decay, decoupled, lr, differentiable):
    if decoupled:
        param.mul_(1 - lr * weight_decay)
        return grad
    if differentiable and isinstance(weight_decay, Tensor) and weight_decay.requires_grad:
        return grad.addcmul_(param.clone(), weight_decay)
    return grad.add(param, alpha=weight_decay)


def _denominator(second, biggest, root, eps, divisor=None):
    """sqrt(second moment) / root + eps, of the largest second moment so far with AMSGrad; all over ``divisor`` where given."""
    if biggest is not None:
        core.maximum(biggest, second, out=biggest)
        second = biggest
    if divisor is None:
        return (second.sqrt() / root).add_(eps)
    return (second.sqrt() / (root * divisor)).add_(eps / divisor)


def _single(lists, decoupled, differentiable, capturable, *, amsgrad, beta1, beta2, lr, weight_decay, eps, maximize):
    lr, beta1, beta2 = _to_scalar(lr), _to_scalar(beta1), _to_scalar(beta2)
    for i, (param, grad, mean, second, step) in enumerate(zip(*(lists[k] for k in (0, 1, 2, 3, 5)))):
        grad = -grad if maximize else grad
        _check_capturable(capturable, param, step)
        step += 1
        if weight_decay != 0:
            grad = _decay(grad, param, weight_decay, decoupled, lr, differentiable)
        biggest = lists[4][i] if amsgrad else None
        if param.is_complex():
            param, grad, mean, second, biggest = _real(param, grad, mean, second, biggest)
        mean.lerp_(grad, 1 - beta1)
        if differentiable and isinstance(beta2, Tensor):
            second.lerp_(core.square(grad), weight=1 - beta2)
        else:
            second.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        if capturable or differentiable:
            correction1 = 1 - beta1 ** (step.clone() if differentiable else step)
            root = (1 - beta2 ** (step.clone() if differentiable else step)).sqrt()
            if differentiable and biggest is not None:
                biggest.copy_(core.maximum(biggest.clone(), second))
                second, biggest = biggest, None
            denominator = _denominator(second, biggest, root, eps, (lr / correction1).neg())
            param.addcdiv_(mean.clone() if differentiable else mean, denominator)
            continue
        t = _get_value(step)
        correction1, correction2 = 1 - beta1**t, 1 - beta2**t
        param.addcdiv_(mean, _denominator(second, biggest, correction2**0.5, eps), value=-(lr / correction1))


def _foreach(lists, decoupled, *, amsgrad, beta1, beta2, lr, weight_decay, eps, maximize):
    for params, grads, means, seconds, biggest, steps in _by_device_and_dtype(*lists):
        if params[0].is_complex():
            params, grads, means, seconds, biggest = (_real(*x) for x in (params, grads, means, seconds, biggest))
        if maximize:
            grads = core._foreach_neg(grads)
        core._foreach_add_(steps, 1)
        if weight_decay != 0 and decoupled:
            core._foreach_mul_(params, 1 - lr * weight_decay)
        elif weight_decay != 0:
            grads = core._foreach_add(grads, params, alpha=weight_decay)
        core._foreach_lerp_(means, grads, 1 - beta1)
        core._foreach_mul_(seconds, beta2)
        core._foreach_addcmul_(seconds, grads, grads, 1 - beta2)
        if amsgrad:
            core._foreach_maximum_(biggest, seconds)
            seconds = biggest
        ts = [_get_value(s) for s in steps]
        roots = core._foreach_sqrt(seconds)
        core._foreach_div_(roots, [(1 - beta2**t) ** 0.5 for t in ts])
        core._foreach_add_(roots, eps)
        core._foreach_addcdiv_(params, means, roots, [lr / (1 - beta1**t) * -1 for t in ts])


def _fused(lists, decoupled, grad_scale, found_inf, *, amsgrad, lr, **options):
    operator = core._fused_adamw_ if decoupled else core._fused_adam_
    for params, grads, means, seconds, biggest, steps in _by_device_and_dtype(*lists):
        core._foreach_add_(steps, 1) if _has_op("_foreach_add_") else [s.add_(1) for s in steps]
        operator(params, grads, means, seconds, biggest, steps, amsgrad=amsgrad, lr=lr, grad_scale=grad_scale, found_inf=found_inf,
                 **options)
        if found_inf is not None:
            for s in steps:
                s.sub_(found_inf)
