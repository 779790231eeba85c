"""A pickle machine that builds only what it knows: tensors, parameters, plain containers, and what the user allows.

It understands the opcodes that protocol 2 needs and never imports or calls anything that is not on its list.
"""
import warnings
from _codecs import encode
from collections import Counter, OrderedDict
from pickle import UnpicklingError, decode_long
from struct import error as StructError, unpack

from . import _core as core
from ._core import Tensor

_BLOCKED = ("sys", "os", "posix", "nt")
_marked = set()         # what the user allowed: objects, or (object, "full.path")


def add_safe_globals(safe_globals):
    _marked.update(safe_globals)


def get_safe_globals():
    return list(_marked)


def clear_safe_globals():
    _marked.clear()


class safe_globals:
    """Allows ``safe_globals`` while open."""

    def __init__(self, safe_globals):
        self.safe_globals = safe_globals

    def __enter__(self):
        add_safe_globals(self.safe_globals)

    def __exit__(self, kind, value, tb):
        _marked.difference_update(self.safe_globals)


def user_allowed():
    """Name -> object of what the user allowed."""
    named = {}
    for item in _marked:
        if not isinstance(item, tuple):
            named[f"{item.__module__}.{item.__qualname__}"] = item
            continue
        if len(item) != 2:
            raise ValueError("Expected tuple of length 2 (global, str of callable full path), but got tuple of length: "
                             f"{len(item)}")
        if type(item[1]) is not str:
            raise TypeError(f"Expected second item in tuple to be str of callable full path, but got: {type(item[1])}")
        named[item[1]] = item[0]
    return named


_REBUILD = ("_rebuild_parameter", "_rebuild_parameter_with_state", "_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_tensor_v3",
            "_rebuild_meta_tensor_no_storage")
_DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32", "float64",
           "complex32", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu",
           "float4_e2m1fn_x2")
_TENSOR_CLASSES = ("DoubleTensor", "FloatTensor", "HalfTensor", "BFloat16Tensor", "LongTensor", "IntTensor", "ShortTensor", "CharTensor",
                   "ByteTensor", "BoolTensor")
_allowed = {}


def allowed():
    """Name -> object of what is always allowed, by PyTorch's names."""
    if _allowed:
        return _allowed
    from . import _tensor, _utils, serialization, storage
    from .nn.parameter import Parameter
    found = {"collections.OrderedDict": OrderedDict, "collections.Counter": Counter, "torch.nn.parameter.Parameter": Parameter,
             "torch.serialization._get_layout": serialization._get_layout, "torch.Size": core.Size, "torch.Tensor": Tensor,
             "torch.device": core.device, "_codecs.encode": encode, "builtins.bytearray": bytearray, "builtins.set": set,
             "builtins.complex": complex}
    for name in _DTYPES:
        if hasattr(core, name):
            found[f"torch.{name}"] = getattr(core, name)
    for name in _TENSOR_CLASSES:
        if hasattr(core, name):
            found[f"torch.{name}"] = getattr(core, name)
    for name in storage._CLASS_DTYPES:
        found[f"torch.{name}"] = found[f"torch.cuda.{name}"] = storage.by_name(name)
    found["torch.storage.UntypedStorage"] = storage.UntypedStorage
    found["torch.storage.TypedStorage"] = storage.TypedStorage
    for name in _REBUILD:
        found[f"torch._utils.{name}"] = getattr(_utils, name)
    found["torch._tensor._rebuild_from_type_v2"] = _tensor._rebuild_from_type_v2
    _allowed.update(found)
    return _allowed


def _modern_name(module, name):
    """Python 2's names as Python 3's; our own package as PyTorch."""
    from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
    if (module, name) in NAME_MAPPING:
        module, name = NAME_MAPPING[(module, name)]
    elif module in IMPORT_MAPPING:
        module = IMPORT_MAPPING[module]
    if module == "taimatsu" or module.startswith("taimatsu."):
        module = "torch" + module[len("taimatsu"):]
    return module, name


_NESTED = {"torch.nested._internal.nested_tensor.NestedTensor", "torch.nested._internal.nested_tensor._rebuild_njt",
           "torch._dynamo.decorators._DimRange"}
_DTENSOR = {"torch.distributed.device_mesh.DeviceMesh", "torch.distributed.tensor._dtensor_spec.DTensorSpec",
            "torch.distributed.tensor._dtensor_spec.TensorMeta", "torch.distributed.tensor.DTensor",
            "torch.distributed.tensor.placement_types.Partial", "torch.distributed.tensor.placement_types.Replicate",
            "torch.distributed.tensor.placement_types.Shard"}


