"""Linear layer and cross entropy together, chunk by chunk: the logits of all rows are never in memory at once.

For mean and sum the gradients are computed in the forward pass, while a chunk's softmax is at hand, and kept; backward scales them.
Without reduction backward goes through the chunks again.
"""
import warnings

from ... import _core as core
from ...autograd import Function


def _row_weights(target, weight, ignore_index, dtype):
    """(safe targets, weight of each row): ignored rows weigh nothing and point at class 0."""
    kept = target != ignore_index
    safe = core.where(kept, target, core.zeros_like(target))
    rows = kept.to(dtype) if weight is None else weight.detach().to(dtype)[safe] * kept
    return safe, rows


def _softmax_chunk(x, w, b, target, acc):
    """(losses, probabilities) of one chunk in the accumulation dtype."""
    logits = core._nn.linear(x.to(acc), w, b)
    log_p = logits.log_softmax(1)
    losses = -log_p.gather(1, target.unsqueeze(1)).squeeze(1)
    return losses, log_p.exp_()


def _chunks(rows, size):
    return (slice(start, min(start + size, rows)) for start in range(0, rows, size))


def _add_gradients(grads, part, x, w, p, target, row_weights):
    """Add one chunk's gradients, for row weights that hold everything the upstream gradient says."""
    grad_x, grad_w, grad_b = grads
    d = p.mul_(row_weights.unsqueeze(1))
    d.scatter_add_(1, target.unsqueeze(1), -row_weights.unsqueeze(1))
    if grad_x is not None:
        grad_x[part] = core.mm(d, w)
    if grad_w is not None:
        grad_w.addmm_(d.t(), x)
    if grad_b is not None:
        grad_b += d.sum(0)


def _buffers(x, w, b, needs, acc):
    return (core.empty_like(x) if needs[0] else None, core.zeros(w.shape, dtype=acc) if needs[1] else None,
            core.zeros(b.shape, dtype=acc) if b is not None and needs[2] else None)


class _Reduced(Function):
    """Mean or sum; gradients are made in forward."""

    @staticmethod
    def forward(ctx, x, w, b, target, weight, reduction, ignore_index, options, needs):
        acc = options.acc_dtype
        wa, ba = w.detach().to(acc), None if b is None else b.detach().to(acc)
        safe, rows = _row_weights(target, weight, ignore_index, acc)
        scale = 1.0 / rows.sum() if reduction == "mean" else core.ones((), dtype=acc)
        grads = _buffers(x.detach(), wa, ba, needs, acc)
        total = core.zeros((), dtype=core.float64 if acc == core.float64 else core.float32)
        for part in _chunks(x.shape[0], options.batch_chunk_size):
            xs = x[part].detach().to(acc)
            losses, p = _softmax_chunk(xs, wa, ba, safe[part], acc)
            total += (losses * rows[part]).sum()
            if any(needs):
                _add_gradients(grads, part, xs, wa, p, safe[part], rows[part] * scale)
        ctx.grads = tuple(None if g is None else g.to(t.dtype) for g, t in zip(grads, (x, w, b)))
        ctx.keep = options.allow_retain_graph
        return (total * scale).to(x.dtype)

    @staticmethod
    def backward(ctx, grad):
        if ctx.grads is None:
            raise RuntimeError("linear_cross_entropy chunked backward called twice; retain_graph=True / double backward are not supported.")
        with core.no_grad():
            scaled = tuple(None if g is None else g * grad if ctx.keep else g.mul_(grad) for g in ctx.grads)
        if not ctx.keep:
            ctx.grads = None
        return (*scaled, *(None,) * 6)


class _Unreduced(Function):
    """One loss per row; backward goes through the chunks again."""

    @staticmethod
    def forward(ctx, x, w, b, target, weight, ignore_index, options):
        acc = options.acc_dtype
        wa, ba = w.detach().to(acc), None if b is None else b.detach().to(acc)
        safe, rows = _row_weights(target, weight, ignore_index, acc)
        losses = [_softmax_chunk(x[part].detach(), wa, ba, safe[part], acc)[0] * rows[part]
                  for part in _chunks(x.shape[0], options.batch_chunk_size)]
        ctx.save_for_backward(x, w, b, safe, rows)
        ctx.options = options
        return core.cat(losses).to(x.dtype) if losses else x.new_empty(0)

    @staticmethod
    def backward(ctx, grad):
        x, w, b, safe, rows = ctx.saved_tensors
        acc = ctx.options.acc_dtype
        with core.no_grad():
            wa, ba = w.to(acc), None if b is None else b.to(acc)
            grads = _buffers(x, wa, ba, ctx.needs_input_grad[:3], acc)
            rows = rows * grad.to(acc)
            for part in _chunks(x.shape[0], ctx.options.batch_chunk_size):
                xs = x[part].to(acc)
                _, p = _softmax_chunk(xs, wa, ba, safe[part], acc)
                _add_gradients(grads, part, xs, wa, p, safe[part], rows[part])
        return (*(None if g is None else g.to(t.dtype) for g, t in zip(grads, (x, w, b))), *(None,) * 4)


def chunked(input, linear_weight, target, linear_bias, weight, reduction, ignore_index, options):
    """linear_cross_entropy by chunks; arguments have been checked."""
    batched = input.dim() == 2
    x, t = (input, target) if batched else (input.unsqueeze(0), target.unsqueeze(0))
    classes = linear_weight.shape[0]
    options = options._adjust(x.shape[0], x.shape[1], classes, x.dtype, x.device)
    if options.acc_dtype != x.dtype and not (options.acc_dtype == core.float32 and x.dtype in (core.float16, core.bfloat16)):
        raise RuntimeError("linear_cross_entropy supports float32 acc_dtype with float16/bfloat16 inputs, but got "
                           f"{options.acc_dtype} acc_dtype and {x.dtype} inputs.")
    bad = t[(t != ignore_index) & ((t < 0) | (t >= classes))]
    if bad.numel():
        raise RuntimeError(f"index {bad[0].item()} is out of bounds for dimension 1 with size {classes}")
    if weight is not None and weight.requires_grad:
        warnings.warn("linear_cross_entropy: the class weights get no gradient on the chunked path", stacklevel=3)
    if reduction == "none":
        result = _Unreduced.apply(x, linear_weight, linear_bias, t, weight, ignore_index, options)
        return result if batched else result.squeeze(0)
    recording = core.is_grad_enabled()
    needs = tuple(recording and p is not None and p.requires_grad for p in (x, linear_weight, linear_bias))
    return _Reduced.apply(x, linear_weight, linear_bias, t, weight, reduction, ignore_index, options, needs)
