"""torch.accelerator: there is none; the CPU is no accelerator."""


def is_available():
    return False


def device_count():
    return 0


def current_accelerator(check_available=False):
    """The accelerator's device, or None."""
    return None


def _none(*args, **kwargs):
    raise RuntimeError("Cannot access accelerator device when none is available.")


current_device_index = current_device_idx = set_device_index = set_device_idx = current_stream = set_stream = synchronize = _none
device_index = get_memory_info = get_device_capability = memory_stats = _none


def empty_cache():
    """Nothing is cached on an accelerator."""
