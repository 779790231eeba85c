"""Functions of the torch namespace that are written over operators."""
from . import _core as core
from ._core import Size, Tensor

__all__ = ["atleast_1d", "atleast_2d", "atleast_3d", "broadcast_shapes", "broadcast_tensors", "cartesian_prod",
           "block_diag", "cdist", "chain_matmul", "einsum", "meshgrid", "norm", "split", "stft", "tensordot", "unique",
           "unique_consecutive", "unravel_index"]

_F = core._functions


def _tensors(args):
    """Tensors given one by one or as one list."""
    return args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args


def broadcast_tensors(*tensors):
    """Views of all tensors, expanded to one shape."""
    tensors = _tensors(tensors)
    shape = []
    for t in tensors:
        one = [1] * (len(shape) - t.dim()) + list(t.shape)
        shape = [1] * (len(one) - len(shape)) + shape
        for d in reversed(range(len(shape))):
            if shape[d] != one[d] and shape[d] != 1 != one[d]:
                raise RuntimeError(f"The size of tensor a ({shape[d]}) must match the size of tensor b ({one[d]}) at non-singleton dimension {d}")
            shape[d] = one[d] if shape[d] == 1 else shape[d]
    return tuple(t.expand(shape) for t in tensors)


def broadcast_shapes(*shapes):
    """The shape that tensors of these shapes broadcast to."""
    shapes = [(s,) if isinstance(s, int) else tuple(s) for s in shapes]
    rank = max((len(s) for s in shapes), default=0)
    result = [1] * rank
    for shape in shapes:
        for i in range(-1, -1 - len(shape), -1):
            if shape[i] < 0:
                raise RuntimeError(f"Trying to create tensor with negative dimension ({shape[i]}): ({shape[i]})")
            if shape[i] == 1 or shape[i] == result[i]:
                continue
            if result[i] != 1:
                raise RuntimeError("Shape mismatch: objects cannot be broadcast to a single shape")
            result[i] = shape[i]
    return Size(result)


def split(tensor, split_size_or_sections, dim=0):
    """Views of parts of ``tensor``: of one size, or of the sizes given."""
    return tensor.split(split_size_or_sections, dim)


def _letter(n):
    """Subscript number n (0 .. 51) as einsum's letter."""
    if 0 <= n < 26:
        return chr(ord("A") + n)
    if n < 52:
        return chr(ord("a") + n - 26)
    raise ValueError("subscript in subscript list is not within the valid range [0, 52)")


def _equation_from_sublists(args):
    """einsum(x, [0, 1], y, [1, 2], [0, 2]) as ("AB,BC->AC", (x, y))."""
    def text(sublist):
        out = ""
        for s in sublist:
            if s is not Ellipsis:
                try:
                    out += _letter(int(s))
                except TypeError:
                    raise ValueError("subscript in subscript list must be an integer") from None
            else:
                out += "..."
        return out

    parts = [text(sublist) for sublist in args[1::2]]
    operands = args[0:len(args) - len(args) % 2:2]
    equation = ",".join(parts)
    if len(args) % 2 == 1:
        equation += "->" + text(args[-1])
    return equation, operands


def einsum(*args):
    """Sums of products by the Einstein summation convention."""
    if len(args) < 2:
        raise ValueError("einsum(): must specify the equation string and at least one operand, or at least one operand and its "
                         "subscripts list")
    if isinstance(args[0], Tensor):
        equation, operands = _equation_from_sublists(args)
    else:
        equation, operands = args[0], args[1:]
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = operands[0]
    return _F.einsum(equation, tuple(operands))


