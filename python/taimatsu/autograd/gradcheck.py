"""Gradients checked against finite differences."""
from .. import _core as core
from .._core import Tensor
from . import grad

__all__ = ["gradcheck", "gradgradcheck", "GradcheckError"]


class GradcheckError(RuntimeError):
    """A gradient that does not agree."""


def _tensors(x):
    return tuple(t for t in ((x,) if isinstance(x, Tensor) else tuple(x)) if isinstance(t, Tensor))


def _differentiable(outputs):
    return [o for o in _tensors(outputs) if o.is_floating_point() or o.is_complex()]


def _numerical_column(fn, inputs, entry, index, eps):
    """The change of all outputs per unit of one element of one input, by a central difference."""
    def at(delta):
        before = entry[index].item()
        entry[index] = before + delta
        with core.no_grad():
            outs = [o.detach().clone() for o in _differentiable(fn(*inputs))]
        entry[index] = before
        return outs

    return [(a - b) / (2 * eps) for a, b in zip(at(eps), at(-eps))]


def _numerical(fn, inputs, k, n_outputs, eps):
    """Per output, the matrix (elements of input k, elements of output); complex inputs give two rows per element: real, imaginary."""
    x = inputs[k].data  # its changes are no changes of the graph's value
    columns = [[] for _ in range(n_outputs)]
    flat = core.view_as_real(x).reshape(-1) if x.is_complex() else x.reshape(-1)
    if flat.numel() and flat.data_ptr() != x.data_ptr():
        raise GradcheckError("gradcheck expects contiguous inputs")
    for i in range(flat.numel()):
        for j, column in enumerate(_numerical_column(fn, inputs, flat, i, eps)):
            columns[j].append(column.reshape(-1))
    return [core.stack(c) if c else None for c in columns]


def _analytical(outputs, inputs, j):
    """Per input, the matrix (elements of output j, elements of input), by backward from unit vectors."""
    out = outputs[j]
    rows = [[] for _ in inputs]
    units = [1.0, 1j] if out.is_complex() else [1.0]
    for i in range(out.numel()):
        for unit in units:
            seed = core.zeros_like(out)
            seed.reshape(-1)[i] = unit
            grads = grad(out, inputs, seed, retain_graph=True, allow_unused=True)
            for k, g in enumerate(grads):
                g = core.zeros_like(inputs[k]) if g is None else g
                rows[k].append(core.view_as_real(g.resolve_conj()).reshape(-1) if g.is_complex() else g.reshape(-1))
    return [core.stack(r) if r else None for r in rows]


def _real_matrix(numerical, complex_output):
    """The numerical matrix with real and imaginary parts of the output as separate rows, to match the analytical one."""
    if not complex_output:
        return numerical.t()
    parts = core.view_as_real(numerical)            # (inputs, outputs, 2)
    return parts.permute(1, 2, 0).reshape(-1, parts.shape[0])


def _check(fn, inputs, eps, atol, rtol, nondet_tol):
    wanted = [t for t in inputs if isinstance(t, Tensor) and t.requires_grad]
    outputs = [o for o in _differentiable(fn(*inputs)) if o.requires_grad]
    if not outputs:
        raise ValueError("gradcheck expects at least one output that requires gradient")
    where = [k for k, t in enumerate(inputs) if isinstance(t, Tensor) and t.requires_grad]
    numerical = {k: _numerical(fn, inputs, k, len(_differentiable(fn(*inputs))), eps) for k in where}
    positions = [i for i, o in enumerate(_differentiable(fn(*inputs))) if o.requires_grad]
    for j, out in enumerate(outputs):
        analytical = _analytical(outputs, wanted, j)
        again = _analytical(outputs, wanted, j)
        for k, a, b in zip(where, analytical, again):
            if a is None:
                continue
            n = _real_matrix(numerical[k][positions[j]], out.is_complex())
            if not core.allclose(a, b, rtol=0.0, atol=nondet_tol):
                raise GradcheckError("Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives "
                                     "different values, although analytical gradient matches numerical gradient.The tolerance for "
                                     f"nondeterminism was {nondet_tol}.")
            if not core.allclose(a.to(n.dtype), n, rtol=rtol, atol=atol):
                raise GradcheckError(f"Jacobian mismatch for output {positions[j]} with respect to input {k},\nnumerical:{n.t()}\n"
                                     f"analytical:{a.t()}\n")


def gradcheck(func, inputs, *, eps=1e-6, atol=1e-5, rtol=1e-3, raise_exception=True, nondet_tol=0.0, check_undefined_grad=True,
              check_grad_dtypes=False, check_batched_grad=False, check_batched_forward_grad=False, check_forward_ad=False,
              check_backward_ad=True, fast_mode=False, masked=None):
    """True if the gradients of ``func`` agree with central differences; inputs should be double precision."""
    inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    checked = [t for t in inputs if isinstance(t, Tensor) and t.requires_grad]
    if not checked:
        raise ValueError("gradcheck expects at least one input tensor to require gradient, but none of the them have requires_grad=True.")
    for i, t in enumerate(checked):
        if t.dtype not in (core.float64, core.complex128):
            import warnings
            warnings.warn(f"Input #{i} requires gradient and is not a double precision floating point or complex. This check will likely fail "
                          "if all the inputs are not of double precision floating point or complex. ", stacklevel=2)
    try:
        _check(func, inputs, eps, atol, rtol, nondet_tol)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(func, inputs, grad_outputs=None, *, eps=1e-6, atol=1e-5, rtol=1e-3, gen_non_contig_grad_outputs=False,
                  raise_exception=True, nondet_tol=0.0, check_undefined_grad=True, check_grad_dtypes=False, check_batched_grad=False,
                  check_fwd_over_rev=False, check_rev_over_rev=True, fast_mode=False, masked=False):
    """True if second derivatives agree with central differences of first ones."""
    inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    outputs = [o for o in _differentiable(func(*inputs)) if o.requires_grad]
    if grad_outputs is None:
        seeds = tuple(core.randn_like(o.detach()).requires_grad_() for o in outputs)
    else:
        seeds = (grad_outputs,) if isinstance(grad_outputs, Tensor) else tuple(grad_outputs)
    n = len(seeds)
    wanted = [k for k, t in enumerate(inputs) if isinstance(t, Tensor) and t.requires_grad]

    def first(*args):
        given, cotangents = args[:-n], args[-n:]
        given = tuple(x.detach().requires_grad_() if isinstance(x, Tensor) and x.requires_grad and not core.is_grad_enabled() else x
                      for x in given)
        with core.enable_grad():
            outs = [o for o in _differentiable(func(*given)) if o.requires_grad]
            grads = grad(outs, [given[k] for k in wanted], cotangents, create_graph=True, allow_unused=True)
        return tuple(g for g in grads if g is not None)

    return gradcheck(first, inputs + seeds, eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception, nondet_tol=nondet_tol)
