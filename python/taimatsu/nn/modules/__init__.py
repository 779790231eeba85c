"""All module classes, by the file that defines them (PyTorch's layout: files name classes by these paths)."""
from . import (activation, adaptive, batchnorm, channelshuffle, container, conv, distance, dropout, flatten, fold, instancenorm, linear,
               linear_cross_entropy_options, loss, normalization, padding, pixelshuffle, pooling, rnn, sparse, transformer, upsampling)
from .module import Module

_PARTS = (activation, adaptive, batchnorm, channelshuffle, container, conv, distance, dropout, flatten, fold, instancenorm, linear,
          linear_cross_entropy_options, loss, normalization, padding, pixelshuffle, pooling, rnn, sparse, transformer, upsampling)

__all__ = ["Module"]
for _part in _PARTS:
    for _name in _part.__all__:
        globals()[_name] = getattr(_part, _name)
        __all__.append(_name)
__all__.sort()
del _part, _name
