"""assert_close: are two results equal but for rounding?"""
from collections.abc import Mapping, Sequence

from .. import _core as core
from .._core import Tensor

# dtype -> (relative, absolute) tolerance
_TOLERANCES = {"float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7),
               "complex64": (1.3e-6, 1e-5), "complex128": (1e-7, 1e-7)}


def default_tolerances(*inputs):
    """The wider tolerances of the dtypes involved; (0, 0) for integers and booleans."""
    pairs = [_TOLERANCES.get(str(getattr(x, "dtype", x)).rpartition(".")[2], (0.0, 0.0)) for x in inputs]
    return max(p[0] for p in pairs), max(p[1] for p in pairs)


class _Mismatch(Exception):
    def __init__(self, kind, text, place):
        self.kind, self.text, self.place = kind, text, place


def _as_tensor(x):
    if isinstance(x, Tensor):
        return x
    if isinstance(x, (bool, int, float, complex)) or type(x).__module__ == "numpy":
        return core.as_tensor(x)
    return None


def _describe(actual, expected, bad, rtol, atol, scalar):
    a, b = actual.to(core.complex128 if actual.is_complex() else core.float64), expected.to(
        core.complex128 if expected.is_complex() else core.float64)
    difference = (a - b).abs()
    tolerated = f" (up to {atol} allowed)" if rtol or atol else ""
    relative_tolerated = f" (up to {rtol} allowed)" if rtol or atol else ""
    if scalar:
        absolute = difference.item()
        relative = absolute / abs(b.item()) if b.item() else float("inf")
        kind = "close" if rtol or atol else "equal"
        return (f"Scalars are not {kind}!\n\nExpected {expected.item()} but got {actual.item()}.\nAbsolute difference: {absolute}{tolerated}\n"
                f"Relative difference: {relative}{relative_tolerated}")
    total, wrong = bad.numel(), int(bad.sum())
    difference = core.where(bad, difference, core.zeros_like(difference))
    relative = difference / b.abs()
    relative = core.where(bad, relative, core.zeros_like(relative))

    def worst(x):
        flat = int(core.argmax(x.reshape(-1)))
        index = []
        for n in reversed(x.shape):
            index.append(flat % n)
            flat //= n
        index = tuple(reversed(index))
        return x[index].item(), index[0] if len(index) == 1 else index

    (d, at), (r, rat) = worst(difference), worst(relative)
    kind = "close" if rtol or atol else "equal"
    return (f"Tensor-likes are not {kind}!\n\nMismatched elements: {wrong} / {total} ({wrong / total:.1%})\nGreatest absolute difference: {d} "
            f"at index {at}{tolerated}\nGreatest relative difference: {r} at index {rat}{relative_tolerated}")


def _compare_tensors(actual, expected, place, scalar, rtol, atol, equal_nan, check_device, check_dtype, check_layout, check_stride):
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
    if actual.dtype == core.bool or not (actual.is_floating_point() or actual.is_complex()):
        close = actual == expected if not (rtol or atol) else core.isclose(actual, expected, rtol=rtol, atol=atol)
    else:
        close = core.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan)
    if not bool(close.all()):
        raise _Mismatch(AssertionError, _describe(actual, expected, ~close, rtol, atol, scalar), place)


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
    related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
    if not related and not (allow_subclasses and all(isinstance(x, (bool, int, float, complex)) for x in (actual, expected))):
        raise _Mismatch(TypeError, "No comparison pair was able to handle inputs of type "
                        f"{type(actual)} and {type(expected)}.", place)
    a, b = _as_tensor(actual), _as_tensor(expected)
    if a is None or b is None:
        if actual == expected:
            return
        raise _Mismatch(TypeError, f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}.", place)
    _compare_tensors(a, b, place, not isinstance(actual, Tensor), **options)


def assert_close(actual, expected, *, allow_subclasses=True, rtol=None, atol=None, equal_nan=False, check_device=True, check_dtype=True,
                 check_layout=True, check_stride=False, msg=None):
    """Raise AssertionError unless |actual - expected| <= atol + rtol |expected| everywhere; goes into sequences and mappings."""
    if (rtol is None) != (atol is None):
        given, other = ("rtol", "atol") if atol is None else ("atol", "rtol")
        raise ValueError(f"rtol and atol must both be specified or both be unspecified, but got no {other}={None!r} and "
                         f"{given}={rtol if given == 'rtol' else atol!r}")
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
