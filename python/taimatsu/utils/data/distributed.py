"""The sampler that deals a dataset out to several processes."""
import math

from ... import _core as core
from .sampler import Sampler

__all__ = ["DistributedSampler"]


def _process_group(num_replicas, rank):
    if num_replicas is not None and rank is not None:
        return num_replicas, rank
    from ... import distributed as dist
    if not dist.is_available():
        raise RuntimeError("Requires distributed package to be available")
    return (dist.get_world_size() if num_replicas is None else num_replicas), (dist.get_rank() if rank is None else rank)


class DistributedSampler(Sampler):
    """Every ``num_replicas``-th index from ``rank`` on, of a permutation that all processes share (``set_epoch`` changes it)."""

    def __init__(self, dataset, num_replicas=None, rank=None, shuffle=True, seed=0, drop_last=False):
        num_replicas, rank = _process_group(num_replicas, rank)
        if rank >= num_replicas or rank < 0:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        n = len(dataset)
        if drop_last and n % num_replicas != 0:
            self.num_samples = math.ceil((n - num_replicas) / num_replicas)
        else:
            self.num_samples = math.ceil(n / num_replicas)
        self.total_size = self.num_samples * num_replicas
        self.shuffle = shuffle
        self.seed = seed

    def __iter__(self):
        n = len(self.dataset)
        if self.shuffle:
            generator = core.Generator()
            generator.manual_seed(self.seed + self.epoch)
            indices = core.randperm(n, generator=generator).tolist()
        else:
            indices = list(range(n))
        if self.drop_last:
            indices = indices[:self.total_size]
        else:
            missing = self.total_size - n
            indices += (indices * math.ceil(missing / max(n, 1)))[:missing]
        if len(indices) != self.total_size:
            raise AssertionError(f"Number of indices ({len(indices)}) does not match total_size ({self.total_size})")
        return iter(indices[self.rank:self.total_size:self.num_replicas])

    def __len__(self):
        return self.num_samples

    def set_epoch(self, epoch):
        """Make the next iteration use another permutation."""
        self.epoch = epoch
