"""save and load: checkpoints in PyTorch's zip format, its older stream format, and safetensors."""
import io
import os
import pickle
import re
import sys
import tempfile
import threading
import warnings
from enum import Enum

from . import _core as core, _weights_only_unpickler as _wo
from ._core import device as _device
from ._pickling import make_pickler, make_unpickler
from ._zip_archive import ArchiveReader, ArchiveWriter
from .storage import TypedStorage, UntypedStorage, byte_view, by_name, identity, is_storage

__all__ = ["SourceChangeWarning", "register_package", "location_tag", "default_restore_location", "load", "save", "StorageType", "LoadEndianness", "get_crc32_options",
           "set_crc32_options", "get_default_load_endianness", "set_default_load_endianness", "get_default_mmap_options",
           "set_default_mmap_options", "clear_safe_globals", "get_safe_globals", "add_safe_globals", "safe_globals",
           "get_unsafe_globals_in_checkpoint", "skip_data"]

DEFAULT_PROTOCOL = 2
MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION = 1001
UNSAFE_MESSAGE = ("In PyTorch 2.6, we changed the default value of the `weights_only` argument in `torch.load` from `False` to `True`. "
                  "Re-running `torch.load` with `weights_only` set to `False` will likely succeed, but it can result in arbitrary code "
                  "execution. Do it only if you got the file from a trusted source.")
_DOCS = ("\n\nCheck the documentation of torch.load to learn more about types accepted by default with weights_only "
         "https://pytorch.org/docs/stable/generated/torch.load.html.")

add_safe_globals = _wo.add_safe_globals
get_safe_globals = _wo.get_safe_globals
clear_safe_globals = _wo.clear_safe_globals
safe_globals = _wo.safe_globals


class SourceChangeWarning(Warning):
    """A class in an old file was saved with other source code."""


class LoadEndianness(Enum):
    """The byte order that files without a mark are read with."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


class StorageType:
    """A storage class named in a file."""

    def __init__(self, name):
        self._dtype = by_name(name).dtype

    @property
    def dtype(self):
        return self._dtype

    def __str__(self):
        return f"StorageType(dtype={self.dtype})"


class _Settings(threading.local):
    skip_data = False


_settings = _Settings()
_endianness = None
_crc32 = True
_mmap_flags = 2         # MAP_PRIVATE


def get_default_load_endianness():
    return _endianness


def set_default_load_endianness(endianness):
    """The byte order of files without a mark: a LoadEndianness, or None for little."""
    global _endianness
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    _endianness = endianness


def get_crc32_options():
    return _crc32


def set_crc32_options(compute_crc32):
    """Whether save writes checksums; load never needs them."""
    global _crc32
    _crc32 = compute_crc32


def get_default_mmap_options():
    return _mmap_flags


class set_default_mmap_options:
    """How ``load(mmap=True)`` maps files: mmap.MAP_PRIVATE (writes stay in memory) or mmap.MAP_SHARED. Also a context manager."""

    def __init__(self, flags):
        global _mmap_flags
        if flags not in (1, 2):
            raise ValueError("Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, but got "
                             f"{flags}")
        self.prev, _mmap_flags = _mmap_flags, flags

    def __enter__(self):
        pass

    def __exit__(self, *args):
        global _mmap_flags
        _mmap_flags = self.prev


class skip_data:
    """While open, save leaves holes where storages go and load leaves storages unread."""

    def __init__(self, materialize_fake_tensors=False):
        self.materialize_fake_tensors = materialize_fake_tensors

    def __enter__(self):
        self.prev, _settings.skip_data = _settings.skip_data, True

    def __exit__(self, *args):
        _settings.skip_data = self.prev


# ---- where storages live

_packages = []


def register_package(priority, tagger, deserializer):
    """A device's part of saving and loading: ``tagger(storage)`` names its location, ``deserializer(storage, location)`` moves it there."""
    _packages.append((priority, tagger, deserializer))
    _packages.sort(key=lambda p: p[0])


def _restore_cpu(storage, location):
    return storage if location == "cpu" else None


def _restore_meta(storage, location):
    return UntypedStorage(storage.nbytes(), device="meta") if location == "meta" else None


