"""Names for annotations."""
import builtins

from ._core import Size, Tensor, device, dtype, layout

_int, _float, _bool = builtins.int, builtins.float, builtins.bool
_dtype, _device, _layout = dtype, device, layout
_size = Size | list[_int] | tuple[_int, ...]
Number = _int | _float | _bool
Device = device | str | _int | None
DeviceLikeType = device | str | _int
_TensorOrTensors = Tensor | tuple
FileLike = object
