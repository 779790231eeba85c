"""Recurrent layers and cells."""
import math
import numbers
import warnings
import weakref

from ... import _core as core
from .. import init
from ..parameter import Parameter
from ..utils.rnn import PackedSequence
from . import _recurrent
from .module import Module

__all__ = ["RNNBase", "RNN", "LSTM", "GRU", "RNNCellBase", "RNNCell", "LSTMCell", "GRUCell"]

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}
_OPERATORS = {"LSTM": "lstm", "GRU": "gru", "RNN_TANH": "rnn_tanh", "RNN_RELU": "rnn_relu"}


def _apply_permutation(tensor, permutation, dim=1):
    return tensor.index_select(dim, permutation)


def apply_permutation(tensor, permutation, dim=1):
    """Deprecated: use tensor.index_select."""
    warnings.warn("`apply_permutation` is deprecated, please use `tensor.index_select(dim, permutation)` instead", FutureWarning, stacklevel=2)
    return _apply_permutation(tensor, permutation, dim)


def _check_options(input_size, hidden_size, num_layers, bias, batch_first, dropout, proj_size):
    if not isinstance(dropout, numbers.Number) or not 0 <= dropout <= 1 or isinstance(dropout, bool):
        raise ValueError("dropout should be a number in range [0, 1] representing the probability of an element being zeroed")
    if dropout > 0 and num_layers == 1:
        warnings.warn("dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers greater than 1, "
                      f"but got dropout={dropout} and num_layers={num_layers}", stacklevel=4)
    for name, value in (("bias", bias), ("batch_first", batch_first)):
        if not isinstance(value, bool):
            raise TypeError(f"{name} should be of type bool, got: {type(value).__name__}")
    for name, value in (("input_size", input_size), ("hidden_size", hidden_size)):
        if not isinstance(value, int):
            raise TypeError(f"{name} should be of type int, got: {type(value).__name__}")
        if value <= 0:
            raise ValueError(f"{name} must be greater than zero")
    if num_layers <= 0:
        raise ValueError("num_layers must be greater than zero")
    if proj_size < 0:
        raise ValueError("proj_size should be a positive integer or zero to disable projections")
    if proj_size >= hidden_size:
        raise ValueError("proj_size has to be smaller than hidden_size")


