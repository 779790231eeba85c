"""Options of the chunked linear cross entropy."""
import dataclasses

from ... import _core as core

__all__ = ["LinearCrossEntropyOptions"]

_POLICIES = ("auto", "accurate", "balanced", "compact")


def _valid_method(method):
    if method in (None, "auto"):
        return True
    name, colon, factor = method.partition(":")
    return name == "aspect_ratio" and (not colon or (factor.isdigit() and int(factor) > 0))


@dataclasses.dataclass(slots=True, frozen=True)
class LinearCrossEntropyOptions:
    """How linear_cross_entropy goes through the rows chunk by chunk, and in which precision it adds up.

    ``batch_chunk_size`` rows per chunk, or ``chunking_method`` to choose it ("aspect_ratio[:N]": logits of a chunk as large as the input);
    ``acc_policy`` and ``acc_dtype`` for sums; ``allow_retain_graph`` keeps the stored gradients for a second backward.
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: object = None

    def __post_init__(self):
        if self.acc_policy not in _POLICIES:
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r}")
        if not _valid_method(self.chunking_method):
            raise ValueError(f"invalid chunking_method: {self.chunking_method!r}")
        size = self.batch_chunk_size
        if size is not None and not (isinstance(size, int) and size > 0):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {size!r}")
        if self.acc_dtype not in (None, core.float16, core.bfloat16, core.float32, core.float64):
            raise ValueError("acc_dtype must be one of {None, torch.float16, torch.bfloat16, torch.float32, torch.float64}, got "
                             f"{self.acc_dtype!r}. Pass acc_dtype=None to let the op pick automatically.")

    @staticmethod
    def _by_aspect_ratio(method, rows, in_features, classes):
        factor = int(method.partition(":")[2] or 1)
        target = -(-rows // -(-classes // in_features))
        return min((1 << max(target - 1, 0).bit_length()) // factor, rows)

    def _adjust(self, num_batches, in_features, num_classes, dtype, device=None):
        """These options with everything decided for one call."""
        low = dtype in (core.float16, core.bfloat16)
        policy, method, given = self.acc_policy, self.chunking_method, self.batch_chunk_size
        if policy == "auto":
            policy = "accurate" if low else "compact"
        if method == "auto":
            method = None if given is not None else "aspect_ratio" if low else "aspect_ratio:2"
        size = num_batches if given is None else min(given, num_batches)
        if method is not None:
            size = self._by_aspect_ratio(method, num_batches, in_features, num_classes)
            if given is not None and given != size:
                raise ValueError(f"batch_chunk_size (={given}) and chunking_method ('{method}') give different chunk sizes ({given} vs {size}); "
                                 "pass only one.")
        acc = self.acc_dtype
        if acc is None:
            acc = core.float32 if self.acc_policy == "auto" and low else dtype
        return dataclasses.replace(self, acc_policy=policy, chunking_method=method, batch_chunk_size=max(1, size), acc_dtype=acc)
