"""Settings of save and load, as torch.utils.serialization.config."""


class _Load:
    mmap = False
    endianness = None
    mmap_flags = 2
    calculate_storage_offsets = False


class _Save:
    compute_crc32 = True
    use_pinned_memory_for_d2h = False
    storage_alignment = 64


class config:
    """config.load and config.save."""

    load = _Load
    save = _Save
