"""Pooling of nn.functional."""
from .. import _core as core
from .modules.utils import _list_with_default, _pair, _single, _triple

_nn = core._nn

core.export(("avg_pool1d", "adaptive_avg_pool1d"), globals())
core.export(("avg_pool2d", "avg_pool3d"), globals(), _nn)


def _max_pool(name, plain, with_indices):
    """A pooling function of PyTorch's signature over the two operators."""
    def pool(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
        operator = with_indices if return_indices else plain
        return operator()(input, kernel_size, [] if stride is None else stride, padding, dilation, ceil_mode)

    pool.__name__ = pool.__qualname__ = name
    pool.__doc__ = "The maximum of every window; with ``return_indices`` also its position in the input's plane."
    return pool


max_pool1d = _max_pool("max_pool1d", lambda: core.max_pool1d, lambda: core.max_pool1d_with_indices)
max_pool2d = _max_pool("max_pool2d", lambda: core.max_pool2d, lambda: _nn.max_pool2d_with_indices)
max_pool3d = _max_pool("max_pool3d", lambda: core.max_pool3d, lambda: _nn.max_pool3d_with_indices)


def max_pool1d_with_indices(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    return max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode, True)


def max_pool2d_with_indices(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    return max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode, True)


def max_pool3d_with_indices(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    return max_pool3d(input, kernel_size, stride, padding, dilation, ceil_mode, True)


def adaptive_max_pool1d(input, output_size, return_indices=False):
    """Maxima of windows chosen so that the output has ``output_size``."""
    out = core.adaptive_max_pool1d(input, output_size)
    return out if return_indices else out[0]


def adaptive_max_pool2d(input, output_size, return_indices=False):
    """Maxima of windows chosen so that the output has ``output_size`` (None: the input's size)."""
    out = _nn.adaptive_max_pool2d(input, _list_with_default(output_size, input.size()))
    return out if return_indices else out[0]


def adaptive_max_pool3d(input, output_size, return_indices=False):
    """Maxima of windows chosen so that the output has ``output_size`` (None: the input's size)."""
    out = _nn.adaptive_max_pool3d(input, _list_with_default(output_size, input.size()))
    return out if return_indices else out[0]


def adaptive_max_pool1d_with_indices(input, output_size, return_indices=False):
    return adaptive_max_pool1d(input, output_size, True)


def adaptive_max_pool2d_with_indices(input, output_size, return_indices=False):
    return adaptive_max_pool2d(input, output_size, True)


def adaptive_max_pool3d_with_indices(input, output_size, return_indices=False):
    return adaptive_max_pool3d(input, output_size, True)


def adaptive_avg_pool2d(input, output_size):
    """Means of windows chosen so that the output has ``output_size`` (None: the input's size)."""
    return _nn.adaptive_avg_pool2d(input, _list_with_default(output_size, input.size()))


def adaptive_avg_pool3d(input, output_size):
    """Means of windows chosen so that the output has ``output_size`` (None: the input's size)."""
    return _nn.adaptive_avg_pool3d(input, _list_with_default(output_size, input.size()))


def _fractional(n, operator, input, kernel_size, output_size, output_ratio, samples):
    if output_size is None and output_ratio is None:
        raise ValueError(f"fractional_max_pool{n}d requires specifying either an output_size or an output_ratio")
    if output_size is None:
        if n == 2 and not isinstance(output_ratio, float) and len(output_ratio) > 2:
            raise ValueError("fractional_max_pool2d requires output_ratio to either be a single Int or tuple of Ints.")
        ratio = (_pair if n == 2 else _triple)(output_ratio)
        output_size = [int(input.size(i - n) * ratio[i]) for i in range(n)]
    if samples is None:
        batch = 1 if input.dim() == n + 1 else input.size(0)
        samples = core.rand(batch, input.size(-n - 1), n, dtype=input.dtype, device=input.device)
    return operator(input, kernel_size, output_size, samples)


def fractional_max_pool2d(input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None):
    """Maxima of windows with random steps."""
    out = _fractional(2, _nn.fractional_max_pool2d, input, kernel_size, output_size, output_ratio, _random_samples)
    return out if return_indices else out[0]


def fractional_max_pool3d(input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None):
    """Maxima of windows with random steps."""
    out = _fractional(3, _nn.fractional_max_pool3d, input, kernel_size, output_size, output_ratio, _random_samples)
    return out if return_indices else out[0]


def fractional_max_pool2d_with_indices(input, kernel_size, output_size=None, output_ratio=None, return_indices=False,
                                       _random_samples=None):
    return fractional_max_pool2d(input, kernel_size, output_size, output_ratio, True, _random_samples)


def fractional_max_pool3d_with_indices(input, kernel_size, output_size=None, output_ratio=None, return_indices=False,
                                       _random_samples=None):
    return fractional_max_pool3d(input, kernel_size, output_size, output_ratio, True, _random_samples)


def _unpool_output_size(input, kernel_size, stride, padding, output_size):
    n = len(kernel_size)
    sizes = input.size()[-n:]
    default = [(sizes[d] - 1) * stride[d] + kernel_size[d] - 2 * padding[d] for d in range(n)]
    if output_size is None:
        chosen = default
    else:
        if len(output_size) == n + 2:
            output_size = output_size[2:]
        if len(output_size) != n:
            raise ValueError(f"output_size should be a sequence containing {n} or {n + 2} elements, but it has a length of "
                             f"'{len(output_size)}'")
        for d in range(n):
            low, high = default[d] - stride[d], default[d] + stride[d]
            if not low < output_size[d] < high:
                raise ValueError(f'invalid output_size "{output_size}" (dim {d} must be between {low} and {high})')
        chosen = output_size
    for d in range(n):
        if chosen[d] < 0:
            raise ValueError("max_unpooling: output_size must contain non-negative spatial dimensions, but got "
                             f"output_size[{d}]={chosen[d]}")
    return chosen


def _unpool_args(spread, input, kernel_size, stride, padding, output_size):
    kernel_size, padding = spread(kernel_size), spread(padding)
    stride = kernel_size if stride is None else spread(stride)
    return _unpool_output_size(input, kernel_size, stride, padding, output_size), stride, padding


def max_unpool1d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Put maxima back where max_pool1d found them."""
    size, _, _ = _unpool_args(_single, input, kernel_size, stride, padding, output_size)
    return _nn.max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), [*size, 1]).squeeze(-1)


def max_unpool2d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Put maxima back where max_pool2d found them."""
    size, _, _ = _unpool_args(_pair, input, kernel_size, stride, padding, output_size)
    return _nn.max_unpool2d(input, indices, size)


def max_unpool3d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Put maxima back where max_pool3d found them."""
    size, stride, padding = _unpool_args(_triple, input, kernel_size, stride, padding, output_size)
    return _nn.max_unpool3d(input, indices, size, stride, padding)


def _lp_pool(n, input, norm_type, kernel_size, stride, ceil_mode):
    max_pool = (max_pool1d, max_pool2d, max_pool3d)[n - 1]
    if norm_type == float("inf"):
        return max_pool(input.abs(), kernel_size, stride, 0, 1, ceil_mode)
    if norm_type == -float("inf"):
        return -max_pool(-input.abs(), kernel_size, stride, 0, 1, ceil_mode)
    mean = core.avg_pool1d if n == 1 else getattr(_nn, f"avg_pool{n}d")
    powers = input.pow(norm_type)
    out = mean(powers, kernel_size, padding=0, ceil_mode=ceil_mode) if stride is None else mean(powers, kernel_size, stride, 0, ceil_mode)
    count = 1
    for k in (_single, _pair, _triple)[n - 1](kernel_size):
        count *= k
    return (core.sign(out) * core.relu(core.abs(out))).mul(count).pow(1.0 / norm_type)


def lp_pool1d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The p-norm of every window."""
    return _lp_pool(1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The p-norm of every window."""
    return _lp_pool(2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The p-norm of every window."""
    return _lp_pool(3, input, norm_type, kernel_size, stride, ceil_mode)
