"""Inside a pipeline of MindData: how full its queues are and what its operations take, by its own
profiler.

That profiler is one for the process and knows one pipeline: the first that is made after it was
initialised. Whatever it is asked, it must not be looking (it takes no care of its own thread), and
the pipeline must be there (it reads its memory); else the process crashes.

A look takes it some 30 ms of a core, for it reads what every page of the process takes. So it
looks only for a while: where training waits for its data, and once in a window.
"""

import contextlib
import shutil
import time
import weakref
from typing import Any

from strobe.collect.host.core_users import native_threads
from strobe.collect.recorder import Recorder
from strobe.model.journal import Mark

# Between two looks, beside the time that a look takes. Queues of some batches fill and drain
# within tenths of seconds.
SAMPLE_MS = 20

# How long it looks at a stretch: as many looks as tell a queue that is empty from one that is not.
STARVED_NS = 3_000_000_000
IN_WINDOW_NS = 1_000_000_000
MOST_STRETCHES = 4

# Waiting for data is judged over so long a time, and looked into from this share of it on: below,
# there would be nothing to tell.
JUDGED_NS = 500_000_000
WAITING_RATIO = 0.05

# After so long no look that had begun is still under way. Where there is no time for that, its
# thread is watched: in so many seconds it does less than this unless it looks.
SETTLED_NS = 1_000_000_000
PATIENCE_NS = 500_000_000
REST_S, AT_REST_NS = 0.02, 1_000_000


class PipelineWatch:
    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._pipeline: Any = None  # weak reference to the iterator that the profiler knows
        self._loader = 0
        self._threads: set[int] = set()  # made with the pipeline; its profiler's is one of them
        self._judged_from_ns = self._waited_ns = 0
        self._looks_until_ns = 0  # 0: it does not look
        self._stopped_ns = 0
        self._is_unsaved = False
        self._stretches = 0
        self._is_refused = False
        self._interval: int | None = None

    # The pipeline

    def iterator_begins(self, iterator: Any, loader: int) -> None:
        """Before the pipeline is made: it is now that the profiler gets to know it."""
        self._stop()  # it would warn of a pipeline that is made while it looks at another
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
        """The pipeline was made, or could not be."""
        if self._interval is None:
            return
        from mindspore import dataset

        dataset.config.set_monitor_sampling_interval(self._interval)
        self._interval = None
        self._threads = native_threads() - self._threads
        if self._pipeline is not None:
            # Begun and ended, it can be begun again, and does not warn of other pipelines.
            _manager().start()
            _manager().stop()
            self._stopped_ns = time.monotonic_ns()

    def iterator_ends(self, iterator: Any) -> None:
        """Before the pipeline is taken down."""
        if self._pipeline is None or self._pipeline() is not iterator:
            return
        self._stop()
        if self._is_unsaved and self._rests():
            self._save()
        self._pipeline = None

    def end(self) -> None:
        """Recording ends: write what was seen."""
        iterator = self._pipeline() if self._pipeline is not None else None
        if iterator is not None:
            self.iterator_ends(iterator)

    def after_fork_in_child(self) -> None:
        """The pipeline is the parent's, and its profiler the parent's business."""
        self._pipeline, self._looks_until_ns = None, 0
        self._is_refused = True

    # When to look

    def came(self, iterator: Any, asked_ns: int, now_ns: int) -> None:
        """A batch, asked for then: look into the pipeline if training waits for it."""
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
        """Unless it was looked into before: the other stretches are for when training waits."""
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
        """Look no more. What was seen can be written when the look under way has ended."""
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
        """Whether no look is under way, waited for a while."""
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
    """What threads have done so far, and wanted to do but had no core for."""
    total = 0
    try:
        for thread in threads:
            with open(f"/proc/self/task/{thread}/schedstat") as file:
                on_core_ns, no_core_ns, _ = file.read().split()
            total += int(on_core_ns) + int(no_core_ns)
    except (OSError, ValueError):  # it has ended, or this kernel does not tell
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
