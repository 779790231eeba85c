"""torch.distributed: not part of this build; programs that ask are told so."""


def is_available():
    return False


def is_initialized():
    return False