def meshgrid(*tensors, indexing=None):
    """Grids of coordinates, one per 1-D tensor."""
    if indexing is None:
        import warnings
        warnings.warn("torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument. (Triggered internally at "
                      "TensorShape.cpp)", stacklevel=2)
        indexing = "ij"
    tensors = list(_tensors(tensors))
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    if any(t.dtype != tensors[0].dtype for t in tensors):
        raise RuntimeError("torch.meshgrid expects all tensors to have the same dtype")
    if any(t.device != tensors[0].device for t in tensors):
        raise RuntimeError("torch.meshgrid expects all tensors to have the same device")
    if indexing not in ("ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    for t in tensors:
        if t.dim() > 1:
            raise RuntimeError(f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {t}")
    swap = indexing == "xy" and len(tensors) >= 2
    if swap:
        tensors[0], tensors[1] = tensors[1], tensors[0]
    shape = [t.numel() for t in tensors]
    grids = [t.reshape([-1 if i == j else 1 for j in range(len(shape))]).expand(shape) for i, t in enumerate(tensors)]
    if swap:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


def tensordot(a, b, dims=2, out=None):
    """The contraction of ``a`` and ``b`` over ``dims``: a count, or two lists of dimensions."""
    if not isinstance(dims, (tuple, list, Tensor, int)):
        raise RuntimeError("tensordot expects dims to be int or "
                           "tuple[list[int], list[int]] or "
                           f"list[list[int]] containing two lists, but got dims={dims}")
    if isinstance(dims, Tensor):
        if dims.numel() > 1:
            dims_a, dims_b = dims[0].tolist(), dims[1].tolist()
        else:
            dims = int(dims.item())
    elif isinstance(dims, (tuple, list)):
        dims_a, dims_b = list(dims[0]), list(dims[1])
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.dim(), b.dim()):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        dims_a, dims_b = list(range(-dims, 0)), list(range(dims))
    if out is None:
        return _F.tensordot(a, b, dims_a, dims_b)
    return _F.tensordot(a, b, dims_a, dims_b, out=out)


def cartesian_prod(*tensors):
    """All combinations of one element of each 1-D tensor, one per row."""
    tensors = _tensors(tensors)
    for t in tensors:
        if t.dim() != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {t.shape}")
    if len(tensors) == 1:
        return tensors[0]
    return core.stack([g.flatten() for g in meshgrid(*tensors, indexing="ij")], 1)


def block_diag(*tensors):
    """A matrix with the given ones along its diagonal."""
    return _F.block_diag(tensors)


def cdist(x1, x2, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary"):
    """p-norm distances between all rows of ``x1`` and all rows of ``x2``."""
    modes = {"use_mm_for_euclid_dist_if_necessary": None, "use_mm_for_euclid_dist": 1, "donot_use_mm_for_euclid_dist": 2}
    if compute_mode not in modes:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    return _F.cdist(x1, x2, p, modes[compute_mode])


def _grown(n, t):
    if t.dim() == 0:
        return t.reshape((1,) * n)
    if n >= 2 and t.dim() == 1:
        t = t.unsqueeze(0)
        return t.unsqueeze(-1) if n == 3 else t
    return t.unsqueeze(-1) if n == 3 and t.dim() == 2 else t


def _at_least(n, tensors):
    one = tensors[0] if len(tensors) == 1 else tensors
    return tuple(_grown(n, t) for t in one) if isinstance(one, (list, tuple)) else _grown(n, one)


def atleast_1d(*tensors):
    """Each tensor with at least one dimension."""
    return _at_least(1, tensors)


def atleast_2d(*tensors):
    """Each tensor with at least two dimensions."""
    return _at_least(2, tensors)


def atleast_3d(*tensors):
    """Each tensor with at least three dimensions."""
    return _at_least(3, tensors)


def chain_matmul(*matrices, out=None):
    """The product of all matrices, multiplied in the cheapest order."""
    import warnings
    warnings.warn("torch.chain_matmul is deprecated and will be removed in a future PyTorch release. Use torch.linalg.multi_dot instead, "
                  "which accepts a list of two or more tensors rather than multiple parameters.", stacklevel=2)
    return _F.chain_matmul(_tensors(matrices)) if out is None else _F.chain_matmul(_tensors(matrices), out=out)


def norm(input, p="fro", dim=None, keepdim=False, out=None, dtype=None):
    """A vector or matrix norm; torch.linalg.norm is clearer."""
    vector_norm, target = core._linalg.linalg_vector_norm, {} if out is None else {"out": out}
    dims = [dim] if isinstance(dim, int) else dim
    if p in ("fro", "nuc") and isinstance(p, str):
        if p == "fro" and (dims is None or len(dims) <= 2):
            return vector_norm(input, 2, dims, keepdim, dtype=dtype, **target)
        if p == "nuc":
            source = input if dtype is None else input.to(dtype)
            if dims is None:
                return _F.nuclear_norm(source, keepdim=keepdim, **target)
            return _F.nuclear_norm(source, dims, keepdim=keepdim, **target)
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {' '.join(map(str, dims))}")
    if isinstance(p, str):
        raise RuntimeError(f"only valid string values are 'fro' and 'nuc', found {p}")
    return vector_norm(input, 2 if p is None else p, dims, keepdim, dtype=dtype, **target)


def _unique(input, sorted, return_inverse, return_counts, dim):
    if dim is None:
        return _F._unique2(input, sorted=sorted, return_inverse=return_inverse, return_counts=return_counts)
    return _F.unique_dim(input, dim, sorted=sorted, return_inverse=return_inverse, return_counts=return_counts)


def _wanted(results, return_inverse, return_counts):
    out = (results[0], *([results[1]] if return_inverse else []), *([results[2]] if return_counts else []))
    return out if len(out) > 1 else out[0]


def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The distinct elements (or slices along ``dim``); with the places they came from and how often, where asked."""
    return _wanted(_unique(input, sorted, return_inverse, return_counts, dim), return_inverse, return_counts)


def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    """As unique, but only neighbours that are equal are joined."""
    return _wanted(_F.unique_consecutive(input, return_inverse=return_inverse, return_counts=return_counts, dim=dim), return_inverse,
                   return_counts)


def unravel_index(indices, shape):
    """Flat positions as one index tensor per dimension of ``shape``."""
    if indices.is_complex() or indices.is_floating_point() or indices.dtype == core.bool:
        raise ValueError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    if not isinstance(shape, (int, tuple, list)):
        raise ValueError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    shape = Size([shape] if isinstance(shape, int) else shape)
    if any(n < 0 for n in shape):
        raise ValueError(f"'shape' cannot have negative values, but got {tuple(shape)}")
    out = []
    for n in reversed(shape):
        out.append(indices % n)
        indices = indices.div(n, rounding_mode="floor")
    return tuple(reversed(out))


def stft(input, n_fft, hop_length=None, win_length=None, window=None, center=True, pad_mode="reflect", normalized=False, onesided=None,
         return_complex=None, align_to_window=None):
    """Fourier transforms of overlapping windows."""
    if center:
        shape, pad = [1] * (3 - input.dim()) + list(input.size()), n_fft // 2
        input = core._nn.pad(input.view(shape), [pad, pad], pad_mode).view(input.shape[:-1] + (-1,))
    return _F.stft(input, n_fft, hop_length, win_length, window, normalized, onesided, return_complex, align_to_window)


def _drop_missing():
    """Take away what the extension has no operator for: a name that exists works."""
    needs = {"einsum": "einsum", "tensordot": "tensordot",
             "block_diag": "block_diag", "cdist": "cdist",
             "chain_matmul": "chain_matmul", "unique": "_unique2", "unique_consecutive": "unique_consecutive", "stft": "stft"}
    for name, operator in needs.items():
        if not hasattr(_F, operator):
            del globals()[name]
            __all__.remove(name)


_drop_missing()
