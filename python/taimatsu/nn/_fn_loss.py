"""Losses of nn.functional."""
import math
import warnings

from .. import _core as core
from ._reduction import get_enum, legacy_get_string, resolve

_nn, _F = core._nn, core._functions


def _warn_sizes(input, target):
    if target.size() != input.size():
        warnings.warn(
            f"Using a target size ({target.size()}) that is different to the input size ({input.size()}). This will likely lead to "
            "incorrect results due to broadcasting. Please ensure they have the same size.", stacklevel=3)


def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False):
    """Connectionist temporal classification loss."""
    return core.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, get_enum(reduction), zero_infinity)


def nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    """Negative log-likelihood of class indices under log-probabilities."""
    return _nn.nll_loss_nd(input, target, weight, resolve(size_average, reduce, reduction), ignore_index)


def poisson_nll_loss(input, target, log_input=True, full=False, size_average=None, eps=1e-08, reduce=None, reduction="mean"):
    """Negative log-likelihood of a Poisson distribution with rate (or log-rate) ``input``."""
    return core.poisson_nll_loss(input, target, log_input, full, eps, resolve(size_average, reduce, reduction))


def _reduced(loss, reduction):
    if reduction == "mean":
        return loss.mean()
    return loss.sum() if reduction == "sum" else loss


def gaussian_nll_loss(input, target, var, full=False, eps=1e-06, reduction="mean"):
    """Negative log-likelihood of a normal distribution with mean ``input`` and variance ``var``."""
    if isinstance(var, float):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = var * core.ones_like(input)
    elif core.any(var < 0):
        raise ValueError("var has negative entry/entries")
    if var.size() != input.size():
        if input.size()[:-1] == var.size():
            var = var.unsqueeze(-1)
        elif input.ndim != var.ndim or sum(b for a, b in zip(input.size(), var.size()) if a != b) != 1:
            raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not valid")
    var = var.clone()
    with core.no_grad():
        var.clamp_(min=eps)
    loss = 0.5 * (core.log(var) + (input - target) ** 2 / var)
    if full:
        loss += 0.5 * math.log(2 * math.pi)
    return _reduced(loss, reduction)


def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    """Kullback-Leibler divergence of ``target`` from the log-probabilities ``input``."""
    if size_average is not None or reduce is not None:
        number = resolve(size_average, reduce, reduction)
    else:
        if reduction == "mean":
            warnings.warn("reduction: 'mean' divides the total loss by both the batch size and the support size.'batchmean' divides only by "
                          "the batch size, and aligns with the KL div math definition.'mean' will be changed to behave the same as "
                          "'batchmean' in the next major release.", stacklevel=2)
        number = get_enum("sum" if reduction == "batchmean" else reduction)
    loss = core.kl_div(input, target, number, log_target=log_target)
    return loss / input.size()[0] if reduction == "batchmean" and input.dim() != 0 else loss


def cross_entropy(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean",
                  label_smoothing=0.0):
    """Cross entropy of logits with class indices or class probabilities."""
    number = resolve(size_average, reduce, reduction)
    return _nn.cross_entropy_loss(input, target, weight, number, ignore_index, label_smoothing)


def binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """Cross entropy of probabilities with targets in [0, 1]."""
    number = resolve(size_average, reduce, reduction)
    if target.size() != input.size():
        raise ValueError(f"Using a target size ({target.size()}) that is different to the input size ({input.size()}) is deprecated. "
                         "Please ensure they have the same size.")
    if weight is not None:
        from ..functional import broadcast_shapes
        weight = weight.expand(broadcast_shapes(target.size(), weight.size()))
    return _nn.binary_cross_entropy(input, target, weight, number)


def binary_cross_entropy_with_logits(input, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None):
    """binary_cross_entropy of sigmoid(input), computed stably."""
    number = resolve(size_average, reduce, reduction)
    if target.size() != input.size():
        raise ValueError(f"Target size ({target.size()}) must be the same as input size ({input.size()})")
    return core.binary_cross_entropy_with_logits(input, target, weight, pos_weight, number)


