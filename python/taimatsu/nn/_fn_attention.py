"""Attention of nn.functional."""
import math
import warnings

from .. import _core as core
from .._core import Tensor
from ._fn_activation import softmax
from ._fn_layers import dropout

_nn = core._nn

core.export(("scaled_dot_product_attention",), globals(), _nn)


def _require(condition, text):
    if not condition:
        raise AssertionError(text)


def _in_projection_packed(q, k, v, w, b=None):
    """q, k and v projected by the three blocks of ``w``; one product where the inputs are the same tensor."""
    size = q.size(-1)
    if k is not v:
        biases = (None, None, None) if b is None else b.chunk(3)
        return tuple(_nn.linear(x, part, bias) for x, part, bias in zip((q, k, v), w.chunk(3), biases))

    def split(projected, n):
        return projected.unflatten(-1, (n, size)).unsqueeze(0).transpose(0, -2).squeeze(-2).contiguous()

    if q is k:
        parts = split(_nn.linear(q, w, b), 3)
        return parts[0], parts[1], parts[2]
    w_q, w_kv = w.split([size, size * 2])
    b_q, b_kv = (None, None) if b is None else b.split([size, size * 2])
    projected = _nn.linear(q, w_q, b_q)
    parts = split(_nn.linear(k, w_kv, b_kv), 2)
    return projected, parts[0], parts[1]


def _in_projection(q, k, v, w_q, w_k, w_v, b_q=None, b_k=None, b_v=None):
    """q, k and v projected by weights of their own."""
    size = q.size(-1)
    for name, x, w in (("query", q, w_q), ("key", k, w_k), ("value", v, w_v)):
        wanted = (size, x.size(-1))
        _require(w.shape == wanted, f"expecting {name} weights shape of {wanted}, but got {w.shape}")
    for name, b in (("query", b_q), ("key", b_k), ("value", b_v)):
        _require(b is None or b.shape == (size,), f"expecting {name} bias shape of {(size,)}, but got {None if b is None else b.shape}")
    return _nn.linear(q, w_q, b_q), _nn.linear(k, w_k, b_k), _nn.linear(v, w_v, b_v)


def _mha_shape_check(query, key, value, key_padding_mask, attn_mask, num_heads):
    """Whether the inputs are batched; raises where their ranks do not fit together."""
    rank = query.dim()
    if rank not in (2, 3):
        raise AssertionError(f"query should be unbatched 2D or batched 3D tensor but received {rank}-D query tensor")
    start = f"For {'batched (3-D)' if rank == 3 else 'unbatched (2-D)'} `query`, expected"
    _require(key.dim() == rank and value.dim() == rank,
             f"{start} `key` and `value` to be {rank}-D but found {key.dim()}-D and {value.dim()}-D tensors respectively")
    if key_padding_mask is not None:
        _require(key_padding_mask.dim() == rank - 1, f"{start} `key_padding_mask` to be `None` or {rank - 1}-D but found "
                 f"{key_padding_mask.dim()}-D tensor instead")
    if attn_mask is not None:
        _require(attn_mask.dim() in (2, 3), f"{start} `attn_mask` to be `None`, 2-D or 3-D but found {attn_mask.dim()}-D tensor instead")
        if rank == 2 and attn_mask.dim() == 3:
            wanted = (num_heads, query.shape[0], key.shape[0])
            _require(attn_mask.shape == wanted, f"Expected `attn_mask` shape to be {wanted} but got {attn_mask.shape}")
    return rank == 3


