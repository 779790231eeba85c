"""torch.cpu."""


def is_available():
    return True


def device_count():
    return 1


def current_device():
    return "cpu"


def synchronize(device=None):
    """The CPU has no queue to wait for."""


def set_device(device):
    """There is one CPU device."""
