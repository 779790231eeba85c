"""Dropout, embeddings and normalisation of nn.functional."""
import warnings

from .. import _core as core


_nn, _F = core._nn, core._functions

core.export(("linear", "one_hot"), globals(), _nn)
core.export(("bilinear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "conv_tbc",
             "pairwise_distance", "pdist", "cosine_similarity"), globals())


def _check_p(p):
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def dropout(input, p=0.5, training=True, inplace=False):
    """Zero each element with probability ``p`` and scale the others by 1/(1-p); identity unless ``training``."""
    _check_p(p)
    return (core.dropout_ if inplace else core.dropout)(input, p, training)


def alpha_dropout(input, p=0.5, training=False, inplace=False):
    """Dropout that keeps mean and variance of selu activations."""
    _check_p(p)
    return (core.alpha_dropout_ if inplace else core.alpha_dropout)(input, p, training)


def feature_alpha_dropout(input, p=0.5, training=False, inplace=False):
    """alpha_dropout of whole channels."""
    _check_p(p)
    return (core.feature_alpha_dropout_ if inplace else core.feature_alpha_dropout)(input, p, training)


def _channel_dropout(input, p, training, inplace, batched):
    if not batched:
        input = input.unsqueeze_(0) if inplace else input.unsqueeze(0)
    out = (core.feature_dropout_ if inplace else core.feature_dropout)(input, p, training)
    if not batched:
        out = out.squeeze_(0) if inplace else out.squeeze(0)
    return out


def _deprecated_rank(n, rank, dims):
    return (f"dropout{n}d: Received a {rank}-D input to dropout{n}d, which is deprecated and will result in an error in a future "
            "release. To retain the behavior and silence this warning, please use dropout instead. Note that "
            f"dropout{n}d exists to provide channel-wise dropout on inputs with {n} spatial dimensions, a channel dimension, and an "
            f"optional batch dimension (i.e. {dims} inputs).")


def dropout1d(input, p=0.5, training=True, inplace=False):
    """Zero whole channels of (N, C, L) or (C, L)."""
    _check_p(p)
    rank = input.dim()
    if rank not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {rank}D input. Note that dropout1d exists to provide channel-wise "
            "dropout on inputs with 1 spatial dimension, a channel dimension, and an optional batch dimension (i.e. 2D or 3D inputs).")
    return _channel_dropout(input, p, training, inplace, rank == 3)


def dropout2d(input, p=0.5, training=True, inplace=False):
    """Zero whole channels of (N, C, H, W)."""
    _check_p(p)
    rank = input.dim()
    if rank not in (3, 4):
        warnings.warn(_deprecated_rank(2, rank, "3D or 4D"), stacklevel=2)
    if rank == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired - input is "
            "interpreted as shape (N, C, L), where C is the channel dim. This behavior will change in a future release to interpret "
            "the input as one without a batch dimension, i.e. shape (C, H, W). To maintain the 1D channel-wise dropout behavior, "
            "please switch to using dropout1d instead.", stacklevel=2)
    return _channel_dropout(input, p, training, inplace, True)


def dropout3d(input, p=0.5, training=True, inplace=False):
    """Zero whole channels of (N, C, D, H, W) or (C, D, H, W)."""
    _check_p(p)
    rank = input.dim()
    if rank not in (4, 5):
        warnings.warn(_deprecated_rank(3, rank, "4D or 5D"), stacklevel=2)
    return _channel_dropout(input, p, training, inplace, rank == 5)


def _no_grad_embedding_renorm_(weight, input, max_norm, norm_type):
    with core.no_grad():
        core.embedding_renorm_(weight, input, max_norm, norm_type)


def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
    """The rows of ``weight`` that ``input`` names."""
    if padding_idx is None:
        padding_idx = -1
    else:
        rows = weight.size(0)
        if padding_idx >= rows > 0 or padding_idx < -rows:
            raise AssertionError("Padding_idx must be within num_embeddings")
        if padding_idx < 0:
            padding_idx += rows
    if max_norm is not None:
        input = input.contiguous()
        _no_grad_embedding_renorm_(weight, input, max_norm, norm_type)
    return core.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


_BAG_MODES = {"sum": 0, "mean": 1, "max": 2}


def _bags_of(input, offsets, weights):
    """(flat indices, offsets, flat weights) of a 1-D input with offsets or a 2-D one without."""
    if input.dim() == 1:
        if offsets is None:
            raise ValueError("offsets has to be a 1D Tensor but got None")
        if offsets.dim() != 1:
            raise ValueError("offsets has to be a 1D Tensor")
        return input, offsets, weights
    if input.dim() != 2:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}")
    if offsets is not None:
        raise ValueError("if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length sequences. "
                         f"However, found offsets of type {type(offsets)}")
    offsets = core.arange(0, input.numel(), input.size(1), dtype=input.dtype, device=input.device)
    return input.reshape(-1), offsets, None if weights is None else weights.reshape(-1)