def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    """Squared below ``beta``, absolute above."""
    _warn_sizes(input, target)
    number = resolve(size_average, reduce, reduction)
    a, b = core.broadcast_tensors([input, target])
    return _nn.l1_loss(a, b, number) if beta == 0.0 else _nn.smooth_l1_loss(a, b, number, beta)


def _weighted(errors, weight, reduction, by_weight):
    """Errors times weight, reduced; the mean divides by the sum of weights where ``by_weight``."""
    errors = errors * weight
    if reduction == "none":
        return errors
    if reduction == "sum":
        return core.sum(errors)
    if reduction == "mean":
        return core.sum(errors) / core.sum(weight) if by_weight else errors.mean()
    raise ValueError(f"Invalid reduction mode: {reduction}. Expected one of 'none', 'mean', 'sum'.")


def _check_weight(weight, input):
    if weight.size() != input.size():
        raise ValueError("Weights and input must have the same size.")


def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    """Squared below ``delta``, linear above."""
    _warn_sizes(input, target)
    a, b = core.broadcast_tensors([input, target])
    if weight is None:
        return _nn.huber_loss(a, b, get_enum(reduction), delta)
    _check_weight(weight, input)
    return _weighted(_nn.huber_loss(a, b, 0, delta), weight, reduction, by_weight=False)


def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """Absolute error."""
    _warn_sizes(input, target)
    if size_average is not None or reduce is not None:
        reduction = legacy_get_string(size_average, reduce)
    a, b = core.broadcast_tensors([input, target])
    if weight is None:
        return _nn.l1_loss(a, b, get_enum(reduction))
    _check_weight(weight, input)
    return _weighted(core.abs(a - b), weight, reduction, by_weight=True)


def mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """Squared error."""
    _warn_sizes(input, target)
    if size_average is not None or reduce is not None:
        reduction = legacy_get_string(size_average, reduce)
    a, b = core.broadcast_tensors([input, target])
    if weight is None:
        return _nn.mse_loss(a, b, get_enum(reduction))
    _check_weight(weight, input)
    return _weighted(core.pow(a - b, 2), weight, reduction, by_weight=True)


def margin_ranking_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    """max(0, -target (input1 - input2) + margin)."""
    number = resolve(size_average, reduce, reduction)
    if input1.dim() != input2.dim() or input1.dim() != target.dim():
        raise RuntimeError("margin_ranking_loss : All input tensors should have same dimension but got sizes: "
                           f"input1: {input1.size()}, input2: {input2.size()}, target: {target.size()} ")
    return core.margin_ranking_loss(input1, input2, target, margin, number)


def hinge_embedding_loss(input, target, margin=1.0, size_average=None, reduce=None, reduction="mean"):
    """The input where target is 1, max(0, margin - input) where it is -1."""
    return core.hinge_embedding_loss(input, target, margin, resolve(size_average, reduce, reduction))


def multilabel_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """Margin of every target class over every other class."""
    return _nn.multilabel_margin_loss(input, target, resolve(size_average, reduce, reduction))


def soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """log(1 + exp(-target input))."""
    return _nn.soft_margin_loss(input, target, resolve(size_average, reduce, reduction))