def _refusal(path):
    """The exception for a global that is not on the list."""
    if path in _NESTED:
        return UnpicklingError("``torch.nested`` and ``torch._dynamo`` must be imported to load nested jagged tensors (NJTs)")
    if path in _DTENSOR:
        return UnpicklingError("``torch.distributed.tensor`` must be imported to load DTensors")
    short = path[len("builtins."):] if path.startswith("builtins.") else path
    return UnpicklingError(
        f"Unsupported global: GLOBAL {short} was not an allowed global by default. Please use "
        f"`torch.serialization.add_safe_globals([{short}])` or the `torch.serialization.safe_globals([{short}])` context manager to "
        "allowlist this global if you trust this class/function.")


def _same(value, choices):
    return any(value is c for c in choices)


class Unpickler:
    """One run of the machine over ``file`` (read and readline)."""

    def __init__(self, file, *, encoding="bytes"):
        self.encoding = encoding
        self.read, self.readline = file.read, file.readline
        self.memo = {}
        self.stack, self.marks = [], []
        self.known, self.users = allowed(), user_allowed()

    def persistent_load(self, pid):
        raise UnpicklingError("unsupported persistent id encountered")

    def load(self):
        """The object that the pickle describes."""
        while True:
            op = self.read(1)
            if not op:
                raise EOFError
            if op == b".":
                return self._pop()
            step = _STEPS.get(op)
            if step is None:
                raise UnpicklingError(f"Unsupported operand {op[0]}")
            try:
                step(self)
            except StructError:
                raise EOFError("Ran out of input") from None

    # ---- stack

    def _pop(self):
        if not self.stack:
            raise UnpicklingError("unexpected end of the pickle stack")
        return self.stack.pop()

    def _top(self):
        if not self.stack:
            raise UnpicklingError("unexpected end of the pickle stack")
        return self.stack[-1]

    def _pop_mark(self):
        if not self.marks:
            raise UnpicklingError("unexpected MARK in the pickle stack")
        items, self.stack = self.stack, self.marks.pop()
        return items

    def _bytes(self, n):
        data = self.read(n)
        if len(data) != n:
            raise EOFError("Ran out of input")
        return data

    def _push(self, value):
        self.stack.append(value)

    # ---- objects

    def _may_use(self, obj):
        return _same(obj, self.known.values()) or _same(obj, self.users.values())

    def _global(self):
        module, name = (self.readline()[:-1].decode("utf-8") for _ in range(2))
        module, name = _modern_name(module, name)
        path = f"{module}.{name}"
        if module in _BLOCKED:
            raise UnpicklingError(f"Trying to load unsupported GLOBAL {path} whose module {module} is blocked.")
        if path in self.known:
            self._push(self.known[path])
        elif path in self.users:
            self._push(self.users[path])
        elif path.startswith("torch.") and "taimatsu" + path[len("torch"):] in self.users:
            self._push(self.users["taimatsu" + path[len("torch"):]])
        else:
            raise _refusal(path)

    def _newobj(self):
        args, cls = self._pop(), self._pop()
        from .nn.parameter import Parameter
        if cls is Parameter:
            self._push(Parameter(*args))
        elif isinstance(cls, type) and self._may_use(cls):
            self._push(cls.__new__(cls, *args))
        else:
            raise UnpicklingError("Can only create new object for nn.Parameter or classes allowlisted via `add_safe_globals` but got "
                                  f"{cls}")

    def _reduce(self):
        args, func = self._pop(), self._top()
        if not self._may_use(func):
            text = f"Trying to call reduce for unrecognized function {func}"
            if hasattr(func, "__self__"):
                text += f" which belongs to {func.__self__}"
            raise UnpicklingError(text)
        if type(args) is not tuple:
            raise UnpicklingError(f"arguments of REDUCE must be a tuple, but got {type(args)}")
        self.stack[-1] = func(*args)

    def _build(self):
        state, inst = self._pop(), self._top()
        from .nn.parameter import Parameter
        kind = type(inst)
        if kind is Tensor:
            inst.set_(*state)
        elif kind is Parameter:
            inst.__setstate__(state)
        elif kind is OrderedDict:
            inst.__dict__.update(state)
        elif self._may_use(kind):
            if hasattr(inst, "__setstate__"):
                inst.__setstate__(state)
                return
            state, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
            inst.__dict__.update(state or {})
            for name, value in (slots or {}).items():
                setattr(inst, name, value)
        else:
            raise UnpicklingError("Can only build Tensor, Parameter, OrderedDict or types allowlisted via `add_safe_globals`, but got "
                                  f"{kind}")

    # ---- containers

    def _append(self):
        item, target = self._pop(), self._top()
        if type(target) is not list:
            raise UnpicklingError(f"Can only append to lists, but got {type(target)}")
        target.append(item)

    def _appends(self):
        items, target = self._pop_mark(), self._top()
        if type(target) is not list:
            raise UnpicklingError(f"Can only extend lists, but got {type(target)}")
        target.extend(items)

    def _dict_target(self, opcode):
        target = self._top()
        if type(target) not in (dict, OrderedDict, Counter):
            raise UnpicklingError(f"Can only {opcode} for dict, collections.OrderedDict, collections.Counter, but got {type(target)}")
        return target

    def _setitem(self):
        value, key = self._pop(), self._pop()
        self._dict_target("SETITEM")[key] = value

    def _setitems(self):
        items, target = self._pop_mark(), None
        target = self._dict_target("SETITEMS")
        if len(items) % 2:
            raise UnpicklingError("odd number of items for SETITEMS")
        for i in range(0, len(items), 2):
            target[items[i]] = items[i + 1]

    def _mark(self):
        self.marks.append(self.stack)
        self.stack = []

    def _tuple(self):
        items = self._pop_mark()
        self._push(tuple(items))

    def _tuple_of(self, n):
        if len(self.stack) < n:
            raise UnpicklingError("unexpected end of the pickle stack")
        self.stack[-n:] = [tuple(self.stack[-n:])]

    # ---- values

    def _unicode(self):
        self._push(str(self._bytes(unpack("<I", self.read(4))[0]), "utf-8", "surrogatepass"))

    def _short_string(self):
        data = self._bytes(self._bytes(1)[0])
        self._push(data if self.encoding == "bytes" else data.decode(self.encoding, "strict"))

    def _long1(self):
        self._push(decode_long(self._bytes(self._bytes(1)[0])))

    def _persid(self):
        pid = self._pop()
        if type(pid) is not tuple and type(pid) is not int:
            raise UnpicklingError(f"persistent_load id must be tuple or int, but got {type(pid)}")
        if type(pid) is tuple and pid:
            kind = pid[0].decode("ascii", "replace") if isinstance(pid[0], bytes) else pid[0]
            if kind != "storage":
                raise UnpicklingError(f"Only persistent_load of storage is allowed, but got {type(pid[0])}")
        self._push(self.persistent_load(pid))

    def _get(self, key):
        if key not in self.memo:
            raise UnpicklingError(f"Memo value not found at index {key}")
        self._push(self.memo[key])

    def _put(self, key):
        self.memo[key] = self._top()

    def _proto(self):
        proto = self._bytes(1)[0]
        if proto != 2:
            warnings.warn(f"Detected pickle protocol {proto} in the checkpoint, which was not the default pickle protocol used by `torch.load` "
                          "(2). The weights_only Unpickler might not support all instructions implemented by this protocol, please file an "
                          "issue for adding support if you encounter this.", stacklevel=2)


