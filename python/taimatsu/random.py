"""The default random generator."""
import contextlib

from ._core import _C

__all__ = ["set_rng_state", "get_rng_state", "manual_seed", "seed", "initial_seed", "fork_rng", "thread_safe_generator"]

default_generator = _C.default_generator


def set_rng_state(new_state):
    """Put the default generator into a state that get_rng_state gave."""
    default_generator.set_state(new_state)


def get_rng_state():
    """The state of the default generator, as a byte tensor."""
    return default_generator.get_state()


def manual_seed(seed):
    """Seed the default generator; returns it."""
    return default_generator.manual_seed(int(seed))


def seed():
    """Seed the default generator from the system's entropy; returns the seed."""
    return default_generator.seed()


def initial_seed():
    """The seed of the default generator."""
    return default_generator.initial_seed()


@contextlib.contextmanager
def fork_rng(devices=None, enabled=True, _caller="fork_rng", _devices_kw="devices", device_type="cuda"):
    """While open, draws leave no trace: the generator's state comes back afterwards."""
    if not enabled:
        yield
        return
    state = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(state)


def thread_safe_generator():
    """The generator that this thread should draw from: None, the default one (data workers are processes)."""
    return None
