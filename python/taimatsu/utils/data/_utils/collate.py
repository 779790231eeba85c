"""Samples put together into batches."""
import copy
from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence

from .... import _core as core
from ...._core import Tensor

default_collate_err_msg_format = "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"


def _has_text(array):
    """Whether a numpy array holds strings or objects."""
    return array.dtype.kind in "SaUO" or any(c in array.dtype.str for c in "SaUO")


def _rebuilt(original, items):
    """A sequence like ``original`` with other items, or a list where its class cannot be made so."""
    try:
        if isinstance(original, MutableSequence):
            made = copy.copy(original)
            for i, item in enumerate(items):
                made[i] = item
            return made
        return type(original)(items)
    except TypeError:
        return items


def _rebuilt_mapping(original, items):
    try:
        if isinstance(original, MutableMapping):
            made = copy.copy(original)
            made.update(items)
            return made
        return type(original)(items)
    except TypeError:
        return items


def default_convert(data):
    """Numpy arrays inside ``data`` as tensors; used where samples are not batched."""
    kind = type(data)
    if isinstance(data, Tensor):
        return data
    if kind.__module__ == "numpy" and kind.__name__ not in ("str_", "string_"):
        return data if kind.__name__ == "ndarray" and _has_text(data) else core.as_tensor(data)
    if isinstance(data, Mapping):
        return _rebuilt_mapping(data, {k: default_convert(data[k]) for k in data})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return kind(*(default_convert(d) for d in data))
    if isinstance(data, tuple):
        return [default_convert(d) for d in data]
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _rebuilt(data, [default_convert(d) for d in data])
    return data


def collate(batch, *, collate_fn_map=None):
    """One batch of a list of samples: leaves by ``collate_fn_map`` (type -> function), containers by their parts."""
    elem = batch[0]
    kind = type(elem)
    for _, function in _matching(kind, elem, collate_fn_map):
        return function(batch, collate_fn_map=collate_fn_map)

    def join(samples):
        return collate(samples, collate_fn_map=collate_fn_map)

    if isinstance(elem, Mapping):
        return _rebuilt_mapping(elem, {key: join([d[key] for d in batch]) for key in elem})
    if isinstance(elem, tuple) and hasattr(elem, "_fields"):
        return kind(*(join(samples) for samples in zip(*batch)))
    if isinstance(elem, Sequence):
        if any(len(e) != len(elem) for e in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = [join(samples) for samples in zip(*batch)]
        return columns if isinstance(elem, tuple) else _rebuilt(elem, columns)
    raise TypeError(default_collate_err_msg_format.format(kind))


def _matching(kind, elem, collate_fn_map):
    """The entry of the map for this leaf: by exact type first, then by isinstance."""
    if collate_fn_map is None:
        return
    if kind in collate_fn_map:
        yield kind, collate_fn_map[kind]
        return
    for key, function in collate_fn_map.items():
        if isinstance(elem, key):
            yield key, function
            return
    if kind.__module__ == "numpy":      # numpy need not be imported before its arrays appear
        if kind.__name__ == "ndarray" or any(c.__name__ == "ndarray" for c in kind.__mro__):
            yield kind, collate_numpy_array_fn
        elif any(c.__name__ == "generic" for c in kind.__mro__):
            yield kind, collate_numpy_scalar_fn


def collate_tensor_fn(batch, *, collate_fn_map=None):
    return core.stack(batch, 0)


def collate_numpy_array_fn(batch, *, collate_fn_map=None):
    if _has_text(batch[0]):
        raise TypeError(default_collate_err_msg_format.format(batch[0].dtype))
    return collate([core.as_tensor(b) for b in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch, *, collate_fn_map=None):
    return core.as_tensor(batch)


def collate_float_fn(batch, *, collate_fn_map=None):
    return core.tensor(batch, dtype=core.float64)


def collate_int_fn(batch, *, collate_fn_map=None):
    return core.tensor(batch)


def collate_str_fn(batch, *, collate_fn_map=None):
    return batch


default_collate_fn_map = {Tensor: collate_tensor_fn, float: collate_float_fn, int: collate_int_fn, str: collate_str_fn,
                          bytes: collate_str_fn}


def default_collate(batch):
    """Stack tensors, arrays and numbers; go into dicts, tuples and lists."""
    return collate(batch, collate_fn_map=default_collate_fn_map)


