"""Listing of what checkpoints hold."""
import pickle
import sys

from . import serialization
from ._core import Tensor


def _rows(value, path, out):
    if isinstance(value, Tensor):
        out.append((path, str(value.dtype).rpartition(".")[2], "x".join(map(str, value.shape)) or "scalar"))
    elif isinstance(value, dict):
        for key, item in value.items():
            _rows(item, f"{path}.{key}" if path else str(key), out)
    elif isinstance(value, (list, tuple)) and any(isinstance(v, (Tensor, dict, list, tuple)) for v in value):
        for i, item in enumerate(value):
            _rows(item, f"{path}[{i}]", out)
    else:
        text = repr(value)
        out.append((path, type(value).__name__, text if len(text) <= 60 else text[:57] + "..."))


def show(path):
    """Print names, types and shapes; returns the exit status. Storages of .pt files are not read."""
    try:
        if path.endswith(".safetensors"):
            value = serialization.load(path)
        else:
            value = serialization.load(path, map_location="meta", weights_only=True)
    except pickle.UnpicklingError:
        names = serialization.get_unsafe_globals_in_checkpoint(path)
        print(f"{path} needs classes or functions beyond tensors and containers:", *sorted(names), sep="\n  ")
        return 1
    except (OSError, RuntimeError, ValueError, EOFError) as error:
        print(f"{path}: {error}", file=sys.stderr)
        return 1
    out = []
    _rows(value, "", out)
    widths = [max((len(row[i]) for row in out), default=0) for i in (0, 1)]
    for name, kind, shape in out:
        print(f"{name:{widths[0]}}  {kind:{widths[1]}}  {shape}")
    return 0