_STEPS = {
    b"c": Unpickler._global, b"\x81": Unpickler._newobj, b"R": Unpickler._reduce, b"b": Unpickler._build, b"a": Unpickler._append,
    b"e": Unpickler._appends, b"s": Unpickler._setitem, b"u": Unpickler._setitems, b"(": Unpickler._mark, b"t": Unpickler._tuple,
    b"\x85": lambda m: m._tuple_of(1), b"\x86": lambda m: m._tuple_of(2), b"\x87": lambda m: m._tuple_of(3),
    b"N": lambda m: m._push(None), b"\x88": lambda m: m._push(True), b"\x89": lambda m: m._push(False), b")": lambda m: m._push(()),
    b"]": lambda m: m._push([]), b"}": lambda m: m._push({}), b"\x8f": lambda m: m._push(set()),
    b"J": lambda m: m._push(unpack("<i", m.read(4))[0]), b"K": lambda m: m._push(m._bytes(1)[0]),
    b"M": lambda m: m._push(unpack("<H", m.read(2))[0]), b"G": lambda m: m._push(unpack(">d", m.read(8))[0]),
    b"X": Unpickler._unicode, b"U": Unpickler._short_string, b"\x8a": Unpickler._long1, b"Q": Unpickler._persid,
    b"h": lambda m: m._get(m._bytes(1)[0]), b"j": lambda m: m._get(unpack("<I", m.read(4))[0]),
    b"q": lambda m: m._put(m._bytes(1)[0]), b"r": lambda m: m._put(unpack("<I", m.read(4))[0]), b"\x80": Unpickler._proto,
}

# Bytes that follow an opcode, for the walk that only collects names.
_FIXED = {b"J": 4, b"K": 1, b"M": 2, b"G": 8, b"h": 1, b"j": 4, b"q": 1, b"r": 4, b"\x80": 1}


def get_globals_in_pkl(file):
    """All global names in a pickle, without building anything."""
    found = set()
    while True:
        op = file.read(1)
        if not op:
            raise EOFError
        if op == b".":
            return found
        if op == b"c":
            module, name = (file.readline()[:-1].decode("utf-8") for _ in range(2))
            found.add(".".join(_modern_name(module, name)))
        elif op == b"X":
            file.read(unpack("<I", file.read(4))[0])
        elif op in (b"U", b"\x8a"):
            file.read(file.read(1)[0])
        elif op in _FIXED:
            file.read(_FIXED[op])
        elif op not in _STEPS:
            raise UnpicklingError(f"Unsupported operand {op[0]}")


def load(file, *, encoding="ASCII"):
    return Unpickler(file, encoding=encoding).load()
