"""What PyTorch's data loaders do: which there are, how long the loop waits, how full the queues
are.

Nothing of ours is between a loader and the user's dataset, so that exceptions have their usual
traceback. Times are read when torch looks up its fetcher and its collate function, which are turned
into properties for that. torch/data_worker.py measures inside the processes of a loader.
"""

import contextlib
import functools
import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from strobe.collect.places import Line, keep_lines
from strobe.collect.torch.batch_timing import Timing
from strobe.collect.torch.data_settings import settings_of
from strobe.collect.torch.data_worker import measure_worker, workers_folder
from strobe.collect.until_deleted import UntilDeleted
from strobe.model.journal import (
    BATCH_LOADER_SHIFT,
    DATA_WORKERS,
    NO_CORE_COUNTER,
    QUEUE_CAPACITY_SHIFT,
    Mark,
)

if TYPE_CHECKING:
    from strobe.collect.torch.hooks import TorchHooks

Undo = Callable[[], None]
_get_ident = threading.get_ident

# Plain numbers: looking up a member of an enum costs as much as writing the mark.
_DATA_ASKED = int(Mark.DATA_ASKED)
_DATA_CAME = int(Mark.DATA_CAME)
_LOADER_BEGAN = int(Mark.LOADER_BEGAN)
_LOADER_STARTED = int(Mark.LOADER_STARTED)
_QUEUE = int(Mark.QUEUE)
_BATCH = int(Mark.BATCH)
_COUNTER = int(Mark.COUNTER)

# Reading the length of a queue takes half a microsecond. If there are more workers than this, this
# many are read at every step, in turn.
_ASKED_AT_ONCE = 16


class Queue(NamedTuple):
    ref: int  # of its name
    queue: Any
    capacity: int


class Known(NamedTuple):
    """What is known about an iterator of a loader; it does not keep it alive."""

    ref: int  # names it in marks
    number: int
    ready: Queue | None  # batches that workers have built
    pinned: Queue | None  # the part of those in pinned memory
    orders: tuple[Queue, ...]  # one for each worker
    taking: tuple[int, int]  # names of the costs of a wait: CPU time, and time without a core
    no_core: int  # name of the total time that the thread was without a core