def _restore_absent(storage, location):
    """Devices that this machine has not."""
    kind = re.match(r"(cuda|xpu|hpu|mps|mtia)(?::?\d+)?$", location)
    if kind is None:
        return None
    name = kind.group(1)
    raise RuntimeError(f"Attempting to deserialize object on a {name.upper()} device but torch.{name}.is_available() is False. If you are "
                       "running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') to map your storages to "
                       "the CPU.")


register_package(10, lambda s: "cpu" if s.device.type == "cpu" else None, _restore_cpu)
register_package(20, lambda s: None, _restore_absent)
register_package(22, lambda s: "meta" if s.device.type == "meta" else None, _restore_meta)


def location_tag(storage):
    """The name of the device that ``storage`` is on, as files say it."""
    for _, tagger, _ in _packages:
        tag = tagger(storage)
        if tag:
            return tag
    raise RuntimeError("don't know how to determine data location of " + core.typename(storage))


def default_restore_location(storage, location):
    """``storage`` on the device that ``location`` names."""
    for _, _, restore in _packages:
        result = restore(storage, location)
        if result is not None:
            return result
    raise RuntimeError(f"don't know how to restore data location of {_torch_name(storage)} (tagged with {location})")


def _torch_name(storage):
    return "torch.storage.UntypedStorage" if isinstance(storage, UntypedStorage) else core.typename(storage)


def _get_restore_location(map_location):
    """A function (storage, location) -> storage for the map_location argument."""
    if map_location is None:
        return default_restore_location
    if isinstance(map_location, dict):
        return lambda storage, location: default_restore_location(storage, map_location.get(location, location))
    if isinstance(map_location, (str, bytes)):
        target = map_location.decode() if isinstance(map_location, bytes) else map_location
        return lambda storage, location: default_restore_location(storage, target)
    if isinstance(map_location, _device):
        return lambda storage, location: default_restore_location(storage, str(map_location))

    def by_user(storage, location):
        result = map_location(storage, location)
        return default_restore_location(storage, location) if result is None else result

    return by_user


def _get_layout(name):
    """The layout with this name, as 'torch.strided'; files call it."""
    value = getattr(core, name.rpartition(".")[2], None)
    if not isinstance(value, core.layout):
        raise KeyError(name)
    return value


# ---- saving

def _is_path(f):
    return isinstance(f, (str, os.PathLike))


class _atomic_file:
    """A file that takes the place of ``path`` only once it is complete; on an error the old file stays as it was."""

    def __init__(self, path):
        self.path = os.fspath(path)

    def __enter__(self):
        folder = os.path.dirname(self.path)
        if folder and not os.path.isdir(folder):
            raise RuntimeError(f"Parent directory {folder} does not exist.")
        target = os.path.realpath(self.path)
        self.in_place = os.path.exists(target) and not os.path.isfile(target)       # a device or a pipe
        if self.in_place:
            self.file = open(target, "wb")
            return self.file
        handle, self.temporary = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=os.path.dirname(target) or ".")
        self.target = target
        mode = os.stat(target).st_mode & 0o777 if os.path.exists(target) else 0o666 & ~_umask()
        os.chmod(self.temporary, mode)
        self.file = os.fdopen(handle, "wb")
        return self.file

    def __exit__(self, kind, value, tb):
        self.file.close()
        if self.in_place:
            return
        if kind is None:
            os.replace(self.temporary, self.target)
        else:
            os.unlink(self.temporary)


def _umask():
    value = os.umask(0)
    os.umask(value)
    return value


def _root_of(f):
    """The folder inside the archive: the file's name without its last suffix; "archive" for buffers and non-ASCII names."""
    if not _is_path(f) or not os.fspath(f).isascii():
        return "archive"
    base = os.path.basename(os.fspath(f))
    root = base.rpartition(".")[0] if "." in base else base
    if not root:
        raise RuntimeError(f"[enforce fail at inline_container.cc:720] . invalid file name: {base}. ")
    return root


