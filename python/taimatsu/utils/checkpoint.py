"""Activation checkpointing: what a function saved for backward is thrown away and computed again when backward needs it."""
import contextlib
import warnings

from .. import _core as core
from .._core import Tensor
from ..autograd import Function, backward as run_backward
from ..autograd.graph import saved_tensors_hooks
from ..random import get_rng_state, set_rng_state

__all__ = ["checkpoint", "checkpoint_sequential", "CheckpointError", "CheckpointFunction", "check_backward_validity", "detach_variable",
           "set_checkpoint_debug_enabled", "set_checkpoint_early_stop", "noop_context_fn"]


class CheckpointError(RuntimeError):
    """The recomputation did not do what the first run did."""


def noop_context_fn():
    return contextlib.nullcontext(), contextlib.nullcontext()


_DEFAULT_DETERMINISM_MODE = "default"
_early_stop = None
_debug = None


@contextlib.contextmanager
def set_checkpoint_early_stop(enable):
    """Whether recomputation ends as soon as everything needed is there; overrides the argument."""
    global _early_stop
    before, _early_stop = _early_stop, enable
    try:
        yield
    finally:
        _early_stop = before


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled):
    """Accepted as in PyTorch; errors name the tensors that differ in any case."""
    global _debug
    before, _debug = _debug, enabled
    try:
        yield
    finally:
        _debug = before


def detach_variable(inputs):
    """The inputs, cut from the graph, asking for gradients as before."""
    if not isinstance(inputs, tuple):
        raise RuntimeError("Only tuple of tensors is supported. Got Unsupported input type: " + type(inputs).__name__)
    out = []
    for x in inputs:
        if isinstance(x, Tensor):
            requires_grad = x.requires_grad
            x = x.detach()
            x.requires_grad = requires_grad
        out.append(x)
    return tuple(out)


def check_backward_validity(inputs):
    if not any(x.requires_grad for x in inputs if isinstance(x, Tensor)):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)


class _rng:
    """Runs a block with the random state of another time."""

    def __init__(self, state):
        self.state = state

    def __enter__(self):
        if self.state is not None:
            self.now = get_rng_state()
            set_rng_state(self.state)

    def __exit__(self, *args):
        if self.state is not None:
            set_rng_state(self.now)


class CheckpointFunction(Function):
    """The reentrant form: forward without recording, backward runs forward again with recording and then its backward."""

    @staticmethod
    def forward(ctx, run_function, preserve_rng_state, *args):
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.rng_state = get_rng_state() if preserve_rng_state else None
        ctx.others = [None if isinstance(a, Tensor) else a for a in args]
        ctx.where = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        ctx.save_for_backward(*(args[i] for i in ctx.where))
        with core.no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx, *grads):
        inputs = list(ctx.others)
        for i, t in zip(ctx.where, ctx.saved_tensors):
            inputs[i] = t
        inputs = detach_variable(tuple(inputs))
        with _rng(ctx.rng_state), core.enable_grad():
            outputs = ctx.run_function(*inputs)
        outputs = (outputs,) if isinstance(outputs, Tensor) else outputs
        pairs = [(o, g) for o, g in zip(outputs, grads) if isinstance(o, Tensor) and o.requires_grad]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        run_backward([o for o, _ in pairs], [g for _, g in pairs])
        return None, None, *(x.grad if isinstance(x, Tensor) else None for x in inputs)


class _Stop(Exception):
    """Everything that backward needs has been computed again."""


class _Frame:
    """One checkpointed call: numbers of what it saved, and how to compute it again."""

    def __init__(self, recompute, early_stop, check):
        self.recompute, self.early_stop, self.check = recompute, early_stop, check
        self.count = 0
        self.metadata = []
        self.values = {}

    def pack(self, x):
        number = self.count
        self.count += 1
        self.metadata.append((x.shape, x.dtype, x.device))
        return number

    def unpack(self, number):
        if number not in self.values:
            self._run_again()
        if number not in self.values:
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward and recomputation.\n"
                f"Number of tensors saved during forward: {self.count}\nNumber of tensors saved during recomputation: {len(self.values)}.")
        return self.values.pop(number)

    def _run_again(self):
        seen = 0

        def keep(x):
            nonlocal seen
            number, seen = seen, seen + 1
            if self.check and number < len(self.metadata) and self.metadata[number] != (x.shape, x.dtype, x.device):
                old, new = ({"shape": m[0], "dtype": m[1], "device": m[2]} for m in (self.metadata[number], (x.shape, x.dtype, x.device)))
                raise CheckpointError("torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than during "
                                      f"the forward pass.\ntensor at position {number}:\nsaved metadata: {old}\nrecomputed metadata: {new}\n")
            self.values[number] = x.detach()
            if self.early_stop and seen == self.count:
                raise _Stop
            return x

        with saved_tensors_hooks(keep, lambda x: x), core.enable_grad(), contextlib.suppress(_Stop):
            self.recompute()


def _without_reentrant(function, preserve_rng_state, context_fn, determinism_check, early_stop, args, kwargs):
    forward_context, recompute_context = context_fn()
    if determinism_check not in ("default", "none"):
        raise ValueError(f"determinism_check should be one of ['default', 'none'] but got {determinism_check}")
    state = get_rng_state() if preserve_rng_state else None

    def recompute():
        with _rng(state), recompute_context:
            function(*args, **kwargs)

    frame = _Frame(recompute, early_stop if _early_stop is None else _early_stop, determinism_check == "default")
    with saved_tensors_hooks(frame.pack, frame.unpack), forward_context:
        return function(*args, **kwargs)


def checkpoint(function, *args, use_reentrant=None, context_fn=noop_context_fn, determinism_check=_DEFAULT_DETERMINISM_MODE, debug=False,
               early_stop=True, **kwargs):
    """``function(*args, **kwargs)``, whose intermediate values are not kept but computed again in backward."""
    if use_reentrant is None:
        warnings.warn("torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. Starting in PyTorch 2.9, calling "
                      "checkpoint without use_reentrant will raise an exception. use_reentrant=False is recommended, but if you need to "
                      "preserve the current default behavior, you can pass use_reentrant=True. Refer to docs for more details on the "
                      "differences between the two variants.", stacklevel=2)
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if not use_reentrant:
        return _without_reentrant(function, preserve, context_fn, determinism_check, early_stop, args, kwargs)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if context_fn is not noop_context_fn or debug is not False:
        raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
    return CheckpointFunction.apply(function, preserve, *args)


def checkpoint_sequential(functions, segments, input, use_reentrant=None, **kwargs):
    """A Sequential (or list) run in segments, all but the last one checkpointed."""
    if use_reentrant is None:
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    functions = list(functions)
    size = len(functions) // segments

    def run(start, end):
        def forward(x):
            for f in functions[start:end + 1]:
                x = f(x)
            return x

        return forward

    end = -1
    for start in range(0, size * (segments - 1), size):
        end = start + size - 1
        input = checkpoint(run(start, end), input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
    return run(end + 1, len(functions) - 1)(input)
