"""What runs inside a worker process of DataLoader."""
import os
import pickle
import queue
import random
import traceback
from dataclasses import dataclass

from .... import _core as core
from .. import _utils


@dataclass(frozen=True)
class WorkerInfo:
    """What get_worker_info returns inside a worker."""

    id: int
    num_workers: int
    seed: int
    dataset: object
    rng: object = None
    worker_method: str = "multiprocessing"


_worker_info = None


def get_worker_info():
    """The WorkerInfo of this worker process; None in the main process."""
    return _worker_info


class ExceptionWrapper:
    """An exception on its way from a worker to the main process."""

    def __init__(self, error, where):
        self.kind = type(error)
        self.where = where
        self.text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        try:
            pickle.dumps(self.kind)
        except Exception:
            self.kind = RuntimeError

    def reraise(self):
        text = f"Caught {self.kind.__name__} {self.where}.\nOriginal {self.text}"
        if self.kind is KeyError:
            raise KeyError(_Verbatim(text))
        try:
            error = self.kind(text)
        except Exception:
            error = RuntimeError(text)
        raise error


class _Verbatim(str):
    """KeyError shows the repr of its message; this one keeps line breaks."""

    def __repr__(self):
        return str(self)


class _End:
    """A worker's stream has ended."""

    def __init__(self, worker_id):
        self.worker_id = worker_id


class _Resume:
    """A new epoch of persistent workers."""

    def __init__(self, seed):
        self.seed = seed


def _seed_all(seed):
    """Seed everything a dataset may draw from."""
    random.seed(seed)
    core._C.default_generator.manual_seed(seed)
    import sys
    if "numpy" in sys.modules:
        import numpy
        numpy.random.seed(numpy.random.SeedSequence(seed).generate_state(4))


def _dumps(value):
    """``value`` pickled here and now, so that an error is the worker's and can be reported."""
    return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)


def worker_loop(kind, dataset, index_queue, result_queue, auto_collation, collate_fn, drop_last, base_seed, init_fn, worker_id, num_workers,
                parent):
    """Serve (number, indices) from ``index_queue`` until None comes; answers are (number, pickled batch)."""
    global _worker_info
    core.set_num_threads(1)
    seed = base_seed + worker_id
    _seed_all(seed)
    _worker_info = WorkerInfo(worker_id, num_workers, seed, dataset)
    where = f"in DataLoader worker process {worker_id}"
    fetcher = failure = None

    def start():
        return (_utils.fetch._IterableDatasetFetcher if kind else _utils.fetch._MapDatasetFetcher)(
            dataset, auto_collation, collate_fn, drop_last)

    try:
        if init_fn is not None:
            init_fn(worker_id)
        fetcher = start()
    except Exception as error:
        failure = ExceptionWrapper(error, where)
    ended = False
    while True:
        try:
            task = index_queue.get(timeout=5.0)
        except queue.Empty:
            if os.getppid() != parent:
                return
            continue
        if task is None:
            return
        if isinstance(task, _Resume):
            ended, failure = False, None
            try:
                fetcher = start()
            except Exception as error:
                failure = ExceptionWrapper(error, where)
            continue
        if ended:
            continue
        number, indices = task
        try:
            if failure is not None:
                answer, failure = failure, None
            else:
                answer = fetcher.fetch(indices)
            data = _dumps(answer)
        except StopIteration as error:
            if kind:
                data, ended = _dumps(_End(worker_id)), True
            else:
                data = _dumps(ExceptionWrapper(error, where))
        except Exception as error:
            data = _dumps(ExceptionWrapper(error, where))
        result_queue.put((number, data))