class _Storages:
    """The storages that an object refers to, numbered as they are met."""

    def __init__(self):
        self.numbers, self.found, self.dtypes = {}, {}, {}

    def persistent_id(self, obj):
        """What stands for ``obj`` in the pickle if it is a storage, else None."""
        if not is_storage(obj):
            return None
        if isinstance(obj, TypedStorage):
            storage, dtype, kind, count = obj._untyped_storage, obj.dtype, by_name(obj._pickle_storage_type()), len(obj)
        else:
            storage, dtype, kind, count = obj, core.uint8, UntypedStorage, obj.nbytes()
        address = storage.data_ptr() if storage.device.type != "meta" else 0
        if address and self.dtypes.setdefault(address, dtype) != dtype:
            raise RuntimeError("Cannot save multiple tensors or storages that view the same data as different types")
        number = self.numbers.setdefault(address or identity(storage), str(len(self.numbers)))
        self.found[number] = storage
        return "storage", kind, number, location_tag(storage), count


def _pickled(obj, storages, pickle_module, protocol):
    buffer = io.BytesIO()

    class Pickler(make_pickler(pickle_module)):
        def persistent_id(self, obj):
            return storages.persistent_id(obj)

    Pickler(buffer, protocol=protocol).dump(obj)
    return buffer.getvalue()


def _save(obj, archive, pickle_module, protocol, disable_byteorder):
    storages = _Storages()
    data = _pickled(obj, storages, pickle_module, protocol)
    archive.write_record("data.pkl", data)
    archive.write_record(".format_version", b"1")
    archive.write_record(".storage_alignment", str(archive.alignment).encode())
    if not disable_byteorder:
        archive.write_record("byteorder", sys.byteorder.encode())
    for number, storage in storages.found.items():
        data = memoryview(bytes(storage.nbytes())) if _settings.skip_data else byte_view(storage)
        archive.write_record(f"data/{number}", data)
    archive.finish()


def _legacy_save(obj, f, pickle_module, protocol):
    storages = _Storages()

    class Pickler(make_pickler(pickle_module)):
        def persistent_id(self, obj):
            pid = storages.persistent_id(obj)
            return None if pid is None else (*pid, None)

    info = {"protocol_version": PROTOCOL_VERSION, "little_endian": sys.byteorder == "little",
            "type_sizes": {"short": 2, "int": 4, "long": 4}}
    for head in (MAGIC_NUMBER, PROTOCOL_VERSION, info):
        pickle_module.dump(head, f, protocol=protocol)
    Pickler(f, protocol=protocol).dump(obj)
    keys = sorted(storages.found)
    pickle_module.dump(keys, f, protocol=protocol)
    for key in keys:
        storage = storages.found[key]
        dtype = storages.dtypes.get(storage.data_ptr(), core.uint8)
        f.write((storage.nbytes() // dtype.itemsize).to_bytes(8, "little"))
        f.write(byte_view(storage))


def save(obj, f, pickle_module=pickle, pickle_protocol=DEFAULT_PROTOCOL, _use_new_zipfile_serialization=True,
         _disable_byteorder_record=False):
    """Write ``obj`` (tensors, modules, containers) to a path or an open binary file. A path is replaced only when all is written."""
    if not _is_path(f) and not hasattr(f, "write"):
        raise AttributeError("expected 'f' to be string, path, or a file-like object with a 'write' attribute")
    if not _use_new_zipfile_serialization and _settings.skip_data:
        raise RuntimeError("Cannot use skip_data=True with _use_new_zipfile_serialization=False")
    if not _is_path(f):
        if not callable(f.write):
            raise TypeError(f"Buffer of {str(type(f)).strip('<>')} has no callable attribute 'write'")
        _write_to(obj, f, f, pickle_module, pickle_protocol, _use_new_zipfile_serialization, _disable_byteorder_record)
        if hasattr(f, "flush"):
            f.flush()
        return
    root = f
    if _use_new_zipfile_serialization:
        _root_of(f)
    with _atomic_file(f) as file:
        _write_to(obj, file, root, pickle_module, pickle_protocol, _use_new_zipfile_serialization, _disable_byteorder_record)


def _write_to(obj, file, name, pickle_module, protocol, zipped, disable_byteorder):
    if not zipped:
        _legacy_save(obj, file, pickle_module, protocol)
        return
    from .utils.serialization import config
    archive = ArchiveWriter(file, _root_of(name), config.save.storage_alignment, _crc32)
    _save(obj, archive, pickle_module, protocol, disable_byteorder)


# ---- loading

def _explain(message):
    """The long form of a refusal by the weights_only machine."""
    if re.search(r"GLOBAL (\S+) was not an allowed global by default.", message):
        text = ("Weights only load failed. This file can still be loaded, to do so you have two options, \033[1mdo those steps only if you "
                f"trust the source of the checkpoint\033[0m. \n\t(1) {UNSAFE_MESSAGE}\n\t(2) Alternatively, to load with "
                "`weights_only=True` please check the recommended steps in the following error message.\n\tWeightsUnpickler error: "
                + message)
    elif re.search(r"(\S+) must be imported to load", message):
        return f"Weights only load failed. {message}\n {UNSAFE_MESSAGE}\n"
    else:
        text = f"Weights only load failed. {UNSAFE_MESSAGE}\n"
        if not re.search(r"whose module (\S+) is blocked", message):
            text += ("Please file an issue with the following so that we can make `weights_only=True` compatible with your use case: "
                     "WeightsUnpickler error: ")
        text += "\n\n" + message
    return text + _DOCS


_TRUE = ("1", "y", "yes", "true")


def _decide_weights_only(weights_only, pickle_module):
    """weights_only after defaults and the two environment variables."""
    given = weights_only is not None
    if not given:
        weights_only = pickle_module is None
    force = os.getenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "0").lower() in _TRUE
    force_not = os.getenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "0").lower() in _TRUE
    if force and force_not:
        raise RuntimeError("Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` should be set, but both were "
                           "set.")
    if force:
        weights_only = True
    elif force_not and not given:
        warnings.warn("Environment variable TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected, since the`weights_only` argument was not explicitly "
                      "passed to `torch.load`, forcing weights_only=False.", UserWarning, stacklevel=3)
        weights_only = False
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    return weights_only


