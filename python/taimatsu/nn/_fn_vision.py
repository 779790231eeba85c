"""Resampling, padding and patches of nn.functional."""
import warnings

from .. import _core as core
from .._core import Tensor
from .modules.utils import _pair

_nn = core._nn

core.export(("pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "native_channel_shuffle"), globals())

GRID_SAMPLE_INTERPOLATION_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
GRID_SAMPLE_PADDING_MODES = {"zeros": 0, "border": 1, "reflection": 2}


def pad(input, pad, mode="constant", value=None):
    """Pad the last dimensions: ``pad`` holds (before, after) pairs, last dimension first."""
    return _nn.pad(input, pad, mode, value)


def _is_integer(x):
    if isinstance(x, Tensor):
        return not x.is_floating_point()
    return hasattr(x, "__index__")


def _per_dim(value, dim, input, what):
    """``value`` as a list with one entry per spatial dimension."""
    if not isinstance(value, (list, tuple)):
        return [value] * dim
    if len(value) != dim:
        shape, letter = ("size", "o") if what == "size" else ("scale_factor", "s")
        found = f"output size of {value}" if what == "size" else f"scale_factor of shape {value}"
        both = "output" if what == "size" else "scale_factor"
        raise ValueError(
            f"Input and {both} must have the same number of spatial dimensions, but got input with spatial dimensions of "
            f"{list(input.shape[2:])} and {found}. Please provide input tensor in (N, C, d1, d2, ...,dK) format and "
            f"{'output size' if shape == 'size' else shape} in ({letter}1, {letter}2, ...,{letter}K) format.")
    if what == "size" and not all(_is_integer(x) for x in value):
        raise TypeError("expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, int, int], but got size with types "
                        f"{[type(x) for x in value]}")
    return value


_RESAMPLE = {(3, "nearest"): "upsample_nearest1d", (4, "nearest"): "upsample_nearest2d", (5, "nearest"): "upsample_nearest3d",
             (3, "nearest-exact"): "_upsample_nearest_exact1d", (4, "nearest-exact"): "_upsample_nearest_exact2d",
             (5, "nearest-exact"): "_upsample_nearest_exact3d", (3, "linear"): "upsample_linear1d",
             (4, "bilinear"): "upsample_bilinear2d", (5, "trilinear"): "upsample_trilinear3d", (4, "bicubic"): "upsample_bicubic2d",
             (4, "lanczos"): None}
_RANK = {"linear": 3, "bilinear": 4, "trilinear": 5}


def _resample(input, mode, size, align_corners, scales, antialias):
    key = (input.dim(), mode)
    if key not in _RESAMPLE:
        if mode in _RANK and input.dim() in (3, 4, 5):
            raise NotImplementedError(f"Got {input.dim()}D input, but {mode} mode needs {_RANK[mode]}D input")
        raise NotImplementedError(
            f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {input.dim()}D) for the modes: nearest | linear | bilinear | "
            f"bicubic | trilinear | lanczos | area | nearest-exact (got {mode})")
    if mode == "lanczos":
        if align_corners:
            raise ValueError("Lanczos mode does not support align_corners=True")
        if not antialias:
            raise ValueError("Lanczos mode requires antialias=True")
    if mode.startswith("nearest"):
        return getattr(_nn, _RESAMPLE[key])(input, size, scales)
    name = f"_upsample_{mode}2d_aa" if antialias else _RESAMPLE[key]
    return getattr(_nn, name)(input, size, align_corners, scales)


def interpolate(input, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None, antialias=False):
    """Resample to ``size``, or by ``scale_factor``, with the given interpolation."""
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise ValueError("align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear")
    elif align_corners is None:
        align_corners = False
    dim = input.dim() - 2
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    out_size = None if size is None else _per_dim(size, dim, input, "size")
    scales = None if scale_factor is None else _per_dim(scale_factor, dim, input, "scale_factor")
    if recompute_scale_factor and size is not None:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    if scales is not None and (recompute_scale_factor or mode == "area"):
        out_size = [int(input.size(i + 2) * scales[i]) for i in range(dim)]
        scales = None
    if antialias and not (mode in ("bilinear", "bicubic", "lanczos") and input.ndim == 4):
        raise ValueError("Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input")
    if mode == "area" and input.dim() in (3, 4, 5):
        from . import _fn_pooling as pooling
        return getattr(pooling, f"adaptive_avg_pool{dim}d")(input, out_size)
    return _resample(input, mode, out_size, align_corners, scales, antialias)


def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """Deprecated: use interpolate."""
    warnings.warn("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2)
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input, size=None, scale_factor=None):
    """Deprecated: use interpolate."""
    warnings.warn("`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2)
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input, size=None, scale_factor=None):
    """Deprecated: use interpolate."""
    warnings.warn("`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2)
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


_ALIGN = ("Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please specify "
          "align_corners=True if the old behavior is desired. See the documentation of grid_sample for details.")


def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    """Sample ``input`` at the positions of ``grid``, which run from -1 to 1."""
    if mode not in GRID_SAMPLE_INTERPOLATION_MODES:
        raise ValueError(f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'")
    if padding_mode not in GRID_SAMPLE_PADDING_MODES:
        raise ValueError("nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
                         f"'{padding_mode}'")
    if align_corners is None:
        warnings.warn(_ALIGN, stacklevel=2)
        align_corners = False
    return core.grid_sampler(input, grid, GRID_SAMPLE_INTERPOLATION_MODES[mode], GRID_SAMPLE_PADDING_MODES[padding_mode], align_corners)


def affine_grid(theta, size, align_corners=None):
    """The grid of positions that grid_sample needs to apply the affine maps ``theta``."""
    if align_corners is None:
        warnings.warn(_ALIGN, stacklevel=2)
        align_corners = False
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    if len(size) not in (4, 5):
        raise NotImplementedError("affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. "
                                  f"Got size {size}.")
    n = len(size) - 2
    if theta.dim() != 3 or theta.shape[-2] != n or theta.shape[-1] != n + 1:
        raise ValueError(f"Expected a batch of {n}D affine matrices of shape Nx{n}x{n + 1} for size {size}. Got {theta.shape}.")
    if align_corners and min(size[-n:]) == 1:
        warnings.warn("Since version 1.3.0, affine_grid behavior has changed for unit-size grids when align_corners=True. This is not an "
                      "intended use case of affine_grid. See the documentation of affine_grid for details.", stacklevel=2)
    elif min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    return core.affine_grid_generator(theta, size, align_corners)


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """All patches of (N, C, H, W), as columns: (N, C * kernel, patches)."""
    return _nn.im2col(input, _pair(kernel_size), _pair(dilation), _pair(padding), _pair(stride))


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """The sum of patches put back where unfold took them."""
    return _nn.col2im(input, _pair(output_size), _pair(kernel_size), _pair(dilation), _pair(padding), _pair(stride))


