"""DataLoader: batches of a dataset, made in this process or in worker processes."""
import math
import os
import pickle
import queue
import threading
import warnings
from typing import Generic, TypeVar

from ... import _core as core
from . import _utils
from .dataset import IterableDataset
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

__all__ = ["DataLoader", "get_worker_info", "default_collate", "default_convert"]

_T_co = TypeVar("_T_co", covariant=True)

default_collate = _utils.collate.default_collate
default_convert = _utils.collate.default_convert
get_worker_info = _utils.worker.get_worker_info


class _DatasetKind:
    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(kind, dataset, auto_collation, collate_fn, drop_last):
        make = _utils.fetch._IterableDatasetFetcher if kind else _utils.fetch._MapDatasetFetcher
        return make(dataset, auto_collation, collate_fn, drop_last)


class _InfiniteConstantSampler(Sampler):
    """None, for ever: the "indices" of a stream."""

    def __iter__(self):
        while True:
            yield None


class DataLoader(Generic[_T_co]):
    """Iterates over batches of ``dataset``; see PyTorch's documentation for the arguments, which are the same."""

    __initialized = False

    def __init__(self, dataset, batch_size=1, shuffle=None, sampler=None, batch_sampler=None, num_workers=0, collate_fn=None,
                 pin_memory=False, drop_last=False, timeout=0, worker_init_fn=None, multiprocessing_context=None, generator=None, *,
                 prefetch_factor=None, persistent_workers=False, pin_memory_device="", in_order=True):
        if num_workers < 0:
            raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
        if timeout < 0:
            raise ValueError("timeout option should be non-negative")
        if num_workers == 0 and prefetch_factor is not None:
            raise ValueError("prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 to enable multiprocessing, "
                             "otherwise set prefetch_factor to None.")
        if prefetch_factor is not None and prefetch_factor < 0:
            raise ValueError("prefetch_factor option should be non-negative")
        if persistent_workers and num_workers == 0:
            raise ValueError("persistent_workers option needs num_workers > 0")
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers > 0 and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        streams = isinstance(dataset, IterableDataset)
        self._dataset_kind = _DatasetKind.Iterable if streams else _DatasetKind.Map
        if streams:
            self._check_stream_options(shuffle, sampler, batch_sampler)
        shuffle = bool(shuffle)
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError("batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last")
            batch_size, drop_last = None, False
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        if sampler is None:
            if streams:
                sampler = _InfiniteConstantSampler()
            else:
                sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        self.collate_fn = collate_fn or (default_collate if self._auto_collation else default_convert)
        self.persistent_workers = persistent_workers
        self.__initialized = True
        self._IterableDataset_len_called = None
        self._iterator = None
        self.check_worker_number_rationality()

    @staticmethod
    def _check_stream_options(shuffle, sampler, batch_sampler):
        for name, value, bad in (("shuffle", shuffle, shuffle not in {False, None}), ("sampler", sampler, sampler is not None),
                                 ("batch_sampler", batch_sampler, batch_sampler is not None)):
            if bad:
                raise ValueError(f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}")

    @property
    def multiprocessing_context(self):
        return self.__multiprocessing_context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context):
        if context is not None:
            import multiprocessing
            if self.num_workers == 0:
                raise ValueError("multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got "
                                 f"num_workers={self.num_workers}")
            if isinstance(context, str):
                valid = multiprocessing.get_all_start_methods()
                if context not in valid:
                    raise ValueError(f"multiprocessing_context option should specify a valid start method in {valid!r}, but got "
                                     f"multiprocessing_context={context!r}")
                context = multiprocessing.get_context(context)
            if not isinstance(context, multiprocessing.context.BaseContext):
                raise TypeError("multiprocessing_context option should be a valid context object or a string specifying the start method, but "
                                f"got multiprocessing_context={context}")
        self.__multiprocessing_context = context

    def __setattr__(self, attr, val):
        if self.__initialized and attr in ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"):
            raise ValueError(f"{attr} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(attr, val)

    @property
    def _auto_collation(self):
        return self.batch_sampler is not None

    @property
    def _index_sampler(self):
        return self.batch_sampler if self._auto_collation else self.sampler

    def _get_iterator(self):
        return _SingleProcessDataLoaderIter(self) if self.num_workers == 0 else _MultiProcessingDataLoaderIter(self)

    def __iter__(self):
        if not (self.persistent_workers and self.num_workers > 0):
            return self._get_iterator()
        if self._iterator is None:
            self._iterator = self._get_iterator()
        else:
            self._iterator._reset(self)
        return self._iterator

    def __len__(self):
        if self._dataset_kind == _DatasetKind.Map:
            return len(self._index_sampler)
        length = self._IterableDataset_len_called = len(self.dataset)
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else math.ceil(length / self.batch_size)

    def check_worker_number_rationality(self):
        """Warn when there are more workers than processors."""
        if not self.num_workers:
            return
        available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        if available is None or self.num_workers > available:
            checked = "" if hasattr(os, "sched_getaffinity") else " (`cpuset` is not taken into account)"
            advice = (f"Our suggested max number of worker in current system is {available}{checked}, which is smaller than what this "
                      "DataLoader is going to create." if available is not None
                      else "DataLoader is not able to compute a suggested max number of worker in current system.")
            warnings.warn(f"This DataLoader will create {self.num_workers} worker processes in total. {advice} Please be aware that excessive "
                          "worker creation might get DataLoader running slow or even freeze, lower the worker number to avoid potential "
                          "slowness/freeze if necessary.", stacklevel=3)


class _BaseDataLoaderIter:
    def __init__(self, loader):
        self._dataset = loader.dataset
        self._dataset_kind = loader._dataset_kind
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        self._auto_collation = loader._auto_collation
        self._drop_last = loader.drop_last
        self._index_sampler = loader._index_sampler
        self._num_workers = loader.num_workers
        if loader.pin_memory:
            warnings.warn("'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be used.",
                          stacklevel=3)
        self._timeout = loader.timeout
        self._collate_fn = loader.collate_fn
        self._sampler_iter = iter(self._index_sampler)
        self._base_seed = core.empty((), dtype=core.int64).random_(generator=loader.generator).item()
        self._persistent_workers = loader.persistent_workers
        self._num_yielded = 0

    def __iter__(self):
        return self

    def _reset(self, loader, first_iter=False):
        self._sampler_iter = iter(self._index_sampler)
        self._num_yielded = 0
        self._IterableDataset_len_called = loader._IterableDataset_len_called

    def _next_index(self):
        return next(self._sampler_iter)

    def __next__(self):
        data = self._next_data()
        self._num_yielded += 1
        promised = self._IterableDataset_len_called
        if self._dataset_kind == _DatasetKind.Iterable and promised is not None and self._num_yielded > promised:
            text = (f"Length of IterableDataset {self._dataset} was reported to be {promised}(when accessing len(dataloader)), but "
                    f"{self._num_yielded} samples have been fetched. ")
            if self._num_workers > 0:
                text += ("For multiprocessing data-loading, this could be caused by not properly configuring the IterableDataset replica at "
                         "each worker. Please see https://pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset for examples.")
            warnings.warn(text, stacklevel=2)
        return data

    def __len__(self):
        return len(self._index_sampler)

    def __getstate__(self):
        raise NotImplementedError("{} cannot be pickled", type(self).__name__)


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Batches made here, one when asked for."""

    def __init__(self, loader):
        super().__init__(loader)
        if self._timeout != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0")
        self._dataset_fetcher = _DatasetKind.create_fetcher(self._dataset_kind, self._dataset, self._auto_collation, self._collate_fn,
                                                            self._drop_last)

    def _next_data(self):
        return self._dataset_fetcher.fetch(self._next_index())


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Batches made by worker processes. Tasks are numbered and dealt round robin; results are handed out in that order."""

    def __init__(self, loader):
        super().__init__(loader)
        import multiprocessing
        context = loader.multiprocessing_context or multiprocessing
        self._prefetch_factor = loader.prefetch_factor
        self._in_order = loader.in_order
        self._results = context.Queue()
        self._index_queues, self._workers = [], []
        for i in range(self._num_workers):
            tasks = context.Queue()
            tasks.cancel_join_thread()
            worker = context.Process(
                target=_utils.worker.worker_loop,
                args=(self._dataset_kind, self._dataset, tasks, self._results, self._auto_collation, self._collate_fn, self._drop_last,
                      self._base_seed, loader.worker_init_fn, i, self._num_workers, os.getpid()), daemon=True)
            worker.start()
            self._index_queues.append(tasks)
            self._workers.append(worker)
        self._closed = False
        self._reset(loader, first_iter=True)

    def _reset(self, loader, first_iter=False):
        if not first_iter:
            super()._reset(loader)
            self._drain()
            self._base_seed = core.empty((), dtype=core.int64).random_(generator=loader.generator).item()
            for tasks in self._index_queues:
                tasks.put(_utils.worker._Resume(self._base_seed))
        self._sent = self._received = 0
        self._owner, self._arrived = {}, {}
        self._alive = [True] * self._num_workers
        self._turn = 0
        for _ in range(self._prefetch_factor * self._num_workers):
            self._send()

    def _drain(self):
        """Take the answers of an epoch that was left early."""
        waiting = [n for n in self._owner if n not in self._arrived]
        while waiting:
            number, _ = self._receive()
            if number in waiting:
                waiting.remove(number)

    def _send(self):
        """Give the next indices to the next worker that still has data."""
        for _ in range(self._num_workers):
            worker = self._turn
            self._turn = (self._turn + 1) % self._num_workers
            if self._alive[worker]:
                break
        else:
            return
        try:
            indices = self._next_index()
        except StopIteration:
            return
        self._index_queues[worker].put((self._sent, indices))
        self._owner[self._sent] = worker
        self._sent += 1

    def _receive(self):
        waited = 0.0
        while True:
            try:
                return self._results.get(timeout=min(self._timeout, 5.0) if self._timeout else 5.0)
            except queue.Empty:
                waited += min(self._timeout, 5.0) if self._timeout else 5.0
                dead = [w.pid for i, w in enumerate(self._workers) if not w.is_alive()]
                if dead:
                    self._close()
                    pids = ", ".join(map(str, dead))
                    raise RuntimeError(f"DataLoader worker (pid(s) {pids}) exited unexpectedly") from None
                if self._timeout and waited >= self._timeout:
                    raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds") from None

    def _next_data(self):
        while True:
            while self._received < self._sent and self._received not in self._owner:
                self._received += 1         # a task of a worker whose stream has ended, or one handed out early
            if self._received >= self._sent:
                if not self._persistent_workers:
                    self._close()
                raise StopIteration
            number = self._received if self._in_order else next(iter(self._arrived), None)
            if number is None or number not in self._arrived:
                number, data = self._receive()
                if number not in self._owner:
                    continue
                value = pickle.loads(data)
                if isinstance(value, _utils.worker._End):
                    self._end_of(value.worker_id)
                    continue
                self._arrived[number] = value
                if self._in_order and number != self._received:
                    continue
            value = self._arrived.pop(number)
            del self._owner[number]
            self._send()
            if isinstance(value, _utils.worker.ExceptionWrapper):
                value.reraise()
            return value

    def _end_of(self, worker):
        """A worker's stream has ended: its open tasks will never be answered."""
        self._alive[worker] = False
        for number in [n for n, w in self._owner.items() if w == worker and n not in self._arrived]:
            del self._owner[number]
        self._send()

    def _close(self):
        if self._closed:
            return
        self._closed = True
        for tasks in self._index_queues:
            try:
                tasks.put(None)
            except (OSError, ValueError):
                pass
        for worker in self._workers:
            worker.join(timeout=1.0)
            if worker.is_alive():
                worker.terminate()
        for q in (*self._index_queues, self._results):
            q.cancel_join_thread()
            q.close()

    def __del__(self):
        if threading is not None and hasattr(self, "_closed"):
            self._close()
