"""How tensors print: the rules of PyTorch, character for character (tests/spec/spec_print.py is the model)."""
import contextlib
import math

from . import _core as core
from ._core import Tensor, _C

__all__ = ["set_printoptions", "get_printoptions", "printoptions"]

_DEFAULT = {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80}
_PROFILES = {"default": _DEFAULT, "short": {**_DEFAULT, "precision": 2, "edgeitems": 2}, "full": {**_DEFAULT, "threshold": math.inf}}
_options = {**_DEFAULT, "sci_mode": None}


def set_printoptions(precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None):
    """Digits after the point, the size from which tensors are summarised, items kept at each end, line width, scientific notation."""
    if profile is not None:
        _options.update(_PROFILES.get(profile, {}))
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    _options.update({key: value for key, value in given.items() if value is not None})
    _options["sci_mode"] = sci_mode


def get_printoptions():
    """The options in force, as a dictionary."""
    return dict(_options)


@contextlib.contextmanager
def printoptions(**kwargs):
    """The given options for a while."""
    before = get_printoptions()
    set_printoptions(**kwargs)
    try:
        yield
    finally:
        set_printoptions(**before)


class _Numbers:
    """The common format of a set of real numbers: style and column width."""

    def __init__(self, values, is_float):
        self.is_float, self.scientific, self.integral = is_float, False, True
        self.width = 1
        if not is_float:
            self.width = max([1] + [len(str(v)) for v in values])
            return
        finite = [v for v in values if v != 0 and math.isfinite(v)]
        if not finite:
            return
        largest, smallest = max(map(abs, finite)), min(map(abs, finite))
        self.integral = all(v == math.floor(v) for v in finite)
        self.scientific = _options["sci_mode"]
        if self.scientific is None:
            self.scientific = largest / smallest > 1000.0 or largest > 1e8 or smallest < 1e-4
        # zeros, infinities and NaN never widen the column
        self.width = max(1, max(len(self.text(v)) for v in finite))

    def text(self, v):
        if not self.is_float:
            return str(v)
        if self.scientific:
            return f"{v:.{_options['precision']}e}"
        if self.integral:
            return f"{v:.0f}." if math.isfinite(v) else f"{v:.0f}"
        return f"{v:.{_options['precision']}f}"

    def cell(self, v):
        return self.text(v).rjust(self.width)


class _ComplexNumbers:
    """The same for complex numbers: one format for each part."""

    def __init__(self, values):
        self.real = _Numbers([v.real for v in values], True)
        self.imag = _Numbers([v.imag for v in values], True)
        self.width = self.real.width + self.imag.width + 1

    def cell(self, v):
        imag = (self.imag.cell(v.imag) + "j").lstrip()
        return self.real.cell(v.real) + ("" if imag[0] in "+-" else "+") + imag


def _kept(t, keep):
    """Nested lists of the elements that are shown; only the first and last `keep` of long dimensions when not None."""
    if keep is None or t.dim() == 0:
        return t.tolist()
    n = t.size(0)
    if t.dim() == 1:
        return t.tolist() if n <= 2 * keep else t[:keep].tolist() + t[n - keep:].tolist()
    rows = range(n) if n <= 2 * keep else [*range(keep), *range(n - keep, n)]
    return [_kept(t[i], keep) for i in rows]


def _flat(x, dim):
    if dim == 0:
        return [x]
    return x if dim == 1 else [v for y in x for v in _flat(y, dim - 1)]


class _Block:
    """The bracketed text of one tensor."""

    def __init__(self, t, indent):
        self.summarise = t.numel() > _options["threshold"]
        self.keep = _options["edgeitems"] if self.summarise else None
        self.sizes = list(t.shape)
        values = _kept(t, self.keep)
        sample = [] if self.keep == 0 and self.sizes else _flat(values, len(self.sizes))
        self.numbers = _ComplexNumbers(sample) if t.dtype.is_complex else _Numbers(sample, t.dtype.is_floating_point)
        self.text = self.block(values, 0, indent)

    def cut(self, dim):
        return self.summarise and self.sizes[dim] > 2 * self.keep

    def vector(self, values, dim, indent):
        cells = [self.numbers.cell(v) for v in values]
        if self.summarise and self.keep == 0:
            cells = ["..."]
        elif self.cut(dim):
            cells.insert(self.keep, " ...")
        per_line = max(1, (_options["linewidth"] - indent) // (self.numbers.width + 2))
        lines = [", ".join(cells[i:i + per_line]) for i in range(0, len(cells), per_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"

    def block(self, values, dim, indent):
        left = len(self.sizes) - dim
        if left == 0:
            return self.numbers.cell(values)
        if left == 1:
            return self.vector(values, dim, indent)
        parts = [self.block(v, dim + 1, indent + 1) for v in values]
        if self.cut(dim):
            parts.insert(self.keep, "...")
        return "[" + ("," + "\n" * (left - 1) + " " * (indent + 1)).join(parts) + "]"


def _is_default_dtype(dtype):
    default = _C.get_default_dtype()
    complex_default = core.complex128 if default is core.float64 else core.complex64
    return dtype in (default, complex_default, core.int64, core.bool)


def _plain(t):
    """The values without gradient, conjugation or a subclass in the way."""
    with _C.DisableTorchFunctionSubclass():
        t = t.detach()
        if t.is_conj():
            t = t.resolve_conj()
        return t.resolve_neg() if t.is_neg() else t


def _contents(t, indent, suffixes):
    """The text between the brackets; what must be said beside it is added to `suffixes`."""
    default = _C.get_default_dtype()
    if t.is_meta:
        suffixes.append(f"size={tuple(t.shape)}")
        if t.dtype is not default:
            suffixes.append(f"dtype={t.dtype}")
        return "..."
    if t.numel() == 0:
        if t.dim() != 1:
            suffixes.append(f"size={tuple(t.shape)}")
        if t.dtype is not default:
            suffixes.append(f"dtype={t.dtype}")
        return "[]"
    if _options["edgeitems"] == 0:
        suffixes.append(f"size={tuple(t.shape)}")
    if not _is_default_dtype(t.dtype):
        suffixes.append(f"dtype={t.dtype}")
    return _Block(_plain(t), indent).text


def _gradient_suffix(t):
    with _C.DisableTorchFunctionSubclass():
        node = t.grad_fn
        if node is not None:
            return f"grad_fn=<{type(node).__name__}>"
        return "requires_grad=True" if t.requires_grad else None


def _add_suffixes(text, suffixes, indent):
    """Suffixes go on the last line while they fit. A text of one line counts two more than its length, as in PyTorch."""
    out = [text]
    width = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if width + len(suffix) + 2 > _options["linewidth"]:
            out.append(",\n" + " " * indent + suffix)
            width = indent + len(suffix)
        else:
            out.append(", " + suffix)
            width += len(suffix) + 2
    return "".join(out) + ")"


def _str(t, *, tensor_contents=None):
    """``repr`` of a tensor."""
    from .nn.parameter import Parameter
    prefix = "tensor(" if type(t) in (Tensor, Parameter) else f"{type(t).__name__}("
    suffixes = []
    with _C.DisableTorchFunctionSubclass():
        if t.device.type != _C.get_default_device().type:
            suffixes.append(f"device='{t.device}'")
        contents = _contents(t, len(prefix), suffixes)
    gradient = _gradient_suffix(t)
    if gradient is not None:
        suffixes.append(gradient)
    return _add_suffixes(prefix + (contents if tensor_contents is None else tensor_contents), suffixes, len(prefix))
