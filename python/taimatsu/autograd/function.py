"""Operators of the user's own: subclasses of Function with forward and backward."""
import functools
import inspect
import itertools
import warnings

from .. import _core as core
from .._core import Tensor, _C

__all__ = ["FunctionCtx", "BackwardCFunction", "FunctionMeta", "Function", "once_differentiable", "InplaceFunction"]

_function_ids = itertools.count()


class FunctionCtx:
    """What forward leaves for backward."""

    def save_for_backward(self, *tensors):
        """Keep tensors for backward, where they are ``ctx.saved_tensors``."""
        self.to_save = tensors

    def save_for_forward(self, *tensors):
        """Keep tensors for jvp."""
        for t in tensors:
            if not (isinstance(t, Tensor) or t is None):
                raise AssertionError("save_for_forward expects all arguments to be tensors; you should save non-tensors as attributes on ctx.")
        self.saved_for_forward = tensors

    def mark_dirty(self, *args):
        """Name the inputs that forward changed in place."""
        self.dirty_tensors = args

    def mark_non_differentiable(self, *args):
        """Name the outputs that have no gradient."""
        self.non_differentiable = args

    def set_materialize_grads(self, value):
        """Whether missing gradients reach backward as zeros (the default) or as None."""
        self.materialize_grads = value


class BackwardCFunction(_C._FunctionBase, FunctionCtx):
    """The node that a call of a Function puts into the graph; also the ``ctx`` of forward and backward."""

    _forward_cls = None

    def _get_user_fn(self):
        backward, vjp = self._forward_cls.backward, self._forward_cls.vjp
        if backward is not Function.backward and vjp is not Function.vjp:
            raise RuntimeError("Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement one "
                               "of them.")
        return backward if vjp is Function.vjp else vjp

    def apply(self, *args):
        """Run the user's backward; the engine calls this."""
        return self._get_user_fn()(self, *args)

    def apply_jvp(self, *args):
        """Run the user's jvp."""
        return self._forward_cls.jvp(self, *args)


class FunctionMeta(type(_C._FunctionBase)):
    """Gives every Function class its node class, named <Name>Backward."""

    def __init__(cls, name, bases, attrs):
        node = type(name + "Backward", (BackwardCFunction,), {"_forward_cls": cls})
        node._autograd_function_id = next(_function_ids)
        node.__module__ = cls.__module__
        cls._backward_cls = node
        super().__init__(name, bases, attrs)


class Function(_C._FunctionBase, FunctionCtx, metaclass=FunctionMeta):
    """Base of custom operators: static methods forward(ctx, *args) and backward(ctx, *grads), called through apply."""

    generate_vmap_rule = False

    def __init__(self, *args, **kwargs):
        warnings.warn(f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you should invoke them on "
                      "the class itself. Instantiating an autograd function will raise an error in a future version of PyTorch.",
                      DeprecationWarning, stacklevel=2)

    def __call__(self, *args, **kwargs):
        raise RuntimeError("Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd function "
                           "with static forward method. (Example: https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)")

    @staticmethod
    def forward(*args, **kwargs):
        """forward(ctx, *args), or forward(*args) together with setup_context."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx, inputs, output):
        """Fill ``ctx`` after a forward that takes none."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx, *grad_outputs):
        """The gradients of all inputs of forward, None for those that have none."""
        raise NotImplementedError("You must implement either the backward or vjp method for your custom autograd.Function to use it with "
                                  "backward mode AD.")

    vjp = backward

    @staticmethod
    def jvp(ctx, *grad_inputs):
        """The tangents of all outputs."""
        raise NotImplementedError("You must implement the jvp function for custom autograd.Function to use it with forward mode AD.")

    @staticmethod
    def vmap(info, in_dims, *args):
        raise NotImplementedError("To use autograd.Function with vmap, you must either override the vmap staticmethod or set "
                                  "generate_vmap_rule=True.")

    @classmethod
    def apply(cls, *args, **kwargs):
        """Call the operator."""
        if cls.setup_context is not Function.setup_context:
            bound = inspect.signature(cls.forward).bind(*args, **kwargs)
            bound.apply_defaults()
            args, kwargs = bound.args, bound.kwargs
        return super().apply(*args, **kwargs)


def once_differentiable(fn):
    """Decorator of a backward that cannot itself be differentiated: doing so raises."""
    @functools.wraps(fn)
    def wrapper(ctx, *args):
        with core.no_grad():
            outputs = fn(ctx, *args)
        if not core.is_grad_enabled() or not any(isinstance(a, Tensor) and a.requires_grad for a in args):
            return outputs
        as_tuple = outputs if isinstance(outputs, tuple) else (outputs,)
        marked = _refuse(as_tuple, args)
        return marked if isinstance(outputs, tuple) else marked[0]

    return wrapper


def _refuse(outputs, grads):
    """The outputs, tied to the incoming gradients by a node whose backward raises."""
    anchor = next(g for g in grads if isinstance(g, Tensor) and g.requires_grad)
    tensors = [o for o in outputs if isinstance(o, Tensor)]
    tied = iter(_NotDifferentiableTwice.apply(anchor, *tensors)) if tensors else iter(())
    return tuple(next(tied) if isinstance(o, Tensor) else o for o in outputs)


class InplaceFunction(Function):
    """A Function with an ``inplace`` flag; old programs derive from it."""

    def __init__(self, inplace=False):
        super().__init__()
        self.inplace = inplace


class _NotDifferentiableTwice(Function):
    @staticmethod
    def forward(ctx, anchor, *tensors):
        return tuple(t.detach() for t in tensors)

    @staticmethod
    def backward(ctx, *grads):
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")
