"""Which attention kernel may run. One kernel serves all choices here, so a choice only has to allow one."""
import contextlib
import enum

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(enum.Enum):
    """PyTorch's kernels, by its numbers."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    def __int__(self):
        return self.value

    def __repr__(self):
        return f"<SDPBackend.{self.name}: {self.value}>"


_current = [list(SDPBackend)[1:]]


@contextlib.contextmanager
def sdpa_kernel(backends, set_priority=False):
    """Allow only ``backends`` inside: one or several of SDPBackend."""
    if not isinstance(backends, (list, SDPBackend)):
        raise AssertionError("Backend must be an instance of SDPBackend or a list of SDPBackend instances")
    if isinstance(backends, SDPBackend):
        backends = [backends]
    for backend in backends:
        if not isinstance(backend, SDPBackend):
            raise AssertionError("Backend must be an instance of SDPBackend or a list of SDPBackend instances")
    _current.append(list(dict.fromkeys(backends)))
    try:
        yield {}
    finally:
        _current.pop()


def _cur_sdpa_kernel_backends(with_priority=False):
    return list(_current[-1])
