"""Mixed precision. Here is gradient scaling; autocast comes with the layer that casts below the operators."""
from .grad_scaler import GradScaler

__all__ = ["GradScaler"]
