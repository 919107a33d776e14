"""Measure a data worker from inside: the time of each batch, and where in the dataset it is spent.

A worker is a separate process, forked with our hooks or started afresh with them. It writes a
journal of its own (collect/journal.py) below `RUN/workers/`, in a folder of the process that it
works for. That process records which loader its workers belong to, so that ingest finds them.
"""

import functools
import inspect
import os
import platform
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from strobe.collect.faults import fault_text
from strobe.collect.host.stack_samples import StackSampler
from strobe.collect.journal import Journal
from strobe.collect.notices import notice
from strobe.collect.recorder import Recorder
from strobe.collect.torch.batch_timing import Timing
from strobe.model.journal import DATA_WORKERS, WORKERS_DIR, Figure, Mark

Undo = Callable[[], None]
_BATCH = int(Mark.BATCH)

# About 300 batches: a worker may live for one epoch of a few.
_SEGMENT_BYTES = 1 << 16
# Without persistent_workers every epoch starts new ones. Those of the first epochs are enough, and
# a thousand epochs must not fill the disk.
_MOST_WORKERS = 256

# The depth and width to which a batch is searched for tensors: its size must cost almost nothing.
_DEEP, _WIDE = 3, 64


# The arguments of torch's loop that are used, by name.
_NEEDED = ("index_queue", "data_queue", "worker_id")

# Created by the first worker that cannot be measured; only that one prints a line.
_FAULT_REPORTED = "fault-reported"


def workers_folder(run: Path, parent: int) -> Path:
    """The folder that the workers of a process write to."""
    return run / WORKERS_DIR / f"{platform.node()}-{parent}"


def _folder_of_this_process(recorder: Recorder) -> Path | None:
    """None in a thread of the training process."""
    import multiprocessing

    parent = multiprocessing.parent_process()
    return None if parent is None else workers_folder(recorder.run, parent.pid or os.getppid())


def measure_worker(recorder: Recorder, timings: dict[int, Timing], home: Any) -> Undo:
    """Wrap torch's worker loop. It is pickled by name, so a new worker process gets the loop that
    its process has under that name: with our hooks, or without.

    Raises LookupError if the loop of this torch takes other arguments. Their positions differ
    between releases, and so does the form of the dataset, which is not needed here.
    """
    original = home._worker_loop
    signature = inspect.signature(original)
    missing = [name for name in _NEEDED if name not in signature.parameters]
    if missing:
        raise LookupError(f"_worker_loop has no argument {' or '.join(missing)}")

    @functools.wraps(original)
    def _worker_loop(*args: Any, **kwargs: Any) -> Any:
        worker = None
        try:
            if not recorder.is_off:
                given = signature.bind(*args, **kwargs)
                worker = Worker.of_this_process(recorder, timings, given.arguments)
            if worker is not None:
                given.arguments.update(worker.replaced)
                args, kwargs = given.args, given.kwargs
        except Exception as error:
            worker = None
            _report_fault(recorder, error)
        try:
            return original(*args, **kwargs)
        finally:
            if worker is not None:
                worker.close()

    home._worker_loop = _worker_loop
    return lambda: setattr(home, "_worker_loop", original)


