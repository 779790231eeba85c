"""The safetensors format: tensors by name, a JSON header in front. Every rule is checked before a byte is used."""
import json
import math
import mmap
import os
import struct

from . import _core as core
from ._core import Tensor

__all__ = ["SafetensorError", "load", "load_file", "save", "save_file", "safe_metadata"]

MAX_HEADER = 100_000_000
# Name in files -> (our dtype, bits per element); None where there is no such dtype here.
_TYPES = {"BOOL": ("bool", 8), "F4": ("float4_e2m1fn_x2", 4), "F6_E2M3": (None, 6), "F6_E3M2": (None, 6), "U8": ("uint8", 8), "I8": ("int8", 8),
          "F8_E5M2": ("float8_e5m2", 8), "F8_E4M3": ("float8_e4m3fn", 8), "F8_E8M0": ("float8_e8m0fnu", 8),
          "F8_E4M3FNUZ": ("float8_e4m3fnuz", 8), "F8_E5M2FNUZ": ("float8_e5m2fnuz", 8), "I16": ("int16", 16), "U16": ("uint16", 16),
          "F16": ("float16", 16), "BF16": ("bfloat16", 16), "I32": ("int32", 32), "U32": ("uint32", 32), "F32": ("float32", 32),
          "C64": ("complex64", 64), "F64": ("float64", 64), "I64": ("int64", 64), "U64": ("uint64", 64)}


class SafetensorError(RuntimeError):
    """A file that breaks the format's rules."""


def _bad(reason):
    return SafetensorError(f"Error while deserializing header: {reason}")


def _unique(pairs):
    """A JSON object; equal keys are only accepted with equal values."""
    out = {}
    for key, value in pairs:
        if key in out and out[key] != value:
            raise ValueError(f"duplicate key {key!r}")
        out[key] = value
    return out


def _is_size(n):
    return isinstance(n, int) and not isinstance(n, bool) and 0 <= n < 1 << 64


def _check_entry(name, entry):
    """A tensor's entry: dtype, shape and offsets of the right kinds."""
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise _bad(f"invalid JSON in header: tensor `{name}` must have dtype, shape and data_offsets")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if dtype not in _TYPES:
        raise _bad(f"invalid JSON in header: unknown variant `{dtype}`, expected one of {', '.join(f'`{t}`' for t in _TYPES)}")
    if not isinstance(shape, list) or not all(map(_is_size, shape)):
        raise _bad(f"invalid JSON in header: the shape of tensor `{name}` must be a list of sizes")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(map(_is_size, offsets)):
        raise _bad(f"invalid JSON in header: the data_offsets of tensor `{name}` must be two positions")
    return dtype, shape, offsets[0], offsets[1]


def parse_header(head, size):
    """(metadata, [(name, dtype, shape, begin, end)], start of the data) of a file whose first bytes are ``head`` and which has ``size`` bytes.

    ``head`` must hold the whole header. Raises SafetensorError for every broken rule.
    """
    if size < 8:
        raise _bad("header too small")
    (length,) = struct.unpack("<Q", head[:8])
    if length > MAX_HEADER:
        raise _bad("header too large")
    if 8 + length > size:
        raise _bad("invalid header length")
    try:
        text = bytes(head[8:8 + length]).decode("utf-8")
    except UnicodeDecodeError as error:
        raise _bad(f"invalid UTF-8 in header: {error}") from None
    try:
        header = json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise _bad(f"invalid JSON in header: {error}") from None
    if not isinstance(header, dict):
        raise _bad("invalid JSON in header: expected an object")
    metadata = header.pop("__metadata__", None)
    if metadata is not None and not (isinstance(metadata, dict) and all(isinstance(v, str) for v in metadata.values())):
        raise _bad("invalid JSON in header: __metadata__ must map strings to strings")
    entries = [(name, *_check_entry(name, entry)) for name, entry in header.items()]
    _check_layout(entries, size - 8 - length)
    return metadata, entries, 8 + length


def _check_layout(entries, available):
    """Tensors lie one after the other, without holes, each as large as its shape says, and fill the file."""
    end = 0
    for name, dtype, shape, begin, stop in sorted(entries, key=lambda e: (e[3], e[4])):
        if begin != end or stop < begin:
            raise _bad(f"invalid offset for tensor `{name}`")
        bits = math.prod(shape) * _TYPES[dtype][1]
        if bits >= 1 << 64:
            raise _bad("overflow computing buffer size from shape and/or element type")
        if bits % 8:
            raise _bad("the tensor's bits do not fill whole bytes (misaligned slice)")
        if stop - begin != bits // 8:
            raise _bad("invalid shape, data type, or offset for tensor")
        end = stop
    if end != available:
        raise _bad("incomplete metadata, file not fully covered")


def _dtype(name):
    ours = _TYPES[name][0]
    if ours is None or not hasattr(core, ours):
        raise SafetensorError(f"Dtype not understood: {name}")
    return getattr(core, ours)


