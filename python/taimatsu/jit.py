"""torch.jit: the questions and markers that libraries use. There is no TorchScript; script and trace do not exist."""
from typing import Final  # noqa: F401


def is_scripting():
    return False


def is_tracing():
    return False


def ignore(drop=False, **kwargs):
    """Mark a function for TorchScript; returns it."""
    return drop if callable(drop) else (lambda fn: fn)


def unused(fn):
    """Mark a function for TorchScript; returns it."""
    return fn


def export(fn):
    """Mark a method for TorchScript; returns it."""
    return fn


def annotate(the_type, the_value):
    """The value."""
    return the_value
