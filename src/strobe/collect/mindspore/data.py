"""What MindSpore's datasets do: which there are, how long the loop waits, what their pipeline does.

An iterator over a dataset is a pipeline of threads with queues between them. The loop's waits are
measured at the iterator; MindData's own profiler measures inside (mindspore/pipeline.py).
"""

import functools
import json
import os
import platform
import threading
import time
from collections.abc import Callable
from time import monotonic_ns
from typing import TYPE_CHECKING, Any

from strobe.collect.host.core_users import native_threads, thread_name
from strobe.collect.host.sampler import usable_cores
from strobe.collect.mindspore import versions
from strobe.collect.mindspore.pipeline import IN_WINDOW_NS, PipelineWatch
from strobe.collect.places import Line, keep_lines
from strobe.collect.until_deleted import UntilDeleted
from strobe.model.journal import Mark

if TYPE_CHECKING:
    from strobe.collect.mindspore.hooks import MindSporeHooks

Undo = Callable[[], None]
_get_ident = threading.get_ident

# Plain numbers: looking up a member of an enum costs as much as writing the mark.
_DATA_ASKED, _DATA_CAME = int(Mark.DATA_ASKED), int(Mark.DATA_CAME)
_COUNTER = int(Mark.COUNTER)
_LOADER_BEGAN, _LOADER_STARTED = int(Mark.LOADER_BEGAN), int(Mark.LOADER_STARTED)

# Maximum number of operations of a pipeline to describe.
_MOST_STAGES = 64


