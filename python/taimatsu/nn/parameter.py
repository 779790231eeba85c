"""Parameter and Buffer: tensors that a Module registers when they are assigned to it; and their uninitialised forms."""
from collections import OrderedDict

from .. import _core as core
from .._core import Tensor, _C

_no_override = getattr(_C, "_disabled_torch_function_impl", None)


class _ParameterMeta(type(Tensor)):
    """Lets a tensor of another class count as a parameter when it carries ``_is_param``."""

    def __instancecheck__(cls, instance):
        if cls is Parameter and isinstance(instance, Tensor) and getattr(instance, "_is_param", False):
            return True
        return super().__instancecheck__(instance)


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that becomes one of a Module's parameters when assigned as its attribute."""

    def __new__(cls, data=None, requires_grad=True):
        if data is None:
            data = core.empty(0)
        if type(data) is Tensor or type(data) is Parameter:
            return Tensor._make_subclass(cls, data, requires_grad)
        made = data.detach().requires_grad_(requires_grad)
        if type(made) is not type(data):
            raise RuntimeError(
                f"Creating a Parameter from an instance of type {type(data).__name__} requires that detach() returns an "
                f"instance of the same type, but return type {type(made).__name__} was found instead. To use the type as a "
                "Parameter, please correct the detach() semantics defined by its __torch_dispatch__() implementation.")
        made._is_param = True
        return made

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            copied = self.data.clone(memory_format=core.preserve_format)
            memo[id(self)] = type(self)(copied, self.requires_grad)
        return memo[id(self)]

    def __repr__(self):
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, proto):
        from .. import _utils
        state = _utils._get_obj_state(self)
        hooks = OrderedDict()       # hooks are not saved
        if not state:
            return _utils._rebuild_parameter, (self.data, self.requires_grad, hooks)
        return _utils._rebuild_parameter_with_state, (self.data, self.requires_grad, hooks, state)

    if _no_override is not None:
        __torch_function__ = _no_override


_C._set_parameter_class(Parameter)      # the C parser knows it as plain


class _BufferMeta(type(Tensor)):
    def __instancecheck__(cls, instance):
        if cls is Buffer and isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False):
            return True
        return super().__instancecheck__(instance)


class Buffer(Tensor, metaclass=_BufferMeta):
    """A tensor that becomes one of a Module's buffers when assigned as its attribute."""

    def __new__(cls, data=None, *, persistent=True):
        if data is None:
            data = core.empty(0)
        made = data.detach().requires_grad_(data.requires_grad)
        made.persistent = persistent
        made._is_buffer = True
        return made

    if _no_override is not None:
        __torch_function__ = _no_override


_LAZY_ALLOWED = {"half", "float", "double", "char", "short", "int", "long", "cuda", "cpu", "to", "get_device", "_has_compatible_shallow_copy_type"}


class UninitializedTensorMixin:
    """What uninitialised parameters and buffers share: no shape until ``materialize``."""

    cls_to_become = None

    def materialize(self, shape, device=None, dtype=None):
        """Become an ordinary tensor of this shape, in place (values are uninitialised)."""
        device = self.data.device if device is None else device
        dtype = self.data.dtype if dtype is None else dtype
        self.data = core.empty(shape, device=device, dtype=dtype)
        self.__class__ = self.cls_to_become

    @property
    def shape(self):
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in `load_state_dict` when "
            "trying to load an uninitialized parameter into an initialized one. Call `forward` to initialize the parameters before "
            "accessing their attributes.")

    def share_memory_(self):
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the parameters before calling "
            "`module.share_memory()`.")

    def __repr__(self):
        return f"<{self.__class__.__name__}>"

    def __reduce_ex__(self, proto):
        return self.__class__, (self.requires_grad,)


def is_lazy(param):
    """Whether ``param`` is an uninitialised parameter or buffer."""
    return isinstance(param, UninitializedTensorMixin)


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape is not known yet; a lazy module materialises it at its first call."""

    cls_to_become = Parameter

    def __new__(cls, requires_grad=True, device=None, dtype=None):
        return Tensor._make_subclass(cls, core.empty(0, device=device, dtype=dtype), requires_grad)

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        return memo[id(self)]


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer whose shape is not known yet."""

    cls_to_become = Tensor

    def __new__(cls, requires_grad=False, device=None, dtype=None, persistent=True):
        made = Tensor._make_subclass(cls, core.empty(0, device=device, dtype=dtype), requires_grad)
        made.persistent = persistent
        made._is_buffer = True
        return made
