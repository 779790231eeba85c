"""Gradient clipping."""
import warnings

from ... import _core as core
from ..._core import Tensor

__all__ = []


def _with_grads(parameters):
    """(the parameters' gradients, whether the iterable was empty); a single tensor counts as a list of one."""
    if isinstance(parameters, Tensor):
        return [parameters.grad] if parameters.grad is not None else []
    if not isinstance(parameters, (list, tuple)):
        parameters = list(parameters)
        if not parameters:
            warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=4)
    return [p.grad for p in parameters if p.grad is not None]


def _norms(grads, norm_type, foreach):
    """One norm per gradient; ``foreach`` computes those of a device and dtype in one call."""
    if foreach is not False and hasattr(core._functions, "_foreach_norm") and len({(g.device, g.dtype) for g in grads}) == 1:
        return list(core._foreach_norm(grads, norm_type))
    return [core._linalg.linalg_vector_norm(g, norm_type) for g in grads]


def _total_norm(tensors, norm_type, error_if_nonfinite, foreach):
    tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    norm_type = float(norm_type)
    if not tensors:
        return core.tensor(0.0)
    home = tensors[0].device
    total = core._linalg.linalg_vector_norm(core.stack([n.to(home) for n in _norms(tensors, norm_type, foreach)]), norm_type)
    if error_if_nonfinite and core.logical_or(total.isnan(), total.isinf()):
        raise RuntimeError(f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be clipped. To "
                           "disable this error and scale the gradients by the non-finite norm anyway, set `error_if_nonfinite=False`")
    return total


def get_total_norm(tensors, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The norm of all tensors together, as if they were one vector."""
    with core.no_grad():
        return _total_norm(tensors, norm_type, error_if_nonfinite, foreach)


def _scale(grads, max_norm, total_norm, foreach):
    if not grads:
        return
    coefficient = core.clamp(float(max_norm) / (total_norm + 1e-6), max=1.0)
    if foreach is not False and hasattr(core._functions, "_foreach_mul_") and len({(g.device, g.dtype) for g in grads}) == 1:
        core._foreach_mul_(grads, coefficient.to(grads[0].device))
        return
    for g in grads:
        g.mul_(coefficient.to(g.device))


def clip_grads_with_norm_(parameters, max_norm, total_norm, foreach=None):
    """Scale the gradients as clip_grad_norm_ does, with a total norm that is known already."""
    with core.no_grad():
        _scale(_with_grads(parameters), max_norm, total_norm, foreach)


def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Scale all gradients in place so that their joint norm is at most ``max_norm``; returns the norm before."""
    with core.no_grad():
        grads = _with_grads(parameters)
        total = _total_norm(grads, norm_type, error_if_nonfinite, foreach)
        _scale(grads, max_norm, total, foreach)
    return total


def clip_grad_norm(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Deprecated name of clip_grad_norm_."""
    warnings.warn("`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.", FutureWarning,
                  stacklevel=2)
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters, clip_value, foreach=None):
    """Limit every element of every gradient to [-clip_value, clip_value], in place."""
    clip_value = float(clip_value)
    with core.no_grad():
        for g in _with_grads(parameters):
            g.clamp_(min=-clip_value, max=clip_value)
