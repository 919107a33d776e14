"""Inside a MindData pipeline: how full its queues are and what its operations cost, by its own
profiler.

There is one such profiler per process, and it knows one pipeline: the first that is created after
it was initialised. Whenever it is called, it must not be sampling (it does not synchronise with its
own thread), and the pipeline must exist (it reads its memory); otherwise the process crashes.

A sample takes it about 30 ms of CPU time, as it reads every memory page of the process. So it
samples only for a while: when training waits for its data, and once in a window.
"""

import contextlib
import shutil
import time
import weakref
from typing import Any

from strobe.collect.host.core_users import native_threads
from strobe.collect.recorder import Recorder
from strobe.model.journal import Mark

# The time between two samples, in addition to that of a sample. Queues of some batches fill and
# drain within tenths of seconds.
SAMPLE_MS = 20

# How long it samples at a time: enough samples to distinguish an empty queue from one that is not.
STARVED_NS = 3_000_000_000
IN_WINDOW_NS = 1_000_000_000
MOST_STRETCHES = 4

# Waiting for data is judged over this much time, and examined if its share is at least this large:
# below, there would be nothing to report.
JUDGED_NS = 500_000_000
WAITING_RATIO = 0.05

# After this time no sample that had begun is still running. If there is not enough time for that,
# its thread is watched: if it uses less CPU time than this in so many seconds, it is not sampling.
SETTLED_NS = 1_000_000_000
PATIENCE_NS = 500_000_000
REST_S, AT_REST_NS = 0.02, 1_000_000