def load(f, map_location=None, pickle_module=None, *, weights_only=None, mmap=None, **pickle_load_args):
    """Read what :func:`save` wrote. By default (``weights_only``) the file can only build tensors, containers and allowed classes.

    ``map_location`` moves storages: a device, a dict of locations, or a function (storage, location). ``mmap`` maps the file instead of
    reading it. Paths that end in .safetensors are read as such.
    """
    weights_only = _decide_weights_only(weights_only, pickle_module)
    if pickle_load_args and weights_only:
        warnings.warn("pickle_load_args only works if `weights_only=False`.", stacklevel=2)
    if mmap is None:
        from .utils.serialization import config
        mmap = config.load.mmap
    pickle_load_args.setdefault("encoding", "utf-8")
    module = _wo if weights_only else (pickle_module or pickle)
    if _is_path(f) and os.fspath(f).endswith(".safetensors"):
        return _load_safetensors(os.fspath(f), map_location)
    if not _is_path(f):
        _check_readable(f)
        return _load_from(f, f, map_location, module, mmap, pickle_load_args)
    with open(f, "rb") as file:
        return _load_from(file, f, map_location, module, mmap, pickle_load_args)


def _load_safetensors(path, map_location):
    device = "cpu"
    if isinstance(map_location, (str, bytes, _device)):
        device = str(map_location)
    elif isinstance(map_location, dict) or callable(map_location):
        kind = "dict" if isinstance(map_location, dict) else "callable"
        raise RuntimeError(f"Loading safetensors file with {kind} map_location is not supported. Use a device string or torch.device "
                           "instead.")
    from .safetensors import load_file
    return load_file(path, device=device)


def _check_readable(f):
    for name in ("seek", "tell"):
        if not hasattr(f, name):
            raise AttributeError(f"'{type(f).__name__}' object has no attribute '{name}'. You can only torch.load from a file that is "
                                 "seekable. Please pre-load the data into a buffer like io.BytesIO and try to load from it instead.")


