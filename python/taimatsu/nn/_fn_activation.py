"""Activations of nn.functional."""
import warnings

from .. import _core as core

_nn, _F = core._nn, core._functions


def _or_inplace(name, *defaults, space=_nn):
    """Make f(input, <defaults>, inplace=False) that calls the operator ``name`` or ``name_``."""
    plain, inplace_form = getattr(space, name, None), getattr(space, name + "_", None)
    if plain is None:
        return None
    arguments = "".join(f", {n}={d!r}" for n, d in defaults)
    passed = "".join(f", {n}" for n, _ in defaults)
    source = f"def {name}(input{arguments}, inplace=False):\n    return (_inplace if inplace else _plain)(input{passed})\n"
    made = {"_plain": plain, "_inplace": inplace_form}
    exec(source, made)
    made[name].__doc__ = f"``{name}`` of every element; ``inplace`` writes the result over ``input``."
    return made[name]


relu = _or_inplace("relu", space=_F)
relu6 = _or_inplace("relu6")
elu = _or_inplace("elu", ("alpha", 1.0))
selu = _or_inplace("selu", space=_F)
celu = _or_inplace("celu", ("alpha", 1.0), space=_F)
leaky_relu = _or_inplace("leaky_relu", ("negative_slope", 0.01))
rrelu = _or_inplace("rrelu", ("lower", 1.0 / 8), ("upper", 1.0 / 3), ("training", False), space=_F)
hardsigmoid = _or_inplace("hardsigmoid")
silu = _or_inplace("silu")
mish = _or_inplace("mish")
hardswish = _or_inplace("hardswish")


def threshold(input, threshold, value, inplace=False):
    """``input`` where it exceeds ``threshold``, else ``value``."""
    return (core.threshold_ if inplace else core.threshold)(input, threshold, value)


def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    """``input`` limited to [min_val, max_val]."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return (_nn.hardtanh_ if inplace else _nn.hardtanh)(input, min_val, max_val)


def glu(input, dim=-1):
    """The first half along ``dim`` times the sigmoid of the second half."""
    if input.dim() == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    return _nn.glu(input, dim)


def tanhshrink(input):
    """x - tanh(x)."""
    return input - input.tanh()


def softsign(input):
    """x / (1 + |x|)."""
    return input / (input.abs() + 1)


def tanh(input):
    return input.tanh()


def sigmoid(input):
    return input.sigmoid()


def _get_softmax_dim(name, ndim, stacklevel):
    """The dimension that old programs meant when they gave none."""
    warnings.warn(f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
                  stacklevel=stacklevel)
    return 0 if ndim in (0, 1, 3) else 1


def softmin(input, dim=None, _stacklevel=3, dtype=None):
    """softmax of -input."""
    if dim is None:
        dim = _get_softmax_dim("softmin", input.dim(), _stacklevel)
    return (-input).softmax(dim) if dtype is None else (-input).softmax(dim, dtype=dtype)


def softmax(input, dim=None, _stacklevel=3, dtype=None):
    """exp(x) / sum(exp(x)) along ``dim``."""
    if dim is None:
        dim = _get_softmax_dim("softmax", input.dim(), _stacklevel)
    return input.softmax(dim) if dtype is None else input.softmax(dim, dtype=dtype)


def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    """The logarithm of softmax, computed without leaving the log domain."""
    if dim is None:
        dim = _get_softmax_dim("log_softmax", input.dim(), _stacklevel)
    return input.log_softmax(dim) if dtype is None else input.log_softmax(dim, dtype=dtype)


def gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1):
    """A sample of the Gumbel-softmax distribution; ``hard`` gives one-hot values with the soft gradient."""
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    noise = -core.empty_like(logits, memory_format=core.legacy_contiguous_format).exponential_().log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    best = soft.max(dim, keepdim=True)[1]
    one_hot = core.zeros_like(logits, memory_format=core.legacy_contiguous_format).scatter_(dim, best, 1.0)
    return one_hot - soft.detach() + soft


core.export(("relu_", "selu_", "celu_", "rrelu_", "threshold_", "prelu", "hardshrink"), globals())
core.export(("hardtanh_", "elu_", "leaky_relu_", "gelu", "softplus", "softshrink"), globals(), _nn)
if hasattr(_nn, "log_sigmoid"):
    logsigmoid = _nn.log_sigmoid
