"""assert_close: are two results equal but for rounding?"""
from collections.abc import Mapping, Sequence

from .. import _core as core
from .._core import Tensor

# dtype -> (relative, absolute) tolerance
_TOLERANCES = {"float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7),
               "complex64": (1.3e-6, 1e-5), "complex128": (1e-7, 1e-7)}
_NUMBERS = {int: (0.0, 0.0), float: (1e-7, 1e-7), complex: (1e-7, 1e-7)}


def default_tolerances(*inputs):
    """The wider tolerances of the dtypes involved; (0, 0) for integers and booleans."""
    pairs = [_TOLERANCES.get(str(getattr(x, "dtype", x)).rpartition(".")[2], (0.0, 0.0)) for x in inputs]
    return max(p[0] for p in pairs), max(p[1] for p in pairs)


class _Mismatch(Exception):
    def __init__(self, kind, text, place):
        self.kind, self.text, self.place = kind, text, place


def _plain(x):
    """NumPy's scalars as Python's."""
    return x.item() if type(x).__module__ == "numpy" and not hasattr(x, "__array_function__") and hasattr(x, "item") else x


def _as_tensor(x):
    return x if isinstance(x, Tensor) else core.as_tensor(x)


def _report(what, first_line, absolute, relative, rtol, atol):
    """The text of a mismatch; absolute and relative are (words before the value, value and place)."""
    exact = rtol == 0 and atol == 0
    lines = [f"{what} are not {'equal' if exact else 'close'}!\n", first_line]
    for kind, value, tolerance in (("absolute", absolute, atol), ("relative", relative, rtol)):
        line = f"Greatest {kind} difference: {value[0]} at index {value[1]}" if value[1] is not None else f"{kind.title()} difference: {value[0]}"
        lines.append(line if exact else f"{line} (up to {tolerance} allowed)")
    return "\n".join(lines)


def _report_scalars(actual, expected, rtol, atol):
    difference = abs(actual - expected)
    relative = float("inf") if expected == 0 else difference / abs(expected)
    return _report("Scalars", f"Expected {expected} but got {actual}.", (difference, None), (relative, None), rtol, atol)


def _report_tensors(actual, expected, close, rtol, atol):
    total = close.numel()
    wrong = total - int(close.sum())
    a, b, fine = actual.flatten(), expected.flatten(), close.flatten()
    if not (actual.is_floating_point() or actual.is_complex()):
        a, b = a.to(core.int64), b.to(core.int64)
    difference = (a - b).abs()
    difference[fine] = 0
    relative = difference / b.abs()
    relative[fine] = 0

    def worst(x):
        value, flat = core.max(x, 0)
        flat, index = int(flat), []
        for n in reversed(close.shape):
            flat, i = divmod(flat, n)
            index.insert(0, i)
        return value.item(), tuple(index)

    return _report("Tensor-likes", f"Mismatched elements: {wrong} / {total} ({wrong / total:.1%})", worst(difference), worst(relative),
                   rtol, atol)


def _compare_numbers(actual, expected, place, rtol, atol, equal_nan):
    if rtol is None:
        (rtol, atol) = map(max, zip(*(_NUMBERS[type(x)] for x in (actual, expected))))
    if actual == expected or (equal_nan and actual != actual and expected != expected):
        return
    difference = abs(actual - expected)
    if not (difference <= atol + rtol * abs(expected) and difference != float("inf")):
        raise _Mismatch(AssertionError, _report_scalars(actual, expected, rtol, atol), place)


def _compare_tensors(actual, expected, place, rtol, atol, equal_nan, check_device, check_dtype, check_layout, check_stride):
    def differ(what, a, b):
        raise _Mismatch(AssertionError, f"The values for attribute '{what}' do not match: {a} != {b}.", place)

    if actual.shape != expected.shape:
        differ("shape", actual.shape, expected.shape)
    if check_layout and actual.layout != expected.layout:
        differ("layout", actual.layout, expected.layout)
    if check_stride and actual.stride() != expected.stride():
        differ("stride()", actual.stride(), expected.stride())
    if check_device and actual.device != expected.device:
        differ("device", actual.device, expected.device)
    if check_dtype and actual.dtype != expected.dtype:
        differ("dtype", actual.dtype, expected.dtype)
    if rtol is None:
        rtol, atol = default_tolerances(actual, expected)
    actual, expected = actual.detach(), expected.detach()
    if actual.dtype != expected.dtype:
        common = core.promote_types(actual.dtype, expected.dtype)
        actual, expected = actual.to(common), expected.to(common)
    close = core.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan)
    if not bool(close.all()):
        text = _report_tensors(actual, expected, close, rtol, atol) if actual.ndim else _report_scalars(actual.item(), expected.item(), rtol, atol)
        raise _Mismatch(AssertionError, text, place)