def multilabel_soft_margin_loss(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """Mean over classes of binary cross entropy with logits."""
    if size_average is not None or reduce is not None:
        reduction = legacy_get_string(size_average, reduce)
    loss = -(target * _nn.log_sigmoid(input) + (1 - target) * _nn.log_sigmoid(-input))
    if weight is not None:
        loss = loss * weight
    classes = input.dim() - 1
    loss = loss.sum(dim=classes) / input.size(classes)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not valid")
    return _reduced(loss, reduction)


def cosine_embedding_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    """1 - cos where target is 1, max(0, cos - margin) where it is -1."""
    return core.cosine_embedding_loss(input1, input2, target, margin, resolve(size_average, reduce, reduction))


def multi_margin_loss(input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"):
    """Margin of the target class over every other class, to the power ``p``."""
    number = resolve(size_average, reduce, reduction)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    return _nn.multi_margin_loss(input, target, p, margin, weight, number)


def triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2, eps=1e-06, swap=False, size_average=None, reduce=None,
                        reduction="mean"):
    """max(0, |anchor - positive| - |anchor - negative| + margin)."""
    number = resolve(size_average, reduce, reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    return core.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, number)


def triplet_margin_with_distance_loss(anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False, reduction="mean"):
    """triplet_margin_loss with a distance of the caller's."""
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError("The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
                           f"anchor {anchor.ndim}D, positive {positive.ndim}D, and negative {negative.ndim}D inputs")
    distance = core.pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = core.minimum(far, distance(positive, negative))
    return _reduced(core.clamp_min(margin + near - far, 0), reduction)


def _lce_shapes(input, linear_weight, linear_bias):
    """Check the operands of linear_cross_entropy; returns (batch sizes, classes, K dims)."""
    if not 1 <= input.dim() <= 2:
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.dim()}")
    if linear_weight.dim() < 2:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {linear_weight.dim()}")
    if input.shape[-1] != linear_weight.shape[-1]:
        raise RuntimeError("expected equal input and linear_weight last dimensions (in_features), got "
                           f"{input.shape[-1]} and {linear_weight.shape[-1]}, respectively")
    batch, classes, extra = tuple(input.shape[:-1]), linear_weight.shape[0], tuple(linear_weight.shape[1:-1])
    if linear_bias is not None and tuple(linear_bias.shape) != (classes, *extra):
        raise RuntimeError(f"expected linear_bias shape {(classes, *extra)}, got {tuple(linear_bias.shape)}")
    if extra and not batch:
        raise RuntimeError(f"K-dimensional loss defined by linear_weight shape {tuple(linear_weight.shape)} requires batched input, "
                           f"(N, {input.shape[-1]}), got unbatched input with shape {tuple(input.shape)}")
    return batch, classes, extra


def linear_cross_entropy(input, linear_weight, target, *, linear_bias=None, weight=None, reduction="mean", ignore_index=None,
                         label_smoothing=0.0, options=None):
    """cross_entropy(linear(input, linear_weight, linear_bias), target); with ``options``, chunk by chunk without all logits."""
    batch, classes, extra = _lce_shapes(input, linear_weight, linear_bias)
    shape = (*batch, classes, *extra)
    if tuple(target.shape) == shape and ignore_index is not None:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    ignore_index = -100 if ignore_index is None else ignore_index
    if options is not None:
        if reduction in ("mean", "sum", "none") and label_smoothing == 0.0 and target.dtype == core.int64 and not extra:
            from .modules.linear_cross_entropy import chunked
            return chunked(input, linear_weight, target, linear_bias, weight, reduction, ignore_index, options)
        bias_shape = None if linear_bias is None else tuple(linear_bias.shape)
        warnings.warn(
            "linear_cross_entropy: ``options`` ignored; chunked path needs reduction in {'mean','sum','none'}, label_smoothing == 0, "
            f"target.dtype == int64, out_features == (). Got reduction={reduction!r}, label_smoothing={label_smoothing}, "
            f"target.dtype={target.dtype}, out_features={extra}, tracing=False, linear_bias.shape={bias_shape}.", stacklevel=2)
    if extra:
        linear_weight = linear_weight.reshape(-1, input.shape[-1])
        linear_bias = None if linear_bias is None else linear_bias.reshape(-1)
    logits = _nn.linear(input, linear_weight, linear_bias).reshape(shape)
    return cross_entropy(logits, target, weight=weight, reduction=reduction, ignore_index=ignore_index,
                         label_smoothing=label_smoothing)
