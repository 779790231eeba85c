"""Storages as Python sees them, and the legacy class names (FloatStorage, ...) that files carry."""
from . import _core as core
from ._core import _C

__all__ = ["TypedStorage", "UntypedStorage"]

UntypedStorage = _C.UntypedStorage

# Legacy class name -> dtype. Other dtypes are saved with UntypedStorage and a dtype beside it.
_CLASS_DTYPES = {"DoubleStorage": "float64", "FloatStorage": "float32", "HalfStorage": "float16", "BFloat16Storage": "bfloat16",
                 "LongStorage": "int64", "IntStorage": "int32", "ShortStorage": "int16", "CharStorage": "int8", "ByteStorage": "uint8",
                 "BoolStorage": "bool", "ComplexDoubleStorage": "complex128", "ComplexFloatStorage": "complex64"}
_ROOT = __name__.partition(".")[0]


def is_storage(obj, /):
    """Whether ``obj`` is a storage."""
    return isinstance(obj, (UntypedStorage, TypedStorage))


def identity(storage):
    """A number that two objects have in common when they are the same storage."""
    number = storage._cdata
    return number() if callable(number) else number


def byte_view(storage):
    """The bytes of a CPU storage as a writable memoryview that shares its memory."""
    n = storage.nbytes()
    if n == 0:
        return memoryview(bytearray())
    try:
        return memoryview(storage).cast("B")
    except TypeError:
        import ctypes
        array = (ctypes.c_ubyte * n).from_address(storage.data_ptr())
        array.owner = storage       # lives as long as the view
        return memoryview(array).cast("B")


class TypedStorage:
    """A storage seen as elements of one dtype; what legacy programs and files use."""

    dtype = None        # set by the legacy classes

    def __new__(cls, *args, wrap_storage=None, dtype=None, device=None, _internal=False):
        made = object.__new__(cls)
        made.dtype = dtype if cls.dtype is None else cls.dtype
        if made.dtype is None:
            raise RuntimeError("dtype must be specified for TypedStorage")
        if wrap_storage is None:
            made._untyped_storage = cls._allocate(args, made.dtype, device)
        else:
            made._untyped_storage = wrap_storage
        return made

    @staticmethod
    def _allocate(args, dtype, device):
        if args and not isinstance(args[0], int):
            return core.tensor(list(args[0]), dtype=dtype, device=device).untyped_storage()
        return core.empty(args[0] if args else 0, dtype=dtype, device=device).untyped_storage()

    def _tensor(self):
        return core.empty(0, dtype=self.dtype, device=self._untyped_storage.device).set_(self._untyped_storage)

    def untyped(self):
        return self._untyped_storage

    @property
    def device(self):
        return self._untyped_storage.device

    @property
    def is_cuda(self):
        return False

    def element_size(self):
        return self.dtype.itemsize

    def nbytes(self):
        return self._untyped_storage.nbytes()

    def size(self):
        return len(self)

    _size = size

    def __len__(self):
        return self._untyped_storage.nbytes() // self.dtype.itemsize

    def data_ptr(self):
        return self._untyped_storage.data_ptr()

    _data_ptr = data_ptr

    def __getitem__(self, i):
        part = self._tensor()[i]
        return part.tolist() if isinstance(i, slice) else part.item()

    def __setitem__(self, i, value):
        self._tensor()[i] = value

    def __iter__(self):
        return iter(self.tolist())

    def tolist(self):
        return self._tensor().tolist()

    def fill_(self, value):
        self._tensor().fill_(value)
        return self

    def copy_(self, source, non_blocking=None):
        self._tensor().copy_(source._tensor())
        return self

    def clone(self):
        return type(self)(wrap_storage=self._untyped_storage.clone(), dtype=self.dtype, _internal=True)

    def cpu(self):
        return type(self)(wrap_storage=self._untyped_storage.cpu(), dtype=self.dtype, _internal=True)

    def type(self, dtype=None, non_blocking=False):
        if dtype is None:
            return "torch." + self._pickle_storage_type()
        raise RuntimeError("TypedStorage.type(dtype) is not supported")

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = self.clone()
        return memo[id(self)]

    def __eq__(self, other):
        return isinstance(other, TypedStorage) and self.data_ptr() == other.data_ptr() and self.dtype == other.dtype

    __hash__ = None

    def __repr__(self):
        items = "".join(f" {v}\n" for v in self.tolist())
        return f"{items}[{core.typename(self)}(dtype={self.dtype}, device={self.device}) of size {len(self)}]"

    def _pickle_storage_type(self):
        return class_name(self.dtype)

    def __reduce__(self):
        return _rebuild_typed, (self._pickle_storage_type(), bytes(byte_view(self._untyped_storage)))


def _rebuild_typed(name, data):
    made = by_name(name)(len(data) // by_name(name).dtype.itemsize)
    byte_view(made._untyped_storage)[:] = data
    return made


def class_name(dtype):
    """The legacy class name for ``dtype``."""
    for name, of in _CLASS_DTYPES.items():
        if getattr(core, of) is dtype:
            return name
    raise KeyError(dtype)


def has_class(dtype):
    """Whether files hold storages of ``dtype`` under a legacy class name."""
    return any(getattr(core, of) is dtype for of in _CLASS_DTYPES.values())


def by_name(name):
    """The class with this legacy name; KeyError if there is none."""
    if name == "UntypedStorage":
        return UntypedStorage
    if name == "TypedStorage":
        return TypedStorage
    if name not in _CLASS_DTYPES:
        raise KeyError(name)
    if name not in globals():
        globals()[name] = type(name, (TypedStorage,), {"dtype": getattr(core, _CLASS_DTYPES[name]), "__module__": _ROOT})
    return globals()[name]


def __getattr__(name):
    if name == "_LegacyStorage":
        return TypedStorage
    try:
        return by_name(name)
    except KeyError:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'") from None
