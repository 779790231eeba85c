"""torch.cuda: this build drives no CUDA device, and says so."""
_TEXT = "Torch not compiled with CUDA enabled"


def is_available():
    return False


def is_initialized():
    return False


def device_count():
    return 0


def is_bf16_supported(including_emulation=True):
    return False


def is_current_stream_capturing():
    return False


def manual_seed(seed):
    """There is no device to seed; as in PyTorch this is no error."""


def manual_seed_all(seed):
    """There is no device to seed; as in PyTorch this is no error."""


def empty_cache():
    """Nothing is cached."""


def memory_allocated(device=None):
    return 0


def max_memory_allocated(device=None):
    return 0


def memory_reserved(device=None):
    return 0


def max_memory_reserved(device=None):
    return 0


def get_rng_state_all():
    return []


def _absent(*args, **kwargs):
    raise AssertionError(_TEXT)


init = current_device = set_device = get_device_name = get_device_properties = get_device_capability = synchronize = _absent
get_rng_state = set_rng_state = current_stream = default_stream = mem_get_info = _absent


def __getattr__(name):
    if name == "amp":
        import importlib
        return importlib.import_module(f"{__name__}.amp")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
