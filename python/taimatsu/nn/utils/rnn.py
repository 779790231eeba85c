"""Batches of sequences of different lengths: padded, and packed step by step."""
from collections import namedtuple
from collections.abc import Iterable

from ... import _core as core
from ..._core import Tensor

__all__ = ["PackedSequence", "invert_permutation", "pack_padded_sequence", "pad_packed_sequence", "pad_sequence", "unpad_sequence",
           "pack_sequence", "unpack_sequence"]

PackedSequence_ = namedtuple("PackedSequence", ["data", "batch_sizes", "sorted_indices", "unsorted_indices"])
PackedSequence_.__annotations__ = {"data": Tensor, "batch_sizes": Tensor, "sorted_indices": object, "unsorted_indices": object}


def _bind(value, function):
    return None if value is None else function(value)


class PackedSequence(PackedSequence_):
    """The steps of all sequences one after the other; ``batch_sizes[t]`` sequences have a step t. Made by pack_padded_sequence."""

    def __new__(cls, data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is None:
            if not (isinstance(data, (list, tuple)) and len(data) == 2):
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        elif batch_sizes.device.type != "cpu":
            raise ValueError("batch_sizes should always be on CPU. Instances of PackedSequence should never be created manually. They should be "
                             "instantiated by functions like pack_sequence and pack_padded_sequences in nn.utils.rnn. "
                             "https://pytorch.org/docs/stable/nn.html#torch.nn.utils.rnn.pack_sequence")
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args, **kwargs):
        """Move or cast the data; batch sizes stay on the CPU."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self

        def move(t):
            return t.to(data.device)

        return type(self)(data, self.batch_sizes, _bind(self.sorted_indices, move), _bind(self.unsorted_indices, move))

    def pin_memory(self):
        def pin(t):
            return t.pin_memory()

        return type(self)(pin(self.data), self.batch_sizes, _bind(self.sorted_indices, pin), _bind(self.unsorted_indices, pin))

    def cuda(self, *args, **kwargs):
        kwargs.setdefault("device", "cuda")
        return self.to(*args, **kwargs)

    def cpu(self, *args, **kwargs):
        kwargs.setdefault("device", "cpu")
        return self.to(*args, **kwargs)

    def double(self):
        return self.to(dtype=core.double)

    def float(self):
        return self.to(dtype=core.float)

    def half(self):
        return self.to(dtype=core.half)

    def long(self):
        return self.to(dtype=core.long)

    def int(self):
        return self.to(dtype=core.int)

    def short(self):
        return self.to(dtype=core.short)

    def char(self):
        return self.to(dtype=core.int8)

    def byte(self):
        return self.to(dtype=core.uint8)

    @property
    def is_cuda(self):
        return self.data.is_cuda

    def is_pinned(self):
        return self.data.is_pinned()


def invert_permutation(permutation):
    """The permutation that undoes ``permutation``."""
    if permutation is None:
        return None
    out = core.empty_like(permutation)
    out.scatter_(0, permutation, core.arange(0, permutation.numel(), device=permutation.device))
    return out


def _check_lengths(input, lengths, batch_first):
    """What packing asks of lengths, with PyTorch's messages."""
    batch, longest = input.size(0 if batch_first else 1), input.size(1 if batch_first else 0)
    if lengths.numel() != batch:
        raise RuntimeError(f"Expected `len(lengths)` to be equal to batch_size, but got {lengths.numel()} (batch_size={batch})")
    values = lengths.tolist()
    if any(n <= 0 for n in values):
        raise RuntimeError("Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0")
    if any(a < b for a, b in zip(values, values[1:])):
        raise RuntimeError("`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
                           "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you do not "
                           "need ONNX exportability.")
    if values and values[0] > longest:
        raise RuntimeError(f"Expected all lengths to be at most {longest}, but got {values[0]}")
    return values


