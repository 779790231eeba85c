"""Jacobians, Hessians and products with them, by reverse mode."""
from .. import _core as core
from .._core import Tensor
from . import grad

__all__ = ["vjp", "jacobian", "hessian", "hvp", "vhp", "jvp"]


def _as_tuple(x, what, function):
    if isinstance(x, Tensor):
        return (x,), False
    x = tuple(x) if isinstance(x, (tuple, list)) else x
    if not isinstance(x, tuple) or not all(isinstance(t, Tensor) for t in x):
        raise TypeError(f"The {what} given to {function} must be either a Tensor or a tuple of Tensors but the value has type {type(x)}.")
    return x, True


def _inputs(inputs, create_graph):
    """Inputs of our own, so that gradients stop there; views of the caller's where a graph is wanted."""
    return tuple(t.view_as(t) if create_graph and t.requires_grad else t.detach().requires_grad_() for t in inputs)


def _filled(grads, like, strict, text):
    out = []
    for i, (g, t) in enumerate(zip(grads, like)):
        if g is None and strict:
            raise RuntimeError(text.format(i))
        out.append(core.zeros_like(t) if g is None else g)
    return tuple(out)


def _done(values, is_tuple, create_graph):
    values = values if create_graph else tuple(v.detach() for v in values)
    return values if is_tuple else values[0]


def _check_vector(v, like, name):
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(f"The vector {name} can only be None if the input to the user-provided function is a single Tensor with a single "
                               "element.")
        return tuple(core.ones_like(t) for t in like)
    v = (v,) if isinstance(v, Tensor) else tuple(v)
    if len(v) != len(like):
        raise RuntimeError(f"{name} is a tuple of invalid length: should be {len(like)} but got {len(v)}.")
    for a, t in zip(v, like):
        if a.size() != t.size():
            raise RuntimeError(f"{name} has invalid size: should be {t.size()} but got {a.size()}.")
    return v


def vjp(func, inputs, v=None, create_graph=False, strict=False):
    """(outputs, v^T J)."""
    with core.enable_grad():
        inputs, many_in = _as_tuple(inputs, "inputs", "vjp")
        xs = _inputs(inputs, create_graph)
        outs, many_out = _as_tuple(func(*xs), "outputs of the user-provided function", "vjp")
        v = _check_vector(v, outs, "v")
        grads = grad(outs, xs, v, create_graph=create_graph, allow_unused=True)
    grads = _filled(grads, xs, strict, "The output of the user-provided function is independent of input {}. This is not allowed in strict mode.")
    return _done(outs, many_out, create_graph), _done(grads, many_in, create_graph)


def jvp(func, inputs, v=None, create_graph=False, strict=False):
    """(outputs, J v), by differentiating v^T J twice."""
    with core.enable_grad():
        inputs, _ = _as_tuple(inputs, "inputs", "jvp")
        xs = _inputs(inputs, create_graph)
        v = _check_vector(v, xs, "v")
        outs, many_out = _as_tuple(func(*xs), "outputs of the user-provided function", "jvp")
        seeds = tuple(core.zeros_like(o, requires_grad=True) for o in outs)
        grads = grad(outs, xs, seeds, create_graph=True, allow_unused=True)
        pairs = [(g, a) for g, a in zip(grads, v) if g is not None]
        products = grad([g for g, _ in pairs], seeds, [a for _, a in pairs], create_graph=create_graph, allow_unused=True) if pairs else (
            None,) * len(seeds)
    products = _filled(products, outs, strict, "Output {} of the user-provided function does not depend on the inputs.")
    return _done(outs, many_out, create_graph), _done(products, many_out, create_graph)


def jacobian(func, inputs, create_graph=False, strict=False, vectorize=False, strategy="reverse-mode"):
    """All derivatives: shape of the output followed by shape of the input, for every pair of them."""
    if strategy not in ("reverse-mode", "forward-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more outputs than '
                             'inputs, "forward-mode" tends to be more performant. Otherwise, prefer to use "reverse-mode".')
    with core.enable_grad():
        inputs, many_in = _as_tuple(inputs, "inputs", "jacobian")
        xs = _inputs(inputs, create_graph)
        outs, many_out = _as_tuple(func(*xs), "outputs of the user-provided function", "jacobian")
        result = []
        for i, out in enumerate(outs):
            rows = [[] for _ in xs]
            flat = out.reshape(-1)
            for k in range(flat.numel()):
                grads = grad(flat[k], xs, retain_graph=True, create_graph=create_graph, allow_unused=True) if out.requires_grad else (
                    None,) * len(xs)
                grads = _filled(grads, xs, strict, f"Output {i} of the user-provided function is independent of input {{}}. This is not allowed "
                                "in strict mode.")
                for row, g in zip(rows, grads):
                    row.append(g)
            result.append(tuple(core.stack(row).reshape(out.shape + x.shape) if row else x.new_zeros(out.shape + x.shape)
                                for row, x in zip(rows, xs)))
    result = [r if create_graph else tuple(t.detach() for t in r) for r in result]
    if not many_out:
        return result[0] if many_in else result[0][0]
    return tuple(r if many_in else r[0] for r in result)


def _scalar(func, inputs, function):
    out = func(*inputs)
    out, many = _as_tuple(out, "outputs of the user-provided function", function)
    if many:
        raise RuntimeError(f"The function given to {function} should return a single Tensor")
    if out[0].numel() != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {function} should contain a single element")
    return out[0].reshape(())


def hessian(func, inputs, create_graph=False, strict=False, vectorize=False, outer_jacobian_strategy="reverse-mode"):
    """All second derivatives of a function with one number as its result."""
    inputs, many = _as_tuple(inputs, "inputs", "hessian")

    def gradient(*xs):
        return jacobian(lambda *ys: _scalar(func, ys, "hessian"), xs, create_graph=True, strict=strict)

    result = jacobian(gradient, inputs, create_graph=create_graph, strict=strict)
    return result if many else result[0][0]


def vhp(func, inputs, v=None, create_graph=False, strict=False):
    """(output, v^T H)."""
    with core.enable_grad():
        inputs, many = _as_tuple(inputs, "inputs", "vhp")
        xs = _inputs(inputs, create_graph)
        v = _check_vector(v, xs, "v")
        out = _scalar(func, xs, "vhp")
        first = _filled(grad(out, xs, create_graph=True, allow_unused=True), xs, strict, "The function given to vhp is independent of input {}.")
        recorded = [(g, a) for g, a in zip(first, v) if g.requires_grad]
        second = grad([g for g, _ in recorded], xs, [a for _, a in recorded], create_graph=create_graph, allow_unused=True) if recorded else (
            None,) * len(xs)
    second = _filled(second, xs, strict, "The gradient is independent of input {}.")
    return _done((out,), False, create_graph), _done(second, many, create_graph)


def hvp(func, inputs, v=None, create_graph=False, strict=False):
    """(output, H v); H is symmetric, so this is v^T H."""
    return vhp(func, inputs, v, create_graph, strict)