class PipelineWatch:
    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._pipeline: Any = None  # weak reference to the iterator that the profiler knows
        self._loader = 0
        self._threads: set[int] = set()  # started with the pipeline; its profiler's is one of them
        self._judged_from_ns = self._waited_ns = 0
        self._looks_until_ns = 0  # 0: it is not sampling
        self._stopped_ns = 0
        self._is_unsaved = False
        self._stretches = 0
        self._is_refused = False
        self._interval: int | None = None

    # The pipeline

    def iterator_begins(self, iterator: Any, loader: int) -> None:
        """Before the pipeline is created: this is when the profiler registers it."""
        self._stop()  # it would warn about a pipeline that is created while it samples another
        if self._is_refused or self._stretches >= MOST_STRETCHES or self._is_there():
            return
        if _is_used_by_others():
            return
        from mindspore import dataset

        self._interval = dataset.config.get_monitor_sampling_interval()
        self._threads = native_threads()
        try:
            dataset.config.set_monitor_sampling_interval(SAMPLE_MS)
            _manager().init()
        except RuntimeError as error:
            self._refuse(error)
            return
        self._pipeline, self._loader = weakref.ref(iterator), loader
        self._judged_from_ns = self._waited_ns = 0
        self._is_unsaved = False

    def iterator_began(self) -> None:
        """The pipeline was created, or could not be."""
        if self._interval is None:
            return
        from mindspore import dataset

        dataset.config.set_monitor_sampling_interval(self._interval)
        self._interval = None
        self._threads = native_threads() - self._threads
        if self._pipeline is not None:
            # Once started and stopped, it can be started again, and does not warn about other
            # pipelines.
            _manager().start()
            _manager().stop()
            self._stopped_ns = time.monotonic_ns()

    def iterator_ends(self, iterator: Any) -> None:
        """Before the pipeline is destroyed."""
        if self._pipeline is None or self._pipeline() is not iterator:
            return
        self._stop()
        if self._is_unsaved and self._rests():
            self._save()
        self._pipeline = None

    def end(self) -> None:
        """Recording ends: write the samples."""
        iterator = self._pipeline() if self._pipeline is not None else None
        if iterator is not None:
            self.iterator_ends(iterator)

    def after_fork_in_child(self) -> None:
        """The pipeline and its profiler belong to the parent."""
        self._pipeline, self._looks_until_ns = None, 0
        self._is_refused = True

    # When to sample

    def came(self, iterator: Any, asked_ns: int, now_ns: int) -> None:
        """A batch came that was requested at that time: sample the pipeline if training waits for
        it.
        """
        if self._pipeline is None or self._pipeline() is not iterator:
            return
        if self._looks_until_ns:
            if now_ns > self._looks_until_ns:
                self._stop()
            return
        if self._is_unsaved and now_ns - self._stopped_ns > SETTLED_NS:
            self._save()
        self._waited_ns += now_ns - asked_ns
        passed_ns = now_ns - self._judged_from_ns
        if passed_ns < JUDGED_NS:
            return
        if self._judged_from_ns and self._waited_ns > WAITING_RATIO * passed_ns:
            self.begin(STARVED_NS)
        self._judged_from_ns, self._waited_ns = now_ns, 0

    def begin_once(self, length_ns: int) -> None:
        """Unless it was sampled before: the other periods are for when training waits."""
        if not self._stretches:
            self.begin(length_ns)

    def begin(self, length_ns: int) -> None:
        began_ns = time.monotonic_ns()
        if self._stretches >= MOST_STRETCHES or self._is_refused or not self._is_there():
            return
        if self._looks_until_ns or self._is_unsaved or began_ns - self._stopped_ns < SETTLED_NS:
            return
        if self._recorder.raw is None:  # nothing was trained yet
            return
        self._stretches += 1
        try:
            _manager().start()
        except RuntimeError as error:
            self._refuse(error)
            return
        self._looks_until_ns = began_ns + length_ns
        self._own_work(began_ns)

    def _stop(self) -> None:
        """Stop sampling. The samples can be written when the one in progress has ended."""
        if self._looks_until_ns:
            self._looks_until_ns = 0
            _manager().stop()
            self._stopped_ns, self._is_unsaved = time.monotonic_ns(), True

    def _save(self) -> None:
        began_ns = time.monotonic_ns()
        self._is_unsaved = False
        raw = self._recorder.raw
        if raw is None or not self._is_there():
            return
        folder = raw / f"minddata-{self._stretches:04}"
        folder.mkdir()
        try:
            _manager().save(str(folder))
        except RuntimeError as error:
            shutil.rmtree(folder, ignore_errors=True)
            self._refuse(error)
            return
        self._recorder.journal.fact(type="minddata", folder=folder.name, loader=self._loader)
        self._own_work(began_ns)

    def _rests(self) -> bool:
        """Whether no sample is in progress, after waiting for a while."""
        began_ns = time.monotonic_ns()
        before, is_resting = _work_ns(self._threads), False
        while not is_resting and time.monotonic_ns() - began_ns < PATIENCE_NS:
            time.sleep(REST_S)
            now = _work_ns(self._threads)
            is_resting = before is not None and now is not None and now - before < AT_REST_NS
            before = now
        self._own_work(began_ns)
        return is_resting

    def _is_there(self) -> bool:
        """Whether the pipeline that the profiler knows still runs."""
        iterator = self._pipeline() if self._pipeline is not None else None
        return iterator is not None and bool(getattr(iterator, "_runtime_context", None))

    def _refuse(self, error: Exception) -> None:
        self._is_refused = True
        reason = str(error).strip().splitlines()
        self._recorder.problem(
            "MindData", f"its queues are not recorded: {reason[0] if reason else 'no reason given'}"
        )

    def _own_work(self, began_ns: int) -> None:
        self._recorder.mark(Mark.OWN_WORK, 0, time.monotonic_ns() - began_ns, began_ns)


def _manager() -> Any:
    from mindspore import _c_dataengine

    return _c_dataengine.GlobalContext.profiling_manager()


def _work_ns(threads: set[int]) -> int | None:
    """What threads have done so far, and what they could not do without a core."""
    total = 0
    try:
        for thread in threads:
            with open(f"/proc/self/task/{thread}/schedstat") as file:
                on_core_ns, no_core_ns, _ = file.read().split()
            total += int(on_core_ns) + int(no_core_ns)
    except (OSError, ValueError):  # it ended, or this kernel does not support it
        return None
    return total


def _is_used_by_others() -> bool:
    """MindSpore's own profiler, or its tuning of pipelines, needs the same."""
    from mindspore import dataset
    from mindspore.profiler.profiler_interface import ProfilerInterface

    with contextlib.suppress(AttributeError):
        if dataset.config.get_enable_autotune():
            return True
    return bool(ProfilerInterface.is_initialized or dataset.config.get_debug_mode())
