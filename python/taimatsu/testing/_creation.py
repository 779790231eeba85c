"""Random tensors for tests."""
import math

from .. import _core as core

_INT_BOUNDS = {"uint8": (0, 10)}


def make_tensor(*shape, dtype, device, low=None, high=None, requires_grad=False, noncontiguous=False, exclude_zero=False,
                memory_format=None):
    """A tensor of this shape with random values in [low, high)."""
    if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        shape = tuple(shape[0])
    name = str(dtype).rpartition(".")[2]
    if noncontiguous and shape:
        wide = make_tensor((*shape[:-1], 2 * shape[-1]), dtype=dtype, device=device, low=low, high=high, exclude_zero=exclude_zero)
        return wide[..., ::2].detach().requires_grad_(requires_grad)
    if name == "bool":
        made = core.randint(0, 2, shape, dtype=dtype, device=device)
    elif dtype.is_floating_point or dtype.is_complex:
        low, high = -9 if low is None else low, 9 if high is None else high
        low = max(low, -math.inf)
        real = core.float64 if name in ("float64", "complex128") else core.float32
        if dtype.is_complex:
            parts = core.empty((*shape, 2), dtype=real, device=device).uniform_(low, high)
            made = core.view_as_complex(parts).to(dtype)
        else:
            made = core.empty(shape, dtype=real, device=device).uniform_(low, high).to(dtype)
    else:
        start, stop = _INT_BOUNDS.get(name, (0, 10) if name.startswith("u") else (-9, 10))
        made = core.randint(start if low is None else int(low), stop if high is None else int(math.ceil(high)), shape, device=device).to(dtype)
    if exclude_zero:
        made = core.where(made == 0, core.ones_like(made), made)
    return made.requires_grad_(requires_grad) if requires_grad else made