def _compare(actual, expected, place, allow_subclasses, options):
    if isinstance(actual, Sequence) and isinstance(expected, Sequence) and not isinstance(actual, str):
        if len(actual) != len(expected):
            raise _Mismatch(AssertionError, f"The length of the sequences mismatch: {len(actual)} != {len(expected)}", place)
        for i, (a, b) in enumerate(zip(actual, expected)):
            _compare(a, b, (*place, i), allow_subclasses, options)
        return
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        if set(actual) != set(expected):
            missing, extra = sorted(set(expected) - set(actual)), sorted(set(actual) - set(expected))
            raise _Mismatch(AssertionError, "The keys of the mappings do not match:\nMissing keys in the actual mapping: "
                            f"{missing}\nAdditional keys in the actual mapping: {extra}", place)
        for key in expected:
            _compare(actual[key], expected[key], (*place, key), allow_subclasses, options)
        return
    if actual is None or expected is None:
        if actual is not expected:
            raise _Mismatch(AssertionError, f"None mismatch: {actual} is not {expected}", place)
        return
    unlike = _Mismatch(TypeError, f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}.", place)
    x, y = _plain(actual), _plain(expected)
    if isinstance(x, bool) and isinstance(y, bool):
        if x is not y:
            raise _Mismatch(AssertionError, f"Booleans mismatch: {x} is not {y}", place)
    elif isinstance(x, tuple(_NUMBERS)) and isinstance(y, tuple(_NUMBERS)) and type(x) in _NUMBERS and type(y) in _NUMBERS:
        if options["check_dtype"] and type(x) is not type(y):
            raise _Mismatch(AssertionError, f"The (d)types do not match: {type(x)} != {type(y)}.", place)
        _compare_numbers(x, y, place, options["rtol"], options["atol"], options["equal_nan"])
    else:
        related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
        if not related or (not allow_subclasses and type(actual) is not type(expected)):
            raise unlike
        try:
            a, b = _as_tensor(actual), _as_tensor(expected)
        except Exception:
            raise unlike from None
        _compare_tensors(a, b, place, **options)


def assert_close(actual, expected, *, allow_subclasses=True, rtol=None, atol=None, equal_nan=False, check_device=True, check_dtype=True,
                 check_layout=True, check_stride=False, msg=None):
    """Raise AssertionError unless |actual - expected| <= atol + rtol |expected| everywhere; goes into sequences and mappings."""
    if (rtol is None) != (atol is None):
        raise ValueError(f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {'rtol' if rtol is None else 'atol'}.")
    options = dict(rtol=rtol, atol=atol, equal_nan=equal_nan, check_device=check_device, check_dtype=check_dtype, check_layout=check_layout,
                   check_stride=check_stride)
    try:
        _compare(actual, expected, (), allow_subclasses, options)
    except _Mismatch as error:
        text = error.text
        if error.place:
            text += "\n\nThe failure occurred for item " + "".join(f"[{p!r}]" for p in error.place)
        if msg is not None and error.kind is AssertionError:
            text = msg(text) if callable(msg) else msg
        raise error.kind(text) from None


def assert_allclose(actual, expected, rtol=None, atol=None, equal_nan=True, msg=""):
    """Deprecated: use assert_close."""
    import warnings
    warnings.warn("`torch.testing.assert_allclose()` is deprecated since 1.12. Please use `torch.testing.assert_close()` instead. You can find "
                  "detailed upgrade instructions in https://github.com/pytorch/pytorch/issues/61844.", FutureWarning, stacklevel=2)
    if rtol is None and atol is None:
        rtol, atol = default_tolerances(actual, expected)
    assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_device=True, check_dtype=False, msg=msg or None)