def _load_from(file, f, map_location, module, mmap, pickle_load_args):
    """Load from an open file; refusals of the weights_only machine get their long explanation."""
    try:
        start = file.tell()
        zipped = file.read(4) == b"PK\3\4"
        file.seek(start)
        if not zipped:
            if mmap:
                name = f"{f}, " if isinstance(f, str) else ""
                raise RuntimeError(f"mmap can only be used with files saved with `torch.save({name}_use_new_zipfile_serialization=True), "
                                   "please torch.save your checkpoint with this option in order to use mmap.")
            return _legacy_load(file, map_location, module, **pickle_load_args)
        archive = ArchiveReader(file)
        if archive.has_record("constants.pkl"):
            raise RuntimeError("Cannot use ``weights_only=True`` with TorchScript archives passed to ``torch.load``. " + UNSAFE_MESSAGE
                               if module is _wo else "TorchScript archives cannot be loaded: this package has no TorchScript.")
        if mmap and not _is_path(f):
            raise ValueError("f must be a file path in order to use the mmap argument")
        return _load(archive, map_location, module, mapped=_map_file(f) if mmap else None, **pickle_load_args)
    except pickle.UnpicklingError as error:
        if module is _wo:
            raise pickle.UnpicklingError(_explain(str(error))) from None
        raise


def _map_file(path):
    """The whole file as the bytes of a mapping; private: writes stay in memory."""
    import mmap as mmap_module
    with open(path, "rb" if _mmap_flags == 2 else "r+b") as file:
        mapping = mmap_module.mmap(file.fileno(), 0, access=mmap_module.ACCESS_COPY if _mmap_flags == 2 else mmap_module.ACCESS_WRITE)
    return memoryview(mapping)


def _byte_order(archive):
    """The byte order of the archive's storages, or None to take them as they are."""
    if archive.has_record("byteorder"):
        order = archive.get_record("byteorder")
        if order not in (b"little", b"big"):
            raise ValueError("Unknown endianness type: " + order.decode())
        return order.decode()
    chosen = get_default_load_endianness()
    return {None: "little", LoadEndianness.LITTLE: "little", LoadEndianness.BIG: "big", LoadEndianness.NATIVE: None}[chosen]


class _StorageReader:
    """Turns the archive's references into storages, each read once."""

    def __init__(self, archive, map_location, mapped):
        self.archive, self.mapped = archive, mapped
        self.restore = _get_restore_location(map_location)
        self.meta = map_location is not None and not callable(map_location) and not isinstance(map_location, dict) \
            and str(map_location) == "meta"
        self.order = _byte_order(archive)
        self.done = {}

    def __call__(self, saved_id):
        if not isinstance(saved_id, tuple):
            raise AssertionError(f"saved_id must be a tuple, got {type(saved_id).__name__}")
        kind = saved_id[0].decode("ascii") if isinstance(saved_id[0], bytes) else saved_id[0]
        if kind != "storage":
            raise AssertionError(f"Unknown typename for persistent_load, expected 'storage' but got '{kind}'")
        storage_type, key, location, numel = saved_id[1:]
        dtype = core.uint8 if storage_type is UntypedStorage else storage_type.dtype
        if key not in self.done:
            location = location.decode("ascii") if isinstance(location, bytes) else location
            self.done[key] = self._storage(key, numel * dtype.itemsize, dtype, location)
        return TypedStorage(wrap_storage=self.done[key], dtype=dtype, _internal=True)

    def _storage(self, key, nbytes, dtype, location):
        name = f"data/{key}"
        if nbytes < 0:
            raise RuntimeError(f"negative size of storage {key}")
        if self.meta:
            storage = core.empty(nbytes, dtype=core.uint8, device="meta").untyped_storage()
            try:
                storage._checkpoint_offset = self.archive.record_offset(name)
            except AttributeError:
                pass
            return storage
        if _settings.skip_data:
            storage = core.empty(nbytes, dtype=core.uint8).untyped_storage()
        else:
            storage = self._read(name, nbytes)
        if self.order not in (None, sys.byteorder):
            _swap(byte_view(storage), dtype)
        return self.restore(storage, location)

    def _read(self, name, nbytes):
        if self.archive.record_size(name) != nbytes:
            raise RuntimeError(f"PytorchStreamReader failed reading file {name}: {self.archive.record_size(name)} bytes where the pickle "
                               f"says {nbytes}")
        if self.mapped is not None and self.archive.is_stored(name) and nbytes:
            start = self.archive.origin + self.archive.record_offset(name)
            return self._mapped_part(start, nbytes)
        storage = core.empty(nbytes, dtype=core.uint8).untyped_storage()
        if nbytes:
            self.archive.read_into(name, byte_view(storage))
        return storage

    def _mapped_part(self, start, nbytes):
        if start + nbytes > len(self.mapped):
            raise RuntimeError("PytorchStreamReader failed reading file: the file is truncated")
        return _storage_over(self.mapped[start:start + nbytes])