class DataLoaders:
    """The loaders of this process."""

    def __init__(self, hooks: "TorchHooks") -> None:
        self._hooks = hooks
        # The line that created a loader; the number of a loader or of its iterator, and its name.
        self._lines = UntilDeleted[Line | None]()
        self._numbers = UntilDeleted[tuple[int, str]]()
        # Loaders created by the same line with the same settings, such as one per epoch, count as
        # one.
        self._by_settings: dict[str, tuple[int, str]] = {}
        # By thread: the timing of the batch that it is building.
        self.timings: dict[int, Timing] = {}
        self._turn = 0
        # Why workers cannot be measured in this release of torch; empty if they can.
        self._workers_unseen = ""

    def install(self) -> list[Undo]:
        from torch.utils.data import _utils, dataloader

        recorder = self._hooks.recorder
        tried = functools.partial(recorder.unseen.tried, "data loader")
        return [
            keep_lines(dataloader.DataLoader, self._lines, self._hooks.broke),
            self._wrap_iter(dataloader.DataLoader),
            *tried("waits for data",
                   lambda: wrap_next(self._hooks, dataloader._BaseDataLoaderIter)),
            *tried("fetching batches in the training process",
                   lambda: self._watch(dataloader._SingleProcessDataLoaderIter,
                                       "_dataset_fetcher", Timing.begin)),
            *tried("collating batches",
                   lambda: self._watch(_utils.fetch._BaseDatasetFetcher,
                                       "collate_fn", Timing.collate)),
            *self._measure_workers(_utils),
            self._forget_workers,
        ]  # fmt: skip

    def _measure_workers(self, utils: Any) -> list[Undo]:
        recorder = self._hooks.recorder
        try:
            return [measure_worker(recorder, self.timings, utils.worker)]
        except Exception as error:
            why = recorder.unseen.add(DATA_WORKERS, "the inside of data workers", error)
            self._workers_unseen = why
            return []

    def after_fork_in_child(self) -> None:
        self._numbers.clear()  # they belong to the parent's journal
        self._by_settings.clear()
        self.timings.clear()

    def _wrap_iter(self, loader_class: Any) -> Undo:
        """Creating an iterator starts the workers, or the dataset's own iterator."""
        hooks, original = self._hooks, loader_class.__iter__

        @functools.wraps(original)
        def __iter__(loader: Any) -> Any:
            iterator = None
            try:
                thread = _get_ident()
                before = hooks.inside.get(thread)
                hooks.inside[thread] = "data"
                named = self._number(loader)
                ref = hooks.journal.string("loader", f"{named[1]}, starting")
                hooks.mark(_LOADER_BEGAN, ref)
            except Exception as error:
                hooks.broke("loader_began", error)
            try:
                iterator = original(loader)
                return iterator
            finally:
                try:
                    hooks.mark(_LOADER_STARTED, ref)
                    if before is None:
                        hooks.inside.pop(thread, None)
                    else:
                        hooks.inside[thread] = before
                    if iterator is not None and id(iterator) not in self._numbers:
                        self._numbers.keep(iterator, named)
                except Exception as error:
                    hooks.broke("loader_started", error)

        loader_class.__iter__ = __iter__
        return lambda: setattr(loader_class, "__iter__", original)

    def _watch(self, owner: Any, name: str, note: Callable[[Timing], None]) -> Undo:
        """Turn an attribute of instances into a property that notes when it is looked up."""
        timings, hooks = self.timings, self._hooks

        def get(instance: Any) -> Any:
            try:
                timing = timings.get(_get_ident())
                if timing is not None:
                    note(timing)
            except Exception as error:
                hooks.broke(name, error)
            try:
                return instance.__dict__[name]
            except KeyError:
                message = f"{type(instance).__name__!r} object has no attribute {name!r}"
                raise AttributeError(message) from None

        def put(instance: Any, value: Any) -> None:
            instance.__dict__[name] = value

        setattr(owner, name, property(get, put))
        return lambda: delattr(owner, name)

    def _number(self, loader: Any) -> tuple[int, str]:
        """The number and name of a loader."""
        known = self._numbers.get(id(loader))
        if known is not None:
            return known
        line = self._lines.get(id(loader))
        settings = settings_of(loader)
        if self._workers_unseen and settings["num_workers"]:
            settings["workers_unseen"] = self._workers_unseen
        key = json.dumps([line, settings])
        known = self._by_settings.get(key)
        if known is None:
            number = len(self._by_settings) + 1
            text = f"loader {number}: {settings['dataset']}, {settings['num_workers']} workers"
            known = self._by_settings[key] = number, text
            self._hooks.journal.fact(
                type="place", what="data loader", number=number,
                file=line.file if line else "", line=line.line if line else 0,
                function=line.function if line else "", details=settings,
                monotonic_ns=time.monotonic_ns(),
            )  # fmt: skip
        self._numbers.keep(loader, known)
        return known

    def know(self, iterator: Any) -> Known:
        """Register an iterator when it is first asked for a batch."""
        named = self._numbers.get(id(iterator)) or self._without_loader(iterator)
        number, text = named
        string = self._hooks.journal.string
        workers = getattr(iterator, "_num_workers", 0)
        factor = getattr(iterator, "_prefetch_factor", None) or 0
        name = f"loader {number}"
        ready = pinned = None
        made, given = (getattr(iterator, n, None) for n in ("_worker_result_queue", "_data_queue"))
        if made is not None:
            ready = Queue(string("queue", f"{name} ready batches"), made, factor * workers)
        if given is not made and given is not None:
            pinned = Queue(string("queue", f"{name} pinned"), given, factor * workers)
        orders = tuple(
            Queue(string("queue", f"{name} worker {worker} orders"), queue, factor)
            for worker, queue in enumerate(getattr(iterator, "_index_queues", ()))
        )
        taking = (
            string("counter", f"{name} wait_on_core_ns"), string("counter", f"{name} no_core_ns")
        )  # fmt: skip
        no_core = string("counter", NO_CORE_COUNTER)
        known = Known(string("loader", text), number, ready, pinned, orders, taking, no_core)
        self._hooks.loaders.keep(iterator, known)
        pids = [worker.pid for worker in getattr(iterator, "_workers", ())]
        if pids:
            self._hooks.journal.fact(
                type="data workers", number=number, pids=pids, monotonic_ns=time.monotonic_ns()
            )
        self._hooks.recorder.places.see("data loop", sys._getframe(2), loader=number)
        return known

    def _without_loader(self, iterator: Any) -> tuple[int, str]:
        """The number of an iterator that did not come from a loader's `__iter__`."""
        what = f"{type(getattr(iterator, '_dataset', None)).__name__}, "
        what += f"{getattr(iterator, '_num_workers', 0)} workers"
        number = len(self._by_settings) + 1
        return self._by_settings.setdefault(what, (number, f"loader {number}: {what}"))

    def looked(self, known: Known, iterator: Any, thread: int) -> Timing:
        """Time the batch that this thread is about to build.

        If workers build it, read how many batches are ready and time the wait instead.
        """
        timing = Timing()
        no_core_ns = timing.look()
        if no_core_ns is not None:
            self._hooks.mark(_COUNTER, known.no_core, no_core_ns)
        if known.ready is None:
            self.timings[thread] = timing
        else:
            self._mark_queues(known, iterator)
            timing.begin()
        return timing

    def asked(self, known: Known) -> tuple[int, int]:
        """The number of ready batches, and the time of the request, if that is still to
        be marked.
        """
        ready = -1 if known.ready is None else _length(known.ready.queue)
        if self._hooks.recorder.waited is not None:
            return ready, time.monotonic_ns()
        self._hooks.mark(_DATA_ASKED, known.ref, ready)
        return ready, 0

    def waited(self, known: Known, asked: tuple[int, int], outcome: int) -> None:
        ready, asked_ns = asked
        if not asked_ns:
            self._hooks.mark(_DATA_CAME, known.ref, outcome)
        elif (tell := self._hooks.recorder.waited) is not None:
            tell(known.ref, ready, asked_ns, outcome)

    def _mark_queues(self, known: Known, iterator: Any) -> None:
        """Mark how many batches and requests are in each queue at this moment."""
        mark = self._hooks.mark
        held = _held_back(iterator)
        first, *others = [queue for queue in (known.pinned, known.ready) if queue is not None]
        _mark_length(mark, first, held)  # the one that the loop takes from
        for queue in others:
            _mark_length(mark, queue, 0)
        orders = known.orders
        if len(orders) > _ASKED_AT_ONCE:
            self._turn = (self._turn + _ASKED_AT_ONCE) % len(orders)
            orders = (*orders[self._turn :], *orders[: self._turn])[:_ASKED_AT_ONCE]
        for queue in orders:
            _mark_length(mark, queue, 0)

    def came(self, timing: Timing, known: Known, outcome: int, thread: int) -> int:
        """A batch was built in this process, or taken from a worker, or there was none.

        Returns the value of the mark that it came.
        """
        if known.ready is None:
            self.timings.pop(thread, None)
        if outcome != 1 or not timing.began_ns:
            return outcome
        timing.end()
        packed = timing.packed() if known.ready is None else 0
        if packed:
            return packed
        mark, began_ns = self._hooks.mark, timing.began_ns
        if known.ready is not None:
            for ref, value in zip(known.taking, timing.on_and_without_core(), strict=True):
                mark(_COUNTER, ref, value, began_ns)
        else:
            for figure, value in timing.figures():
                mark(_BATCH, known.number << BATCH_LOADER_SHIFT | figure, value, began_ns)
        return outcome

    def _forget_workers(self) -> None:
        """Measurements of workers for a process that did not train would only be confusing."""
        recorder = self._hooks.recorder
        if recorder.rank is None and not _is_worker():
            folder = workers_folder(recorder.run, os.getpid())
            shutil.rmtree(folder, ignore_errors=True)
            with contextlib.suppress(OSError):  # others' workers have theirs next to it
                folder.parent.rmdir()