class RNNBase(Module):
    """Parameters and checks of RNN, LSTM and GRU."""

    __constants__ = ["mode", "input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout", "bidirectional", "proj_size"]

    def __init__(self, mode, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False,
                 proj_size=0, device=None, dtype=None):
        super().__init__()
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._flat_weight_refs = []
        _check_options(input_size, hidden_size, num_layers, bias, batch_first, dropout, proj_size)
        if mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + mode)
        self._flat_weights_names = []
        self._all_weights = []
        rows, out_size = _GATES[mode] * hidden_size, proj_size or hidden_size
        for layer in range(num_layers):
            for suffix in ("", "_reverse") if bidirectional else ("",):
                in_size = input_size if layer == 0 else out_size * (2 if bidirectional else 1)
                shapes = {"weight_ih": (rows, in_size), "weight_hh": (rows, out_size)}
                if bias:
                    shapes.update(bias_ih=(rows,), bias_hh=(rows,))
                if proj_size > 0:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                names = [f"{kind}_l{layer}{suffix}" for kind in shapes]
                for name, shape in zip(names, shapes.values()):
                    setattr(self, name, Parameter(core.empty(shape, device=device, dtype=dtype)))
                self._flat_weights_names.extend(names)
                self._all_weights.append(names)
        self._init_flat_weights()
        self.reset_parameters()

    # ---- the flat list of weights, which operators take

    def _init_flat_weights(self):
        self._flat_weights = [getattr(self, n, None) for n in self._flat_weights_names]
        self._flat_weight_refs = [None if w is None else weakref.ref(w) for w in self._flat_weights]

    def __setattr__(self, attr, value):
        names = self.__dict__.get("_flat_weights_names")
        if names is not None and attr in names and "_flat_weights" in self.__dict__:
            self._flat_weights[names.index(attr)] = value
        super().__setattr__(attr, value)

    def flatten_parameters(self):
        """Nothing to do on the CPU: weights need not lie side by side."""

    def _apply(self, fn, recurse=True):
        self._flat_weight_refs = []
        result = super()._apply(fn, recurse)
        self._init_flat_weights()
        return result

    def _update_flat_weights(self):
        for ref, name in zip(self._flat_weight_refs, self._flat_weights_names):
            weight = getattr(self, name, None)
            if weight is not None and ref is not None and ref() is not weight:
                self._init_flat_weights()
                return

    def __getstate__(self):
        self._update_flat_weights()
        state = self.__dict__.copy()
        del state["_flat_weight_refs"]
        return state

    def __setstate__(self, d):
        super().__setstate__(d)
        if "all_weights" in d:
            self._all_weights = d["all_weights"]
        self.__dict__.setdefault("proj_size", 0)
        self._flat_weights_names = [n for names in self._all_weights for n in names]
        self._init_flat_weights()

    @property
    def all_weights(self):
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def _replicate_for_data_parallel(self):
        replica = super()._replicate_for_data_parallel()
        replica._flat_weights = replica._flat_weights[:]
        replica._flat_weights_names = replica._flat_weights_names[:]
        return replica

    def reset_parameters(self):
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    # ---- checks

    def check_input(self, input, batch_sizes):
        dtype = self._flat_weights[0].dtype
        if input.dtype != dtype:
            raise ValueError(f"RNN input dtype ({input.dtype}) does not match weight dtype ({dtype}). Convert input: input.to({dtype}), or "
                             f"convert model: model.to({input.dtype})")
        wanted = 3 if batch_sizes is None else 2
        if input.dim() != wanted:
            raise RuntimeError(f"input must have {wanted} dimensions, got {input.dim()}")
        if self.input_size != input.size(-1):
            raise RuntimeError(f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}")

    def _expected(self, input, batch_sizes, features):
        if batch_sizes is not None:
            batch = int(batch_sizes[0])
        else:
            batch = input.size(0) if self.batch_first else input.size(1)
        return self.num_layers * (2 if self.bidirectional else 1), batch, features

    def get_expected_hidden_size(self, input, batch_sizes):
        return self._expected(input, batch_sizes, self.proj_size or self.hidden_size)

    def check_hidden_size(self, hx, expected_hidden_size, msg="Expected hidden size {}, got {}"):
        if hx.size() != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.size())))

    def check_forward_args(self, input, hidden, batch_sizes):
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx, permutation):
        return hx if permutation is None else _apply_permutation(hx, permutation)

    def extra_repr(self):
        parts = [f"{self.input_size}, {self.hidden_size}"]
        for name, usual in (("proj_size", 0), ("num_layers", 1), ("bias", True), ("batch_first", False), ("dropout", 0), ("bidirectional", False)):
            if getattr(self, name) != usual:
                parts.append(f"{name}={getattr(self, name)}")
        return ", ".join(parts)

    # ---- the computation

    def _zeros(self, input, batch):
        """Initial states: tensors of the shapes that the network expects."""
        leading = (self.num_layers * (2 if self.bidirectional else 1), batch)
        sizes = (self.proj_size or self.hidden_size, self.hidden_size) if self.mode == "LSTM" else (self.hidden_size,)
        made = tuple(core.zeros((*leading, n), dtype=input.dtype, device=input.device) for n in sizes)
        return made if self.mode == "LSTM" else made[0]

    def _check_hx_rank(self, hx, rank):
        """States of unbatched inputs have two dimensions, of batched ones three."""
        kind = "batched" if rank == 3 else "unbatched"
        if self.mode == "LSTM":
            if any(s.dim() != rank for s in hx):
                raise RuntimeError(f"For {kind} {rank}-D input, hx and cx should also be {rank}-D but got ({hx[0].dim()}-D, {hx[1].dim()}-D) "
                                   "tensors")
        elif hx.dim() != rank:
            raise RuntimeError(f"For {kind} {rank}-D input, hx should also be {rank}-D but got {hx.dim()}-D tensor")

    def _each(self, function, hx):
        return tuple(function(s) for s in hx) if self.mode == "LSTM" else function(hx)

    def _compute(self, input, hx, batch_sizes):
        name = _OPERATORS[self.mode]
        states = tuple(hx) if self.mode == "LSTM" else (hx,)
        if hasattr(core._functions, name):
            operator, state = getattr(core, name), list(hx) if self.mode == "LSTM" else hx
            common = (self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional)
            result = operator(input, state, *common, self.batch_first) if batch_sizes is None else operator(input, batch_sizes, state, *common)
        else:
            result = _recurrent.run(self.mode, input, states, self._flat_weights, self.bias, self.num_layers, self.dropout, self.training,
                                    self.bidirectional, batch_sizes, self.batch_first)
        return result[0], (tuple(result[1:]) if self.mode == "LSTM" else result[1])

    def forward(self, input, hx=None):
        self._update_flat_weights()
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        kind = type(self).__name__ if self.mode in ("LSTM", "GRU") else "RNN"
        if input.dim() not in (2, 3):
            tail = " tensor instead" if kind == "RNN" else " instead"
            raise ValueError(f"{kind}: Expected input to be 2D or 3D, got {input.dim()}D{tail}")
        batched, batch_dim = input.dim() == 3, 0 if self.batch_first else 1
        if hx is not None:
            self._check_hx_rank(hx, input.dim())
        if not batched:
            input = input.unsqueeze(batch_dim)
            hx = None if hx is None else self._each(lambda s: s.unsqueeze(1), hx)
        if hx is None:
            hx = self._zeros(input, input.size(batch_dim))
        self.check_forward_args(input, hx, None)
        output, hidden = self._compute(input, hx, None)
        if not batched:
            output, hidden = output.squeeze(batch_dim), self._each(lambda s: s.squeeze(1), hidden)
        return output, hidden

    def _forward_packed(self, packed, hx):
        input, batch_sizes, sorted_indices, unsorted_indices = packed
        hx = self._zeros(input, int(batch_sizes[0])) if hx is None else self.permute_hidden(hx, sorted_indices)
        self.check_forward_args(input, hx, batch_sizes)
        output, hidden = self._compute(input, hx, batch_sizes)
        return PackedSequence(output, batch_sizes, sorted_indices, unsorted_indices), self.permute_hidden(hidden, unsorted_indices)