class Datasets:
    """The datasets of this process, and the iterators over them."""

    def __init__(self, hooks: "MindSporeHooks") -> None:
        self._hooks = hooks
        self._watch = PipelineWatch(hooks.recorder)
        # The line that created an operation of a pipeline; the name of an iterator's loader in
        # marks.
        self._lines = UntilDeleted[Line | None]()
        self._known = UntilDeleted[int]()
        self._numbers: dict[int, int] = {}  # of loaders, by their names in marks
        # Pipelines with the same operations created by the same lines, such as one per epoch, count
        # as one.
        self._by_settings: dict[str, tuple[int, str]] = {}
        self._threads_before: set[int] = set()  # before the first pipeline was created

    def install(self) -> list[Undo]:
        from mindspore.dataset.engine.datasets import Dataset

        home = versions.iterators()
        if home is None or not hasattr(home, "Iterator"):
            self._hooks.recorder.problem("mindspore", "waits for data are not seen")
            return []
        return [
            # Each operation of a pipeline is an object created by some line of user code.
            keep_lines(Dataset, self._lines, self._hooks.broke),
            self._wrap_init(home.Iterator),
            self._wrap_next(home.Iterator),
            self._wrap_stop(home.Iterator),
        ]

    def window_began(self) -> None:
        self._watch.begin_once(IN_WINDOW_NS)

    def close(self) -> None:
        """At the end, or when recording pauses."""
        self._watch.end()

    def after_fork_in_child(self) -> None:
        self._known.clear()  # their numbers belong to the parent's journal
        self._by_settings.clear()
        self._threads_before.clear()
        self._watch.after_fork_in_child()

    def _wrap_init(self, iterator_class: Any) -> Undo:
        """Creating an iterator starts the threads of its pipeline."""
        hooks, original = self._hooks, iterator_class.__init__

        @functools.wraps(original)
        def __init__(iterator: Any, *args: Any, **kwargs: Any) -> None:
            starting = 0
            try:
                number, text = self._number(args[0] if args else kwargs.get("dataset"))
                starting = hooks.journal.string("loader", f"{text}, starting")
                loader = hooks.journal.string("loader", text)
                self._known.keep(iterator, loader)
                self._numbers[loader] = number
                hooks.recorder.watch()
                self._threads_before = self._threads_before or native_threads()
                hooks.recorder.makes_batches = self._makes_batches
                self._watch.iterator_begins(iterator, number)
                hooks.keep((_LOADER_BEGAN, starting, 0, monotonic_ns(), _get_ident()))
            except Exception as error:
                hooks.broke("loader_began", error)
            try:
                original(iterator, *args, **kwargs)
            finally:
                try:
                    hooks.keep((_LOADER_STARTED, starting, 0, monotonic_ns(), _get_ident()))
                    self._watch.iterator_began()
                except Exception as error:
                    hooks.broke("loader_started", error)

        iterator_class.__init__ = __init__
        return lambda: setattr(iterator_class, "__init__", original)

    def _wrap_next(self, iterator_class: Any) -> Undo:
        hooks, original = self._hooks, iterator_class.__next__
        inside, known, watch = hooks.inside, self._known, self._watch
        pending, keep = hooks.pending, hooks.keep
        count_samples = self._count_samples if hooks.metrics is not None else lambda *_: None

        @functools.wraps(original)
        def __next__(iterator: Any) -> Any:
            thread = _get_ident()
            loader, before = 0, inside.get(thread)
            try:
                if pending.tell is not None:
                    pending.settle()
                if hooks.steps.is_new:
                    hooks.at_boundary()
            except Exception as error:
                hooks.broke("data_asked", error)
            # After the start of a window, so that the first step begins inside it.
            asked_ns = monotonic_ns()
            try:
                loader = known.get(id(iterator)) or self._know_late(iterator)
                inside[thread] = "data"
                keep((_DATA_ASKED, loader, -1, asked_ns, thread))
            except Exception as error:
                hooks.broke("data_asked", error)
            outcome, batch = -1, None
            try:
                batch = original(iterator)
                outcome = 1
                return batch
            except StopIteration:
                outcome = 0
                raise
            finally:
                try:
                    came_ns = monotonic_ns()
                    count_samples(loader, batch, came_ns, thread)
                    keep((_DATA_CAME, loader, outcome, came_ns, thread))
                    inside[thread] = before
                    watch.came(iterator, asked_ns, came_ns)
                except Exception as error:
                    hooks.broke("data_came", error)

        iterator_class.__next__ = __next__
        return lambda: setattr(iterator_class, "__next__", original)

    def _count_samples(self, loader: int, batch: Any, came_ns: int, thread: int) -> None:
        metrics = self._hooks.metrics
        if batch is None or metrics is None:  # the end of the data
            return
        counter = metrics.batch_came(loader, self._numbers.get(loader, 0), batch)
        if counter:
            self._hooks.keep((_COUNTER, counter, metrics.size(loader), came_ns, thread))

    def _wrap_stop(self, iterator_class: Any) -> Undo:
        """MindData reports on a pipeline only as long as it exists."""
        original = iterator_class.stop

        @functools.wraps(original)
        def stop(iterator: Any) -> None:
            try:
                self._watch.iterator_ends(iterator)
            except Exception as error:
                self._hooks.broke("loader_ended", error)
            original(iterator)

        iterator_class.stop = stop
        return lambda: setattr(iterator_class, "stop", original)

    def _makes_batches(self, thread: int) -> bool:
        """Whether this thread builds batches.

        A pipeline starts its threads when it is first asked for a batch. Those that compute for
        training have names of their own; those of the pipeline have the main thread's name.
        """
        is_new = thread not in self._threads_before
        return is_new and thread_name(thread) == thread_name(os.getpid())

    def _know_late(self, iterator: Any) -> int:
        """It was created before recording began, so nothing is known about the inside of its
        pipeline.
        """
        number, text = self._number(getattr(iterator, "_Iterator__ori_dataset", None))
        loader = self._hooks.journal.string("loader", text)
        self._numbers[loader] = number
        self._known.keep(iterator, loader)
        return loader

    def _number(self, dataset: Any) -> tuple[int, str]:
        """The number and name of a dataset that is iterated over."""
        stages = self._stages(dataset)
        line = next((s["place"] for s in stages if s["place"]), None)
        key = json.dumps([stages, line])
        known = self._by_settings.get(key)
        if known is None:
            number = len(self._by_settings) + 1
            operations = " > ".join(stage["type"] for stage in reversed(stages))
            known = self._by_settings[key] = number, f"loader {number}: {operations}"
            file, at = line or ("", 0)
            details = {
                "dataset": operations, "stages": stages, "cores": usable_cores(),
                "host": platform.node(),
            }  # fmt: skip
            self._hooks.journal.fact(
                type="place", what="data loader", number=number, file=file, line=at, function="",
                details=details, monotonic_ns=time.monotonic_ns(),
            )  # fmt: skip
        return known

    def _stages(self, dataset: Any) -> list[dict[str, Any]]:
        """The operations of a pipeline, from the one that training takes from to its sources."""
        found: list[dict[str, Any]] = []
        waiting = [dataset]
        while waiting and len(found) < _MOST_STAGES:
            operation = waiting.pop(0)
            line = self._lines.get(id(operation))
            found.append({
                "type": type(operation).__name__.removesuffix("Dataset"),
                "place": [line.file, line.line] if line else None,
                "workers": getattr(operation, "num_parallel_workers", None),
                "processes": bool(getattr(operation, "python_multiprocessing", False)),
                "functions": _functions(operation),
            })  # fmt: skip
            waiting = [*getattr(operation, "children", ()), *waiting]
        return found


def _functions(operation: Any) -> list[str]:
    """The names of the functions of a map."""
    given = getattr(operation, "operations", None)
    found = given if isinstance(given, list | tuple) else [given] if given is not None else []
    return [getattr(each, "__name__", type(each).__name__) for each in found][:16]
