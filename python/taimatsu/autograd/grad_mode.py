"""Switches of gradient recording, as context managers and decorators."""
import functools
import inspect

from .. import _core as core
from .._core import _C, typename

__all__ = ["no_grad", "enable_grad", "set_grad_enabled", "inference_mode", "set_multithreading_enabled"]


def _wrap_generator(make_context, func):
    """A generator function whose body, and only its body, runs inside the context."""
    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        with make_context():
            gen = func(*args, **kwargs)

        def step(method, *value):
            with make_context():
                return method(*value)

        try:
            answer = step(gen.send, None)
            while True:
                try:
                    request = yield answer
                except GeneratorExit:
                    step(gen.close)
                    raise
                except BaseException as error:
                    answer = step(gen.throw, error)
                else:
                    answer = step(gen.send, request)
        except StopIteration as end:
            return end.value

    return wrapped


def context_decorator(make_context, func):
    """``func`` run inside a fresh ``make_context()`` at every call."""
    if inspect.isclass(func):
        import warnings
        warnings.warn("Decorating classes is deprecated and will be disabled in future versions. You should only decorate functions or "
                      "methods. To preserve the current behavior of class decoration, you can directly decorate the `__init__` method "
                      "and nothing else.", FutureWarning, stacklevel=3)
        func.__init__ = context_decorator(make_context, func.__init__)
        return func
    if inspect.isgeneratorfunction(func):
        return _wrap_generator(make_context, func)

    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        with make_context():
            return func(*args, **kwargs)

    return wrapped


class _DecoratorContextManager:
    """A context manager that also decorates functions."""

    def __call__(self, orig_func):
        return context_decorator(self.clone, orig_func)

    def __enter__(self):
        raise NotImplementedError

    def __exit__(self, exc_type, exc_value, traceback):
        raise NotImplementedError

    def clone(self):
        return type(self)()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """One that may decorate without parentheses: ``@no_grad``."""

    def __new__(cls, orig_func=None):
        if orig_func is None:
            return super().__new__(cls)
        return cls()(orig_func)


class no_grad(_NoParamDecoratorContextManager):
    """Operators inside record no gradient."""

    def __init__(self):
        self.prev = False

    def __enter__(self):
        self.prev = core.is_grad_enabled()
        _C._set_grad_enabled(False)

    def __exit__(self, exc_type, exc_value, traceback):
        _C._set_grad_enabled(self.prev)


class enable_grad(_NoParamDecoratorContextManager):
    """Operators inside record gradients, also within no_grad."""

    def __enter__(self):
        self.prev = core.is_grad_enabled()
        _C._set_grad_enabled(True)

    def __exit__(self, exc_type, exc_value, traceback):
        _C._set_grad_enabled(self.prev)


class set_grad_enabled(_DecoratorContextManager):
    """Switch recording on or off: at once as a function, for a while as a context manager or decorator."""

    def __init__(self, mode):
        self.prev = core.is_grad_enabled()
        self.mode = mode
        _C._set_grad_enabled(mode)

    def __call__(self, orig_func):
        _C._set_grad_enabled(self.prev)
        return super().__call__(orig_func)

    def __enter__(self):
        _C._set_grad_enabled(self.mode)

    def __exit__(self, exc_type, exc_value, traceback):
        _C._set_grad_enabled(self.prev)

    def __repr__(self):
        return f"{typename(self)}(mode={self.mode})"

    __str__ = __repr__

    def clone(self):
        return type(self)(self.mode)


class inference_mode(_DecoratorContextManager):
    """no_grad for results that will never take part in autograd: they carry no version counter."""

    def __new__(cls, mode=True):
        if isinstance(mode, bool):
            return super().__new__(cls)
        return cls()(mode)

    def __init__(self, mode=True):
        self.mode = mode

    def __enter__(self):
        self._inference_mode_context = _C._InferenceMode(self.mode)
        self._inference_mode_context.__enter__()

    def __exit__(self, exc_type, exc_value, traceback):
        self._inference_mode_context.__exit__(exc_type, exc_value, traceback)

    def clone(self):
        return type(self)(self.mode)


class set_multithreading_enabled(_DecoratorContextManager):
    """Whether backward may use threads of its own. The CPU's backward runs on the caller's thread in any case."""

    _enabled = True

    def __init__(self, mode):
        self.prev = set_multithreading_enabled._enabled
        set_multithreading_enabled._enabled = mode
        self.mode = mode

    def __enter__(self):
        pass

    def __exit__(self, exc_type, exc_value, traceback):
        set_multithreading_enabled._enabled = self.prev

    def clone(self):
        return type(self)(self.mode)