def _no_projection(kwargs):
    if "proj_size" in kwargs:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")


class RNN(RNNBase):
    """Elman network: h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu."""

    def __init__(self, *args, **kwargs):
        _no_projection(kwargs)
        if len(args) > 3:
            nonlinearity, args = args[3], args[:3] + args[4:]
        else:
            nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__(f"RNN_{nonlinearity.upper()}", *args, **kwargs)
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    """Long short-term memory, optionally with projections (``proj_size``)."""

    def __init__(self, *args, **kwargs):
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(self, input, batch_sizes):
        return self._expected(input, batch_sizes, self.hidden_size)

    def check_forward_args(self, input, hidden, batch_sizes):
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden[0], self.get_expected_hidden_size(input, batch_sizes), "Expected hidden[0] size {}, got {}")
        self.check_hidden_size(hidden[1], self.get_expected_cell_size(input, batch_sizes), "Expected hidden[1] size {}, got {}")

    def permute_hidden(self, hx, permutation):
        return hx if permutation is None else tuple(_apply_permutation(s, permutation) for s in hx)


class GRU(RNNBase):
    """Gated recurrent units."""

    def __init__(self, *args, **kwargs):
        _no_projection(kwargs)
        super().__init__("GRU", *args, **kwargs)


class RNNCellBase(Module):
    """Parameters of one step."""

    __constants__ = ["input_size", "hidden_size", "bias"]

    def __init__(self, input_size, hidden_size, bias, num_chunks, device=None, dtype=None):
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        for name, shape in (("weight_ih", (rows, input_size)), ("weight_hh", (rows, hidden_size)), ("bias_ih", rows), ("bias_hh", rows)):
            if bias or name.startswith("weight"):
                setattr(self, name, Parameter(core.empty(shape, device=device, dtype=dtype)))
            else:
                self.register_parameter(name, None)
        self.reset_parameters()

    def extra_repr(self):
        parts = [f"{self.input_size}, {self.hidden_size}"]
        if "bias" in self.__dict__ and self.bias is not True:
            parts.append(f"bias={self.bias}")
        if "nonlinearity" in self.__dict__ and self.nonlinearity != "tanh":
            parts.append(f"nonlinearity={self.nonlinearity}")
        return ", ".join(parts)

    def reset_parameters(self):
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _check_rank(self, what, tensor):
        if tensor.dim() not in (1, 2):
            raise ValueError(f"{type(self).__name__}: Expected {what} to be 1D or 2D, got {tensor.dim()}D instead")

    def _step(self, mode, input, states):
        """The new states, for states given one by one (None: zeros); unbatched inputs are batched for a moment."""
        batched = input.dim() == 2
        if not batched:
            input = input.unsqueeze(0)
            states = [None if s is None else s.unsqueeze(0) for s in states]
        states = [core.zeros(input.size(0), self.hidden_size, dtype=input.dtype, device=input.device) if s is None else s for s in states]
        name = _OPERATORS[mode] + "_cell"
        weights = (self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        if hasattr(core._functions, name):
            out = getattr(core, name)(input, states if mode == "LSTM" else states[0], *weights)
            out = tuple(out) if mode == "LSTM" else (out,)
        else:
            out = _recurrent.cell(mode, input, tuple(states), *weights)
        return out if batched else tuple(s.squeeze(0) for s in out)


class RNNCell(RNNCellBase):
    """One step of an Elman network."""

    __constants__ = ["input_size", "hidden_size", "bias", "nonlinearity"]

    def __init__(self, input_size, hidden_size, bias=True, nonlinearity="tanh", device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, num_chunks=1, device=device, dtype=dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input, hx=None):
        self._check_rank("input", input)
        if hx is not None:
            self._check_rank("hidden", hx)
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._step(f"RNN_{self.nonlinearity.upper()}", input, [hx])[0]


class LSTMCell(RNNCellBase):
    """One step of an LSTM: (h, c)."""

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, num_chunks=4, device=device, dtype=dtype)

    def forward(self, input, hx=None):
        self._check_rank("input", input)
        for i, state in enumerate(hx or ()):
            self._check_rank(f"hx[{i}]", state)
        return self._step("LSTM", input, [None, None] if hx is None else list(hx))


class GRUCell(RNNCellBase):
    """One step of a GRU."""

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, num_chunks=3, device=device, dtype=dtype)

    def forward(self, input, hx=None):
        self._check_rank("input", input)
        if hx is not None:
            self._check_rank("hidden", hx)
        return self._step("GRU", input, [hx])[0]