def _canonical_mask(mask, mask_name, other_type, other_name, target_type, check_other=True):
    """A mask to be added to scores: booleans become 0 and -inf."""
    if mask is None:
        return None
    is_float = mask.is_floating_point()
    _require(mask.dtype == core.bool or is_float, f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and mask.dtype != other_type:
        warnings.warn(f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type for both instead.", stacklevel=2)
    if is_float:
        return mask
    return core.zeros_like(mask, dtype=target_type).masked_fill_(mask, float("-inf"))


def _none_or_dtype(input):
    if input is None or isinstance(input, Tensor):
        return None if input is None else input.dtype
    raise RuntimeError("input to _none_or_dtype() must be None or torch.Tensor")


def _checked_attn_mask(mask, length, sources, batch, heads):
    """``mask`` with a leading dimension of 1 or batch * heads."""
    if mask.dim() not in (2, 3):
        raise RuntimeError(f"attn_mask's dimension {mask.dim()} is not supported")
    wanted = (length, sources) if mask.dim() == 2 else (batch * heads, length, sources)
    if mask.shape != wanted:
        raise RuntimeError(f"The shape of the {mask.dim()}D attn_mask is {mask.shape}, but should be {wanted}.")
    return mask.unsqueeze(0) if mask.dim() == 2 else mask


def _one_more_column(mask):
    return None if mask is None else _nn.pad(mask, (0, 1))


def _by_head(x, static, name, batch, heads, head_dim):
    """(length, batch, embed) as (batch * heads, length, head_dim), unless the caller gave such a tensor."""
    if static is None:
        return x.view(x.shape[0], batch * heads, head_dim).transpose(0, 1)
    for axis, wanted in ((0, batch * heads), (2, head_dim)):
        _require(static.size(axis) == wanted, f"expecting static_{name}.size({axis}) of {wanted}, but got {static.size(axis)}")
    return static


def _attend_with_weights(q, k, v, mask, dropout_p):
    """Plain attention of (batch * heads, length, head_dim) that also returns the weights."""
    scaled = q * math.sqrt(1.0 / float(q.shape[-1]))
    scores = core.bmm(scaled, k.transpose(-2, -1)) if mask is None else core.baddbmm(mask, scaled, k.transpose(-2, -1))
    weights = softmax(scores, dim=-1)
    if dropout_p > 0.0:
        weights = dropout(weights, p=dropout_p)
    return core.bmm(weights, v), weights


def _project(query, key, value, in_proj_weight, in_proj_bias, separate):
    """The three input projections, from one packed weight or (``separate``) from three."""
    if separate is None:
        _require(in_proj_weight is not None, "use_separate_proj_weight is False but in_proj_weight is None")
        return _in_projection_packed(query, key, value, in_proj_weight, in_proj_bias)
    for letter, w in zip("qkv", separate):
        _require(w is not None, f"use_separate_proj_weight is True but {letter}_proj_weight is None")
    biases = (None, None, None) if in_proj_bias is None else in_proj_bias.chunk(3)
    return _in_projection(query, key, value, *separate, *biases)


def multi_head_attention_forward(
        query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias, bias_k, bias_v, add_zero_attn, dropout_p,
        out_proj_weight, out_proj_bias, training=True, key_padding_mask=None, need_weights=True, attn_mask=None,
        use_separate_proj_weight=False, q_proj_weight=None, k_proj_weight=None, v_proj_weight=None, static_k=None, static_v=None,
        average_attn_weights=True, is_causal=False):
    """The computation of nn.MultiheadAttention on (length, batch, embed) inputs, or (length, embed) ones."""
    batched = _mha_shape_check(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    length, batch, embed_dim = query.shape
    sources = key.shape[0]
    key_padding_mask = _canonical_mask(key_padding_mask, "key_padding_mask", _none_or_dtype(attn_mask), "attn_mask", query.dtype)
    if is_causal and attn_mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
                           "`generate_square_subsequent_mask` to create this mask.")
    if is_causal and key_padding_mask is None and not need_weights:
        attn_mask = None        # the fused kernel applies the causal mask itself
    else:
        attn_mask = _canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, check_other=False)
        is_causal = is_causal and key_padding_mask is None
    _require(embed_dim == embed_dim_to_check, f"was expecting embedding dimension of {embed_dim_to_check}, but got {embed_dim}")
    head_dim = embed_dim // num_heads
    _require(head_dim * num_heads == embed_dim, f"embed_dim {embed_dim} not divisible by num_heads {num_heads}")
    if use_separate_proj_weight:
        _require(key.shape[:2] == value.shape[:2],
                 f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}")
    else:
        _require(key.shape == value.shape, f"key shape {key.shape} does not match value shape {value.shape}")
    separate = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else None
    q, k, v = _project(query, key, value, in_proj_weight, in_proj_bias, separate)
    if attn_mask is not None:
        attn_mask = _checked_attn_mask(attn_mask, length, sources, batch, num_heads)
    if bias_k is not None and bias_v is not None:
        _require(static_k is None, "bias cannot be added to static key.")
        _require(static_v is None, "bias cannot be added to static value.")
        k = core.cat([k, bias_k.repeat(1, batch, 1)])
        v = core.cat([v, bias_v.repeat(1, batch, 1)])
        attn_mask, key_padding_mask = _one_more_column(attn_mask), _one_more_column(key_padding_mask)
    else:
        _require(bias_k is None, "bias_k is set but bias_v is None")
        _require(bias_v is None, "bias_v is set but bias_k is None")
    q = _by_head(q, None, "q", batch, num_heads, head_dim)
    k = _by_head(k, static_k, "k", batch, num_heads, head_dim)
    v = _by_head(v, static_v, "v", batch, num_heads, head_dim)
    if add_zero_attn:
        k, v = (core.cat([x, core.zeros((batch * num_heads, 1, head_dim), dtype=x.dtype, device=x.device)], dim=1) for x in (k, v))
        attn_mask, key_padding_mask = _one_more_column(attn_mask), _one_more_column(key_padding_mask)
    sources = k.size(1)
    if key_padding_mask is not None:
        for axis, wanted in ((0, batch), (1, sources)):
            _require(key_padding_mask.shape[axis] == wanted,
                     f"Expected key_padded_mask.shape[{axis}] to be {wanted}, but got {key_padding_mask.shape[axis]}")
        spread = key_padding_mask.view(batch, 1, 1, sources).expand(-1, num_heads, -1, -1).reshape(batch * num_heads, 1, sources)
        attn_mask = spread if attn_mask is None else attn_mask + spread
    dropout_p = dropout_p if training else 0.0

    def out_projection(x):
        return _nn.linear(x, out_proj_weight, out_proj_bias).view(length, batch, -1)

    if need_weights:
        _require(not (is_causal and attn_mask is None), "FIXME: is_causal not implemented for need_weights")
        out, weights = _attend_with_weights(q, k, v, attn_mask, dropout_p)
        out = out_projection(out.transpose(0, 1).reshape(length * batch, embed_dim))
        weights = weights.view(batch, num_heads, length, sources)
        weights = weights.mean(dim=1) if average_attn_weights else weights
        return (out, weights) if batched else (out.squeeze(1), weights.squeeze(0))
    if attn_mask is not None:
        shared = attn_mask.size(0) == 1 and attn_mask.dim() == 3
        attn_mask = attn_mask.unsqueeze(0) if shared else attn_mask.view(batch, num_heads, -1, sources)
    q, k, v = (x.view(batch, num_heads, -1, head_dim) for x in (q, k, v))
    out = _nn.scaled_dot_product_attention(q, k, v, attn_mask, dropout_p, is_causal)
    out = out_projection(out.permute(2, 0, 1, 3).reshape(batch * length, embed_dim))
    return (out if batched else out.squeeze(1)), None
