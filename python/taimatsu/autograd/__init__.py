"""Automatic differentiation."""
import importlib
import sys
import types
import warnings
from collections.abc import Mapping

from .. import _core as core
from .._core import Tensor
from . import graph
from .anomaly_mode import detect_anomaly, set_detect_anomaly
from .function import Function
from .grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled, set_multithreading_enabled
from .graph import _engine_run_backward

Variable = Tensor

__all__ = ["Variable", "Function", "backward", "grad_mode", "detect_anomaly", "enable_grad", "grad", "gradcheck", "gradgradcheck",
           "inference_mode", "no_grad", "set_detect_anomaly", "set_grad_enabled", "set_multithreading_enabled"]


def _is_edge_or_tensor(x):
    return isinstance(x, (Tensor, graph.GradientEdge)) or hasattr(type(x), "__torch_function__")


def _as_tuple(x, what, empty_message):
    """Outputs or inputs of a call as a tuple; a plain dict counts by its values."""
    if _is_edge_or_tensor(x):
        return (x,)
    if type(x) is dict:
        x = x.values()
    elif isinstance(x, Mapping):
        raise TypeError(f"`inputs` argument to `{what}` must be a dict, not {type(x).__name__}. Other Mapping types are not supported.")
    x = tuple(x)
    if empty_message and not x:
        raise RuntimeError(f"`inputs` argument to `{what}` cannot be empty.")
    return x


def _grads_tuple(grads, length):
    if grads is None:
        return (None,) * length
    return (grads,) if isinstance(grads, Tensor) else tuple(grads)


def _meta_of(out):
    """(shape, dtype, device) of a tensor or of what an edge carries."""
    if isinstance(out, graph.GradientEdge):
        meta = out.node._input_metadata[out.output_nr]
        return core.Size(meta.shape), meta.dtype, meta.device
    return out.shape, out.dtype, out.device


def _check_given(i, out, grad, batched):
    shape, dtype, _ = _meta_of(out)
    given = grad.shape[1:] if batched else grad.shape
    if given != shape:
        if batched:
            raise RuntimeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch dimension. The sizes of the "
                "remaining dimensions are expected to match the shape of corresponding output, but a mismatch was detected: "
                f"grad_output[{i}] has a shape of {given} and output[{i}] has a shape of {shape}. If you only want some tensors in "
                "`grad_output` to be considered batched, consider using vmap.")
        raise RuntimeError(f"Mismatch in shape: grad_output[{i}] has a shape of {given} and output[{i}] has a shape of {shape}.")
    if dtype.is_complex != grad.dtype.is_complex:
        raise RuntimeError("For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
                           f"grad_output[{i}] has a dtype of {grad.dtype} and output[{i}] has a dtype of {dtype}.")
    return grad


def _implicit(out):
    """The gradient 1 of a scalar output that was given none."""
    is_edge = isinstance(out, graph.GradientEdge)
    if not is_edge and not out.requires_grad:
        return None
    shape, dtype, device = _meta_of(out)
    if shape.numel() != 1:
        raise RuntimeError("grad can be implicitly created only for scalar outputs")
    if not dtype.is_floating_point:
        raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {dtype}")
    return core.ones(shape, dtype=dtype, device=device) if is_edge else core.ones_like(out, memory_format=core.preserve_format)


def _make_grads(outputs, grads, is_grads_batched):
    """Check the given gradients and make the missing ones."""
    made = []
    for i, (out, grad) in enumerate(zip(outputs, grads)):
        if grad is None:
            made.append(_implicit(out))
        elif isinstance(grad, Tensor):
            made.append(_check_given(i, out, grad, is_grads_batched))
        else:
            raise TypeError("gradients can be either Tensors or None, but got " + type(grad).__name__)
    return tuple(made)


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, grad_variables=None, inputs=None):
    """Add the gradients of ``tensors`` to the .grad of all leaves, or of ``inputs`` only."""
    if grad_variables is not None:
        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2)
        if grad_tensors is not None:
            raise RuntimeError("`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. Please only use "
                               "`grad_tensors`.")
        grad_tensors = grad_variables
    inputs = () if inputs is None else _as_tuple(inputs, "backward()", True)
    tensors = _as_tuple(tensors, "backward()", False)
    grads = _make_grads(tensors, _grads_tuple(grad_tensors, len(tensors)), False)
    retain_graph = create_graph if retain_graph is None else retain_graph
    _engine_run_backward(tensors, grads, retain_graph, create_graph, inputs, True, True)


def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, only_inputs=True, allow_unused=None,
         is_grads_batched=False, materialize_grads=False):
    """The gradients of ``outputs`` with respect to ``inputs``, returned; .grad is left alone."""
    if materialize_grads and allow_unused is False:
        raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False.")
    allow_unused = materialize_grads if allow_unused is None else allow_unused
    outputs = _as_tuple(outputs, "grad()", False)
    wanted = _as_tuple(inputs, "grad()", True)
    if not only_inputs:
        warnings.warn("only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for other parts of "
                      "the graph, please use torch.autograd.backward.", FutureWarning, stacklevel=2)
    grads = _make_grads(outputs, _grads_tuple(grad_outputs, len(outputs)), is_grads_batched)
    retain_graph = create_graph if retain_graph is None else retain_graph
    run = _batched_grad if is_grads_batched else _engine_run_backward
    result = run(outputs, grads, retain_graph, create_graph, wanted, allow_unused, False)
    if materialize_grads:
        if any(r is None and isinstance(i, graph.GradientEdge) for r, i in zip(result, wanted)):
            raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")
        result = tuple(core.zeros_like(i, requires_grad=create_graph) if r is None else r for r, i in zip(result, wanted))
    return dict(zip(inputs, result)) if type(inputs) is dict else result


def _batched_grad(outputs, grads, retain_graph, create_graph, inputs, allow_unused, accumulate):
    """One backward per entry of the batch; results are stacked."""
    n = next(g.shape[0] for g in grads if g is not None)
    rows = []
    for i in range(n):
        part = tuple(None if g is None else g[i] for g in grads)
        keep = retain_graph or i < n - 1
        rows.append(_engine_run_backward(outputs, part, keep, create_graph, inputs, allow_unused, accumulate))
    return tuple(None if column[0] is None else core.stack(column) for column in zip(*rows))


def variable(*args, **kwargs):
    raise RuntimeError("torch.autograd.variable(...) is deprecated, use torch.tensor(...) instead")


variable.Variable = Variable

_LAZY = ("functional", "gradcheck", "grad_mode", "function", "forward_ad", "profiler")


class _Package(types.ModuleType):
    """autograd.gradcheck is the function, also after the import of the file of that name."""

    def __setattr__(self, name, value):
        super().__setattr__(name, value.gradcheck if name == "gradcheck" and isinstance(value, types.ModuleType) else value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name):
    if name in ("gradcheck", "gradgradcheck"):
        value = getattr(importlib.import_module(f"{__name__}.gradcheck"), name)
        globals()[name] = value
        return value
    if name in _LAZY:
        try:
            return importlib.import_module(f"{__name__}.{name}")
        except ModuleNotFoundError:
            pass
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