def wrap_next(hooks: "TorchHooks", iterator_class: Any) -> Undo:
    original = iterator_class.__next__
    metrics = hooks.metrics
    count_samples = metrics.batch_came if metrics is not None else lambda *_: None

    def __next__(self: Any) -> Any:
        timing = batch = None
        try:
            if hooks.steps.is_new:
                hooks.windows.at_boundary()
            thread = _get_ident()
            before = hooks.inside.get(thread)
            hooks.inside[thread] = "data"
            known = hooks.loaders.get(id(self)) or hooks.know_loader(self)
            asked = hooks.data.asked(known)
            timing = hooks.data.looked(known, self, thread)
        except Exception as error:
            hooks.broke("data_asked", error)
        outcome = -1
        try:
            batch = original(self)
            outcome = 1
            return batch
        except StopIteration:
            outcome = 0
            raise
        finally:
            try:
                count_samples(known.number, batch)
                if timing is not None:
                    outcome = hooks.data.came(timing, known, outcome, thread)
                hooks.data.waited(known, asked, outcome)
                if before is None:
                    hooks.inside.pop(thread, None)
                else:
                    hooks.inside[thread] = before
            except Exception as error:
                hooks.broke("data_came", error)

    iterator_class.__next__ = __next__
    # `next = __next__` of older releases would keep the original; loops do not use it.
    return lambda: setattr(iterator_class, "__next__", original)


def _mark_length(mark: Callable[..., None], queue: Queue, more: int) -> None:
    length = _length(queue.queue)
    if length >= 0:
        mark(_QUEUE, queue.ref, queue.capacity << QUEUE_CAPACITY_SHIFT | length + more)


def _length(queue: Any) -> int:
    try:
        return max(0, int(queue.qsize()))
    except (NotImplementedError, OSError):  # macOS has no qsize; a queue may be closed
        return -1


def _held_back(iterator: Any) -> int:
    """Batches that arrived out of order: the loop already has them, and returns them in order."""
    try:
        return max(0, len(iterator._task_info) - int(iterator._tasks_outstanding))
    except (AttributeError, TypeError):  # an unknown release of torch
        return 0


def _is_worker() -> bool:
    from torch.utils.data import get_worker_info

    return get_worker_info() is not None
