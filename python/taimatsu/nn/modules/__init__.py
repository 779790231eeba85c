"""All module classes, by the file that defines them (PyTorch's layout: files name classes by these paths)."""
from .module import Module  # isort: skip
from .linear import *  # noqa: F403
from .activation import *  # noqa: F403
from .container import *  # noqa: F403
from .distance import *  # noqa: F403
from .dropout import *  # noqa: F403
from .flatten import *  # noqa: F403
from .loss import *  # noqa: F403
from .normalization import *  # noqa: F403
from .sparse import *  # noqa: F403

from . import (activation, container, distance, dropout, flatten, linear, loss, normalization, sparse)  # isort: skip

__all__ = sorted(["Module", *(name for part in (activation, container, distance, dropout, flatten, linear, loss, normalization, sparse)
                              for name in part.__all__ if name not in ("LazyModuleMixin",))])
