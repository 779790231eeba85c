"""The reduction argument of losses: names, numbers and the two deprecated flags."""
import warnings

_NUMBERS = {"none": 0, "mean": 1, "sum": 2}


def get_enum(reduction):
    """0 for "none", 1 for "mean", 2 for "sum"."""
    if reduction == "elementwise_mean":
        warnings.warn("reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.", stacklevel=2)
        return 1
    if reduction not in _NUMBERS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return _NUMBERS[reduction]


def legacy_get_string(size_average, reduce, emit_warning=True):
    """What the flags of PyTorch 0.4 mean."""
    average = size_average is None or size_average
    kept = reduce is None or reduce
    name = ("mean" if average else "sum") if kept else "none"
    if emit_warning:
        warnings.warn(f"size_average and reduce args will be deprecated, please use reduction='{name}' instead.", stacklevel=2)
    return name


def legacy_get_enum(size_average, reduce, emit_warning=True):
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))


def resolve(size_average, reduce, reduction):
    """The number of ``reduction``, unless one of the deprecated flags says otherwise."""
    if size_average is not None or reduce is not None:
        return legacy_get_enum(size_average, reduce)
    return get_enum(reduction)
