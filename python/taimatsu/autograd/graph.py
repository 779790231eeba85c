"""The recorded graph: its nodes, edges, and hooks on saved tensors."""
import abc
import contextlib
import functools
import threading
from collections import defaultdict, namedtuple

from .. import _core as core
from .._core import Tensor, _C
from ..utils.hooks import RemovableHandle

__all__ = ["saved_tensors_hooks", "save_on_cpu", "disable_saved_tensors_hooks", "register_multi_grad_hook", "Node", "GradientEdge",
           "get_gradient_edge", "increment_version"]

_autograd = getattr(_C, "_autograd", _C)


class Node(abc.ABC):
    """What ``tensor.grad_fn`` is: name(), next_functions, metadata, register_hook, register_prehook."""

    @abc.abstractmethod
    def name(self):
        raise NotImplementedError

    @property
    @abc.abstractmethod
    def next_functions(self):
        raise NotImplementedError

    @abc.abstractmethod
    def register_hook(self, fn):
        raise NotImplementedError

    @abc.abstractmethod
    def register_prehook(self, fn):
        raise NotImplementedError

    @classmethod
    def __subclasshook__(cls, subclass):
        if cls is Node and all(hasattr(subclass, n) for n in ("name", "next_functions", "register_hook", "register_prehook")):
            return True
        return NotImplemented


GradientEdge = namedtuple("GradientEdge", ["node", "output_nr", "ownership_token"], defaults=[None])
GradientEdge.__doc__ = "One gradient in the graph: what a node receives for one of its outputs."


def _get_grad_fn_or_grad_acc(t):
    """The node that receives the gradient of ``t``."""
    if isinstance(t, GradientEdge):
        return t.node
    if t.requires_grad and t.grad_fn is None:
        with core.enable_grad():
            return t.view_as(t).grad_fn.next_functions[0][0]
    return t.grad_fn


def get_gradient_edge(tensor):
    """The edge that stands for ``tensor`` in calls of backward and grad."""
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    return GradientEdge(_get_grad_fn_or_grad_acc(tensor), tensor.output_nr)


def increment_version(tensor):
    """Count one in-place change of ``tensor`` (or of several)."""
    _C._increment_version((tensor,) if isinstance(tensor, Tensor) else tensor)


class saved_tensors_hooks:
    """While open, tensors saved for backward are kept as ``pack_hook(t)`` and come back through ``unpack_hook``."""

    def __init__(self, pack_hook, unpack_hook):
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self):
        _autograd._push_saved_tensors_default_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *args):
        _autograd._pop_saved_tensors_default_hooks()


class save_on_cpu(saved_tensors_hooks):
    """Keep saved tensors in main memory."""

    def __init__(self, pin_memory=False, device_type="cuda"):
        super().__init__(lambda t: (t.device, t.cpu()), lambda packed: packed[1].to(packed[0], non_blocking=pin_memory))


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message):
    """While open, saved_tensors_hooks raise ``error_message``."""
    before = _autograd._saved_tensors_hooks_get_disabled_error_message()
    _autograd._saved_tensors_hooks_disable(error_message)
    try:
        yield
    finally:
        if before is None:
            _autograd._saved_tensors_hooks_enable()
        else:
            _autograd._saved_tensors_hooks_disable(before)


class _MultiHandle(RemovableHandle):
    def __init__(self, handles):
        self.handles = handles

    def remove(self):
        for handle in self.handles:
            handle.remove()

    def __getstate__(self):
        return self.handles

    def __setstate__(self, state):
        self.handles = state


def _current_call():
    call = _C._current_graph_task_id()
    if call == -1:
        raise AssertionError("expected this hook to be called inside a backward call")
    return call


def register_multi_grad_hook(tensors, fn, *, mode="all"):
    """Call ``fn`` once per backward: with the list of all gradients when the last is there ("all"), or with the first ("any")."""
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    lock = threading.Lock()
    if mode == "any":
        fired = defaultdict(bool)

        @functools.wraps(fn)
        def once(grad):
            call = _current_call()
            with lock:
                before, fired[call] = fired[call], True
            if not before:
                fn(grad)

        return _MultiHandle(tuple(t.register_hook(once) for t in tensors if t.requires_grad))
    nodes = [_get_grad_fn_or_grad_acc(t) for t in tensors]
    pending = {}

    def make(i):
        def collect(grad):
            call = _current_call()
            with lock:
                if call not in pending:
                    pending[call] = [sum(map(_C._will_engine_execute_node, nodes)), [None] * len(nodes)]
                entry = pending[call]
                entry[0] -= 1
                entry[1][i] = grad
                last = entry[0] == 0
            if last:
                del pending[call]
                fn(entry[1])

        return collect

    return _MultiHandle(tuple(t.register_hook(make(i)) for i, t in enumerate(tensors)))


def _engine_run_backward(t_outputs, grad_outputs, retain_graph, create_graph, inputs, allow_unreachable, accumulate_grad):
    """Run the engine from ``t_outputs``: into .grad, or (``accumulate_grad`` False) returning the gradients of ``inputs``."""
    return _C._run_backward(t_outputs, grad_outputs, retain_graph, create_graph, inputs, allow_unreachable, accumulate_grad)
