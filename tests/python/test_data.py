"""torch.utils.data: the orders that PyTorch draws for a seed, batches, workers."""
import collections

import pytest
import taimatsu as torch
from taimatsu.utils.data import (BatchSampler, ChainDataset, ConcatDataset, DataLoader, Dataset, IterableDataset, RandomSampler,
                                 SequentialSampler, StackDataset, Subset, TensorDataset, WeightedRandomSampler, default_collate,
                                 get_worker_info, random_split)


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(7)


def batches(*args, **options):
    return [b.tolist() for b in DataLoader(*args, **options)]


def test_orders_are_pytorchs():
    assert list(RandomSampler(range(8))) == [5, 6, 3, 4, 2, 1, 7, 0]
    torch.manual_seed(7)
    assert list(RandomSampler(range(4), replacement=True, num_samples=6)) == [1, 3, 1, 3, 0, 2]
    torch.manual_seed(7)
    assert [list(s) for s in random_split(range(10), [0.5, 0.5])] == [[5, 0, 3, 4, 1], [7, 9, 6, 8, 2]]
    torch.manual_seed(7)
    assert list(WeightedRandomSampler([0.1, 0.2, 0.7], 5)) == [1, 1, 2, 2, 2]


def test_loader_draws_as_pytorch():
    assert batches(range(7), batch_size=3, shuffle=True) == [[2, 0, 5], [6, 3, 4], [1]]
    torch.manual_seed(7)
    assert batches(range(7), batch_size=3, shuffle=True, drop_last=True) == [[2, 0, 5], [6, 3, 4]]
    assert torch.rand(1).item() == pytest.approx(0.23276156)     # the loader took two numbers from the generator
    own = torch.Generator().manual_seed(3)
    assert batches(range(6), batch_size=2, shuffle=True, generator=own) == [[1, 3], [2, 0], [4, 5]]


def test_lengths_and_plain_order():
    loader = DataLoader(range(7), batch_size=3)
    assert len(loader) == 3
    assert len(DataLoader(range(7), batch_size=3, drop_last=True)) == 2
    assert [b.tolist() for b in loader] == [[0, 1, 2], [3, 4, 5], [6]]
    assert list(DataLoader(range(3), batch_size=None)) == [0, 1, 2]
    assert list(BatchSampler(SequentialSampler(range(5)), 2, False)) == [[0, 1], [2, 3], [4]]


def test_datasets():
    pairs = TensorDataset(torch.arange(6).reshape(3, 2), torch.arange(3))
    assert len(pairs) == 3
    assert pairs[1][0].tolist() == [2, 3]
    both = ConcatDataset([pairs, Subset(pairs, [2])])
    assert len(both) == 4
    assert both[3][1].item() == both[-1][1].item() == 2
    assert StackDataset(a=[1, 2], b=[3, 4])[1] == {"a": 2, "b": 4}
    with pytest.raises(AssertionError, match="Size mismatch between tensors"):
        TensorDataset(torch.ones(2), torch.ones(3))


class Count(IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        info = get_worker_info()
        step, start = (info.num_workers, info.id) if info else (1, 0)
        return iter(range(start, self.n, step))


def test_iterable_datasets():
    assert batches(Count(5), batch_size=2) == [[0, 1], [2, 3], [4]]
    assert list(ChainDataset([Count(2), Count(1)])) == [0, 1, 0]
    assert sorted(x for b in batches(Count(10), batch_size=2, num_workers=2) for x in b) == list(range(10))


class Square(Dataset):
    def __len__(self):
        return 20

    def __getitem__(self, i):
        if i == 99:
            raise KeyError("no such row")
        return torch.tensor([float(i), float(i * i)]), i


def test_workers_give_the_same_batches_in_order():
    def run(workers, **options):
        torch.manual_seed(7)
        return [(x.tolist(), y.tolist()) for x, y in DataLoader(Square(), batch_size=3, shuffle=True, num_workers=workers, **options)]

    assert run(0) == run(2) == run(1, prefetch_factor=1)
    loader = DataLoader(Square(), batch_size=4, num_workers=2, persistent_workers=True)
    assert [y.tolist() for _, y in loader] == [y.tolist() for _, y in loader]


def test_errors_of_workers_are_raised_here():
    with pytest.raises(KeyError, match="Caught KeyError in DataLoader worker process 0"):
        list(DataLoader(Square(), sampler=[0, 99], num_workers=1))


def test_collate():
    Point = collections.namedtuple("Point", "x y")
    out = default_collate([{"a": 1, "b": Point(1.0, torch.ones(2))}, {"a": 2, "b": Point(2.0, torch.zeros(2))}])
    assert out["a"].tolist() == [1, 2]
    assert out["b"].x.dtype == torch.float64
    assert out["b"].y.shape == (2, 2)
    assert default_collate(["x", "y"]) == ["x", "y"]
    with pytest.raises(TypeError, match="default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found <class 'object'>"):
        default_collate([object()])


def test_errors_of_options():
    with pytest.raises(ValueError, match="batch_size should be a positive integer value, but got batch_size=0"):
        DataLoader(range(3), batch_size=0)
    with pytest.raises(ValueError, match="sampler option is mutually exclusive with shuffle"):
        DataLoader(range(3), shuffle=True, sampler=[0])
    with pytest.raises(ValueError, match="num_workers option should be non-negative"):
        DataLoader(range(3), num_workers=-1)
    with pytest.raises(ValueError, match="prefetch_factor option could only be specified in multiprocessing"):
        DataLoader(range(3), prefetch_factor=2)