def _composed_bags(input, weight, offsets, mode, per_sample_weights, include_last_offset, padding_idx, scale_grad_by_freq):
    """Bags out of embedding and index_add, one bag at a time for maxima."""
    starts = offsets.tolist()
    ends = [*starts[1:], input.numel()]
    if include_last_offset:
        starts, ends = starts[:-1], ends[:-1]
    rows = core.embedding(weight, input, -1 if padding_idx is None else padding_idx, scale_grad_by_freq, False)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(1)
    counted = [True] * input.numel() if padding_idx is None else (input != padding_idx).tolist()
    bags = [[i for i in range(a, b) if counted[i]] for a, b in zip(starts, ends)]
    if mode == "max":
        empty = weight.new_zeros(weight.shape[1])
        return core.stack([rows[core.tensor(bag)].max(0)[0] if bag else empty for bag in bags])
    places, owners = [i for bag in bags for i in bag], [n for n, bag in enumerate(bags) for _ in bag]
    out = weight.new_zeros(len(bags), weight.shape[1])
    if places:
        out = out.index_add(0, core.tensor(owners), rows[core.tensor(places)])
    return out / core.tensor([max(len(bag), 1) for bag in bags], dtype=out.dtype).unsqueeze(1) if mode == "mean" else out


def embedding_bag(input, weight, offsets=None, max_norm=None, norm_type=2, scale_grad_by_freq=False, mode="mean", sparse=False,
                  per_sample_weights=None, include_last_offset=False, padding_idx=None):
    """Sums, means or maxima of rows of ``weight``, bag by bag."""
    if weight.dtype == core.long and input.is_floating_point():
        warnings.warn("Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, ...)` is deprecated, "
                      "and should now be `embedding_bag(input, weight, ...)`.", stacklevel=2)
        weight, input = input, weight
    if per_sample_weights is not None and input.size() != per_sample_weights.size():
        raise ValueError(f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must have the same "
                         f"shape as the input ({input.shape})")
    if weight.dim() != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}")
    if input.dim() == 2:
        include_last_offset = False
    input, offsets, per_sample_weights = _bags_of(input, offsets, per_sample_weights)
    if mode not in _BAG_MODES:
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if max_norm is not None:
        _no_grad_embedding_renorm_(weight, input, max_norm, norm_type)
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError("embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' "
                                  f"(got mode='{mode}'). Please open a feature request on GitHub.")
    if hasattr(core._functions, "embedding_bag"):
        return core.embedding_bag(weight, input, offsets, scale_grad_by_freq, _BAG_MODES[mode], sparse, per_sample_weights,
                                  include_last_offset, padding_idx)[0]
    return _composed_bags(input, weight, offsets, mode, per_sample_weights, include_last_offset, padding_idx, scale_grad_by_freq)


def _product(sizes):
    n = 1
    for s in sizes:
        n *= s
    return n


def _verify_batch_size(size):
    if _product((size[0], *size[2:])) == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {size}")


def _verify_spatial_size(size):
    if _product(size[2:]) == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {size}")


def batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-05):
    """Normalise each channel over the batch; in training the running statistics are updated."""
    if training:
        _verify_batch_size(input.size())
    if training and eps <= 0.0:
        raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    if eps < 0.0:
        raise ValueError(f"batch_norm eps must be non-negative, but got {eps}")
    return core.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, False)


def instance_norm(input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1, eps=1e-05):
    """Normalise each channel of each sample over its spatial dimensions."""
    if use_input_stats:
        _verify_spatial_size(input.size())
    return core.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, False)


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-05):
    """Normalise over the last dimensions, which are ``normalized_shape``."""
    return core.layer_norm(input, normalized_shape, weight, bias, eps)


def rms_norm(input, normalized_shape, weight=None, eps=None):
    """Divide by the root mean square over the last dimensions."""
    return core.rms_norm(input, normalized_shape, weight, eps)


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-05):
    """Normalise over groups of channels."""
    if input.dim() < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.dim()}")
    _verify_batch_size([input.size(0) * input.size(1) // num_groups, num_groups, *input.size()[2:]])
    return core.group_norm(input, num_groups, weight, bias, eps)


def local_response_norm(input, size, alpha=0.0001, beta=0.75, k=1.0):
    """Divide by a power of the mean square over ``size`` neighbouring channels."""
    rank = input.dim()
    if rank < 3:
        raise ValueError(f"Expected 3D or higher dimensionality                          input (got {rank} dimensions)")
    if input.numel() == 0:
        return input
    around = (size // 2, (size - 1) // 2)
    squares = input.mul(input)
    if rank == 3:
        mean = _nn.avg_pool2d(_nn.pad(squares.unsqueeze(1), (0, 0, *around)), (size, 1), stride=1).squeeze(1)
    else:
        shape = input.size()
        squares = squares.view(shape[0], 1, shape[1], shape[2], -1)
        mean = _nn.avg_pool3d(_nn.pad(squares, (0, 0, 0, 0, *around)), (size, 1, 1), stride=1).squeeze(1).view(shape)
    return input / mean.mul(alpha).add(k).pow(beta)


def normalize(input, p=2.0, dim=1, eps=1e-12, out=None):
    """``input`` over its p-norm along ``dim`` (at least ``eps``)."""
    if out is None:
        return input / input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    return core.div(input, input.norm(p, dim, keepdim=True).clamp_min_(eps).expand_as(input), out=out)


def grouped_mm(mat_a, mat_b, *, offs=None, bias=None, out_dtype=None):
    """Products of groups of rows (or batches) of ``mat_a`` with the matrices of ``mat_b``."""
    return core._grouped_mm(mat_a, mat_b, offs=offs, bias=bias, out_dtype=out_dtype)


if not hasattr(_F, "_grouped_mm"):
    del grouped_mm