def _tensor_of(buffer, start, dtype, shape, begin, end):
    """A tensor over a part of ``buffer``, whose memory it shares."""
    kind = _dtype(dtype)
    if begin == end:
        return core.empty(shape, dtype=kind)
    view = memoryview(buffer)[start + begin:start + end]
    made = core.frombuffer(view, dtype=core.uint8)
    made = made if kind == core.uint8 else made.view(kind)
    if dtype == "F4":
        shape = [*shape[:-1], shape[-1] // 2]
    return made.reshape(shape)


def _check_device(device):
    name = str(device)
    if isinstance(device, bytes) or name not in ("cpu", "cpu:0"):
        raise SafetensorError(f"device {name} is invalid")


def load_file(filename, device="cpu"):
    """The tensors of a file, by name in the file's order. The file is mapped, privately: loading is lazy and writes stay in memory."""
    _check_device(device)
    if not os.path.exists(filename):
        raise FileNotFoundError(f"No such file or directory: {filename}")
    size = os.path.getsize(filename)
    if size < 8:
        raise _bad("header too small")
    with open(filename, "rb") as file:
        mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    _, entries, start = parse_header(memoryview(mapping), size)
    return {name: _tensor_of(mapping, start, *rest) for name, *rest in entries}


def load(data):
    """The tensors of a file's content."""
    data = bytearray(data)
    _, entries, start = parse_header(memoryview(data), len(data))
    return {name: _tensor_of(data, start, *rest) for name, *rest in entries}


def safe_metadata(filename):
    """The ``__metadata__`` of a file, a dict of strings, or None."""
    with open(filename, "rb") as file:
        head = file.read(8)
        if len(head) == 8:
            head += file.read(min(struct.unpack("<Q", head)[0], MAX_HEADER))
    return parse_header(head, os.path.getsize(filename))[0]


# ---- writing

def _type_name(dtype):
    for name, (ours, _) in _TYPES.items():
        if ours is not None and getattr(core, ours, None) == dtype:
            return name
    raise SafetensorError(f"Dtype not understood: {dtype}")


def _shared_groups(tensors):
    """Names whose tensors share memory, group by group."""
    spans = []
    for name, t in tensors.items():
        if t.numel():
            spans.append((t.data_ptr(), t.data_ptr() + t.numel() * t.element_size(), name))
    spans.sort()
    groups, end = [], -1
    for begin, stop, name in spans:
        if begin < end:
            groups[-1].add(name)
            end = max(end, stop)
        else:
            groups.append({name})
            end = stop
    return [g for g in groups if len(g) > 1]


def _check_tensors(tensors):
    if not isinstance(tensors, dict):
        raise ValueError(f"Expected a dict of [str, torch.Tensor] but received {type(tensors)}")
    for name, t in tensors.items():
        if not isinstance(t, Tensor):
            raise ValueError(f"Key `{name}` is invalid, expected torch.Tensor but received {type(t)}")
        if t.layout != core.strided:
            raise ValueError(f"You are trying to save a sparse tensor `{name}` which this library does not support. You can make it a dense "
                             "tensor before saving with `.to_dense()` but be aware this might make a much larger file than needed.")
    shared = _shared_groups(tensors)
    if shared:
        raise RuntimeError(
            f"\n            Some tensors share memory, this will lead to duplicate memory on disk and potential differences when loading them "
            f"again: {shared}.\n            A potential way to correctly save your model is to use `save_model`.\n            More information "
            "at https://huggingface.co/docs/safetensors/torch_shared_tensors\n            ")
    for name, t in tensors.items():
        if not t.is_contiguous():
            raise ValueError(f"You are trying to save a non contiguous tensor: `{name}` which is not allowed. It either means you are trying to "
                             "save tensors which are reference of each other in which case it's recommended to save only the full tensors, and "
                             "reslice at load time, or simply call `.contiguous()` on your tensor to pack it before saving.")


def _bytes_of(t):
    from .storage import byte_view
    start = t.storage_offset() * t.element_size()
    return byte_view(t.untyped_storage())[start:start + t.numel() * t.element_size()]


def _plan(tensors, metadata):
    """(header bytes, tensors in file order): larger element types first, then by name."""
    _check_tensors(tensors)
    if metadata is not None and not all(isinstance(k, str) and isinstance(v, str) for k, v in metadata.items()):
        raise ValueError("metadata must map strings to strings")
    order = sorted(tensors, key=lambda n: (-_TYPES[_type_name(tensors[n].dtype)][1], n))
    header, at = {}, 0
    if metadata:
        header["__metadata__"] = dict(metadata)
    for name in order:
        t = tensors[name]
        size = t.numel() * t.element_size()
        header[name] = {"dtype": _type_name(t.dtype), "shape": list(t.shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode("utf-8")
    text += b" " * (-len(text) % 8)
    if len(text) > MAX_HEADER:
        raise SafetensorError("Error while serializing: header too large")
    return struct.pack("<Q", len(text)) + text, [tensors[name] for name in order]


def save(tensors, metadata=None):
    """The content of a safetensors file."""
    header, ordered = _plan(tensors, metadata)
    return b"".join([header, *(_bytes_of(t) if t.numel() else b"" for t in ordered)])


def save_file(tensors, filename, metadata=None):
    """Write a safetensors file; the old file, if there is one, is replaced only once all is written."""
    from .serialization import _atomic_file
    header, ordered = _plan(tensors, metadata)
    with _atomic_file(filename) as file:
        file.write(header)
        for t in ordered:
            if t.numel():
                file.write(_bytes_of(t))