def _pack(input, lengths, batch_first):
    """(packed rows, batch sizes) of sequences sorted by decreasing length."""
    if hasattr(core._functions, "_pack_padded_sequence"):
        return core._pack_padded_sequence(input, lengths, batch_first)
    values = _check_lengths(input, lengths, batch_first)
    steps = input.transpose(0, 1) if batch_first else input
    sizes = [sum(n > t for n in values) for t in range(values[0])]
    return core.cat([steps[t, :n] for t, n in enumerate(sizes)]), core.tensor(sizes, dtype=core.int64)


def pack_padded_sequence(input, lengths, batch_first=False, enforce_sorted=True):
    """Pack padded sequences; unless ``enforce_sorted`` they are sorted by length first, and the order is kept with the result."""
    if isinstance(lengths, Tensor):
        lengths = lengths.to(dtype=core.int64)
    else:
        lengths = core.as_tensor(lengths, dtype=core.int64, device="cpu")
    sorted_indices = None
    if not enforce_sorted:
        lengths, sorted_indices = core.sort(lengths, descending=True)
        sorted_indices = sorted_indices.to(input.device)
        input = input.index_select(0 if batch_first else 1, sorted_indices)
    data, batch_sizes = _pack(input, lengths, batch_first)
    return PackedSequence(data, batch_sizes, sorted_indices, None)


def _unpack(data, batch_sizes, batch_first, padding_value, total):
    if hasattr(core._functions, "_pad_packed_sequence"):
        return core._pad_packed_sequence(data, batch_sizes, batch_first, padding_value, total)
    sizes = batch_sizes.tolist()
    width = sizes[0]
    rows = []
    for part in data.split(sizes):
        missing = width - part.shape[0]
        rows.append(core.cat([part, part.new_full((missing, *part.shape[1:]), padding_value)]) if missing else part)
    rows += [data.new_full((width, *data.shape[1:]), padding_value)] * (total - len(sizes))
    padded = core.stack(rows)
    lengths = core.tensor([sum(n > i for n in sizes) for i in range(width)], dtype=core.int64)
    return (padded.transpose(0, 1) if batch_first else padded), lengths


def pad_packed_sequence(sequence, batch_first=False, padding_value=0.0, total_length=None):
    """(padded sequences, lengths) of a PackedSequence, in the original order."""
    longest = sequence.batch_sizes.size(0)
    if total_length is not None:
        if total_length < longest:
            raise ValueError("Expected total_length to be at least the length of the longest sequence in input, but got "
                             f"total_length={total_length} and max sequence length being {longest}")
        longest = total_length
    padded, lengths = _unpack(sequence.data, sequence.batch_sizes, batch_first, padding_value, longest)
    order = sequence.unsorted_indices
    if order is None:
        return padded, lengths
    return padded.index_select(0 if batch_first else 1, order), lengths[order.cpu()]


def pad_sequence(sequences, batch_first=False, padding_value=0.0, padding_side="right"):
    """Sequences stacked into one tensor, the shorter ones filled up."""
    if not isinstance(sequences, Iterable):
        raise RuntimeError(f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}")
    sequences = tuple(sequences)
    if hasattr(core._nn, "pad_sequence"):
        return core._nn.pad_sequence(sequences, batch_first, padding_value, padding_side)
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    longest = max(s.size(0) for s in sequences)
    rows = []
    for s in sequences:
        fill = s.new_full((longest - s.size(0), *s.shape[1:]), padding_value)
        rows.append(s if not fill.size(0) else core.cat([s, fill] if padding_side == "right" else [fill, s]))
    return core.stack(rows, 0 if batch_first else 1)


def unpad_sequence(padded_sequences, lengths, batch_first=False):
    """The sequences of a padded batch, each with its own length."""
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    positions = core.arange(rows.shape[1], device=lengths.device)
    return [row[positions < n] for row, n in zip(rows, lengths)]


def pack_sequence(sequences, enforce_sorted=True):
    """Pack a list of sequences."""
    lengths = core.as_tensor([v.size(0) for v in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences):
    """The sequences of a PackedSequence."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