class Worker:
    """One worker, and what it writes."""

    def __init__(self, recorder: Recorder, raw: Path, given: dict[str, Any]) -> None:
        self._recorder = recorder
        self._sends: deque[int] = deque()
        self._sent_cpu_ns = 0
        self.timing = Timing()
        self.waiting_since_ns = time.monotonic_ns()
        self.idle_ns = 0
        self.order: Any = None
        self.journal = Journal(segment_bytes=_SEGMENT_BYTES)
        self.journal.on_disk_error = self._disk_refused
        self.journal.open(raw)
        self._is_done = False
        self.journal.fact(
            type="worker", pid=os.getpid(), id=given["worker_id"],
            monotonic_ns=time.monotonic_ns(),
        )  # fmt: skip
        results = given["data_queue"]
        self.replaced = {
            "index_queue": _Orders(given["index_queue"], self),
            "data_queue": _Results(results, self),
        }
        send = getattr(results, "_send_bytes", None)
        if send is not None and getattr(results, "_thread", None) is None:
            results._send_bytes = self._sending(send)
        self._sampler: StackSampler | None = None
        if getattr(recorder.options, "sample_stacks", True):
            self._sampler = StackSampler(self.journal, self._guarded)
            self._sampler.start()

    @classmethod
    def of_this_process(
        cls, recorder: Recorder, timings: dict[int, Timing], given: dict[str, Any]
    ) -> "Worker | None":
        folder = _folder_of_this_process(recorder)
        if folder is None:
            return None
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if len(os.listdir(folder)) >= _MOST_WORKERS:
                return None
            raw = folder / f"{os.getpid()}-{time.monotonic_ns()}"
            raw.mkdir()
            worker = cls(recorder, raw, given)
        except OSError as error:
            recorder.say(notice("no-worker", reason=error.strerror or error))
            return None
        timings[threading.get_ident()] = worker.timing
        return worker

    # Called by the queues between the worker and torch's own; none of them raises.

    def ordered(self, order: Any) -> None:
        try:
            self.timing.look_anyway()
            self.timing.begin()
            self.idle_ns = self.timing.began_ns - self.waiting_since_ns
            self.order = order
        except Exception as error:
            self._broke(error)

    def made(self, result: Any) -> None:
        """A batch, an exception or the end of the data is put into the queue."""
        self._sends.append(0)
        if self._is_done:
            return
        try:
            if self.order is not None and _is_batch(result[1]) and self.timing.began_ns:
                self.timing.end()
                self._sends[-1] = self.timing.began_ns
                self._mark_batch(result[0], result[1])
        except Exception as error:
            self._broke(error)

    def handed_over(self) -> None:
        self.order = None
        self.waiting_since_ns = time.monotonic_ns()

    def _mark_batch(self, number: Any, batch: Any) -> None:
        mark, began_ns = self.journal.mark, self.timing.began_ns
        mark(_BATCH, Figure.NUMBER, number if isinstance(number, int) else -1, began_ns)
        mark(_BATCH, Figure.IDLE_NS, self.idle_ns, began_ns)
        for figure, value in self.timing.figures():
            mark(_BATCH, figure, value, began_ns)
        items = self.order[1] if isinstance(self.order, tuple) and len(self.order) == 2 else None
        if isinstance(items, list | tuple):
            mark(_BATCH, Figure.ITEMS, len(items), began_ns)
        size = bytes_of(batch)
        if size:
            mark(_BATCH, Figure.BYTES, size, began_ns)

    def _sending(self, send: Callable[..., None]) -> Callable[..., None]:
        """Sending means pickling and writing, on a thread of its own, so its cost is its CPU time.
        Waiting for a full pipe costs nothing: then there are enough batches.
        """

        def send_bytes(*args: Any, **kwargs: Any) -> None:
            send(*args, **kwargs)
            try:
                now_ns = time.thread_time_ns()
                cost_ns, self._sent_cpu_ns = now_ns - self._sent_cpu_ns, now_ns
                began_ns = self._sends.popleft() if self._sends else 0
                if began_ns and not self._is_done:
                    self.journal.mark(_BATCH, Figure.SEND_NS, cost_ns, began_ns)
            except Exception as error:
                self._broke(error)

        return send_bytes

    def close(self) -> None:
        self._is_done = True
        try:
            if self._sampler is not None:
                self._sampler.stop()
            self.journal.close()
        except Exception as error:
            self._broke(error)

    def _guarded(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(*args: Any) -> Any:
            try:
                return function(*args)
            except Exception as error:
                self._broke(error)

        return guarded

    def _disk_refused(self, error: OSError) -> None:
        self._is_done = True
        self.journal.hush()
        self._recorder.say(notice("worker-stopped", reason=error.strerror or error))

    def _broke(self, error: Exception) -> None:
        if not self._is_done:
            self._is_done = True
            _report_fault(self._recorder, error, self.journal)
            self.journal.hush()


def _report_fault(recorder: Recorder, error: Exception, journal: Journal | None = None) -> None:
    """Report an error of ours in this worker: the worker is no longer measured, but recording goes
    on.

    It is written to the worker's journal, and from there gets into the table `problems`.
    """
    what = notice("worker-fault", reason=fault_text(error))
    try:
        if journal is None:
            folder = _folder_of_this_process(recorder)
            if folder is None:
                return
            raw = folder / f"{os.getpid()}-{time.monotonic_ns()}"
            raw.mkdir(parents=True)
            journal = Journal(segment_bytes=_SEGMENT_BYTES)
            journal.open(raw)
        journal.fact(type="problem", source=DATA_WORKERS, what=what)
        with open(recorder.run / WORKERS_DIR / _FAULT_REPORTED, "x"):
            recorder.say(notice("training-continues", what=what))
    except (OSError, ValueError):  # reported before, or there is nowhere to report it
        return


class _Orders:
    """The queue from which a worker takes its requests."""

    def __init__(self, queue: Any, worker: Worker) -> None:
        self._queue, self._worker = queue, worker

    def get(self, *args: Any, **kwargs: Any) -> Any:
        order = self._queue.get(*args, **kwargs)
        self._worker.ordered(order)
        return order

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)


class _Results:
    """The queue into which a worker puts its batches."""

    def __init__(self, queue: Any, worker: Worker) -> None:
        self._queue, self._worker = queue, worker

    def put(self, result: Any, *args: Any, **kwargs: Any) -> None:
        self._worker.made(result)
        self._queue.put(result, *args, **kwargs)
        self._worker.handed_over()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)


def _is_batch(result: Any) -> bool:
    from torch._utils import ExceptionWrapper
    from torch.utils.data._utils.worker import _IterableDatasetStopIteration

    return result is not None and not isinstance(
        result, ExceptionWrapper | _IterableDatasetStopIteration
    )


def bytes_of(batch: Any, depth: int = _DEEP) -> int:
    """Bytes of the tensors and arrays in a batch, as far as they are easily found."""
    size = getattr(batch, "nbytes", None)
    if isinstance(size, int):
        return size
    if not depth or not isinstance(batch, list | tuple | dict):
        return 0
    parts = list(batch.values()) if isinstance(batch, dict) else batch
    return sum(bytes_of(part, depth - 1) for part in parts[:_WIDE])
