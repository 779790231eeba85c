"""Parameters as one vector, and back."""
from ... import _core as core
from ..._core import Tensor


def _check_param_device(param, old_param_device):
    """The device that all parameters so far share (a number, -1 for the CPU); raises where ``param`` is elsewhere."""
    here = param.get_device() if param.is_cuda else -1
    if old_param_device is not None and here != old_param_device:
        raise TypeError("Found two parameters on different devices, this is currently not supported.")
    return here


def parameters_to_vector(parameters):
    """All parameters, flattened and joined."""
    device, flat = None, []
    for p in parameters:
        device = _check_param_device(p, device)
        flat.append(p.view(-1))
    return core.cat(flat)


def vector_to_parameters(vec, parameters):
    """Make each parameter a view of its part of ``vec``."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {core.typename(vec)}")
    device, start = None, 0
    for p in parameters:
        device = _check_param_device(p, device)
        n = p.numel()
        p.data = vec[start:start + n].view_as(p).data
        start += n