def _storage_over(view):
    """A storage over bytes that it shares."""
    if len(view) == 0:
        return core.empty(0, dtype=core.uint8).untyped_storage()
    return core.frombuffer(view, dtype=core.uint8).untyped_storage()


def _swap(view, dtype):
    """Reverse the bytes of every element (of every half of a complex one), in place."""
    n = dtype.itemsize // (2 if dtype.is_complex else 1)
    if n > 1:
        source = bytes(view)
        for i in range(n):
            view[i::n] = source[n - 1 - i::n]


def _load(archive, map_location, module, mapped=None, **pickle_load_args):
    reader = _StorageReader(archive, map_location, mapped)
    data = io.BytesIO(archive.get_record("data.pkl"))
    unpickler = (module.Unpickler if module is _wo else make_unpickler(module))(data, **pickle_load_args)
    unpickler.persistent_load = reader
    return unpickler.load()


def _legacy_load(f, map_location, module, **pickle_load_args):
    """The stream format of PyTorch before 1.6."""
    def one():
        return module.load(f, **pickle_load_args)

    if one() != MAGIC_NUMBER:
        raise RuntimeError("Invalid magic number; corrupt file?")
    version = one()
    if version != PROTOCOL_VERSION:
        raise RuntimeError(f"Invalid protocol version: {version}")
    one()       # sizes of C types; nothing depends on them
    restore = _get_restore_location(map_location)
    found = {}

    def persistent_load(saved_id):
        kind = saved_id[0].decode("ascii") if isinstance(saved_id[0], bytes) else saved_id[0]
        if kind == "module":
            return saved_id[1]
        if kind != "storage":
            raise RuntimeError(f"Unknown saved id type: {saved_id[0]}")
        storage_type, key, location, numel, view = saved_id[1:]
        location = location.decode("ascii") if isinstance(location, bytes) else location
        if key not in found:
            raw = core.empty(numel * storage_type.dtype.itemsize, dtype=core.uint8).untyped_storage()
            found[key] = (raw, storage_type.dtype, restore(raw, location))
        storage = found[key][2]
        if view is not None:
            _, offset, count = view
            start, nbytes = (n * storage_type.dtype.itemsize for n in (offset, count))
            storage = _storage_over(byte_view(storage)[start:start + nbytes])
        return TypedStorage(wrap_storage=storage, dtype=storage_type.dtype, _internal=True)

    unpickler = (module.Unpickler if module is _wo else make_unpickler(module))(f, **pickle_load_args)
    unpickler.persistent_load = persistent_load
    result = unpickler.load()
    for key in one():
        if key not in found:
            raise AssertionError(f"storage key {key!r} not found in deserialized_objects")
        raw, dtype, placed = found[key]
        count = int.from_bytes(f.read(8), "little")
        data = f.read(count * dtype.itemsize)
        if len(data) != raw.nbytes():
            raise RuntimeError(f"unexpected EOF, expected {raw.nbytes() - len(data)} more bytes. The file might be corrupted.")
        if len(data):
            byte_view(raw)[:] = data
    return result


def get_unsafe_globals_in_checkpoint(f):
    """Names of classes and functions that a checkpoint needs beyond those allowed."""
    with (open(f, "rb") if _is_path(f) else _borrowed(f)) as file:
        start = file.tell()
        zipped = file.read(4) == b"PK\3\4"
        file.seek(start)
        if not zipped:
            raise ValueError("Expected input to be a checkpoint returned by torch.save")
        archive = ArchiveReader(file)
        if archive.has_record("constants.pkl"):
            raise ValueError("Expected input to be a checkpoint returned by torch.save but got a torchscript checkpoint")
        names = _wo.get_globals_in_pkl(io.BytesIO(archive.get_record("data.pkl")))
    return list(names - set(_wo.allowed()) - set(_wo.user_allowed()))


class _borrowed:
    """An open file, left open."""

    def __init__(self, file):
        self.file = file

    def __enter__(self):
        return self.file

    def __exit__(self, *args):
        pass
