"""torch.compiler: markers and questions. Nothing is captured yet."""
from ._compile import compile  # noqa: F401


def is_compiling():
    return False


def is_dynamo_compiling():
    return False


def is_exporting():
    return False


def reset():
    """Forget compiled code; there is none."""


def disable(fn=None, recursive=True, *, reason=None):
    """Keep ``fn`` out of compilation; returns it."""
    return fn if fn is not None else (lambda f: f)


def allow_in_graph(fn):
    """Treat ``fn`` as one operator; returns it."""
    return fn


def assume_constant_result(fn):
    """Take the result of ``fn`` as a constant; returns it."""
    return fn


def list_backends(exclude_tags=("debug", "experimental")):
    """Names of compilers; there is none yet."""
    return []


def cudagraph_mark_step_begin():
    """There are no CUDA graphs."""
