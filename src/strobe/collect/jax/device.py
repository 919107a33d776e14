"""What the device did with the programs sent to it, and when, without blocking it.

Calls of compiled functions return before their results are ready. A thread waits for a small array
of each call's results, in order (jax/waits.py): that shows when a training step ran, however far
ahead the script is. Waking up costs more than everything else, as most of the processor's caches
belong to the training. So finished work is recorded (jax/steps.py) only a few times per second, and
results for which the script itself always waits are left to it.
"""

import contextlib
import operator
import threading
from collections import deque
from collections.abc import Callable
from time import monotonic_ns
from typing import Any

from strobe.collect.jax.call_counts import Reading
from strobe.collect.jax.steps import Execution, Item, StepMarks
from strobe.collect.jax.waits import Found, Waits, together
from strobe.collect.recorder import Recorder
from strobe.collect.steps import StepCount

_get_ident = threading.get_ident

# How long the end of the process waits for the device to finish.
_PATIENCE_S = 10.0
# The interval at which finished work is recorded, if it is not urgent.
_INTERVAL_NS = 200_000_000


class Device:
    def __init__(
        self, recorder: Recorder, steps: StepCount, step_ended: Callable[[], None]
    ) -> None:
        """`step_ended` is called on the thread that follows the device."""
        self._recorder, self._steps, self._step_ended = recorder, steps, step_ended
        self.marks = StepMarks(recorder, steps, step_ended)
        # Executions in the order they were sent; and those that are done but not recorded yet, and
        # since when.
        self._queue: deque[Item] = deque()
        self._done: list[Item] = []
        self._written_ns = monotonic_ns()
        self._dated_ns = 0
        self._is_one_by_one = False
        self._thread: threading.Thread | None = None
        self.own_threads: set[int] = set()
        # The thread sleeps until this is released; and whether it sleeps, and whether without a
        # timeout.
        self._bell = threading.Lock()
        self._bell.acquire()
        self._is_asleep = self._sleeps_long = False
        # Results that this thread waits for, and how to get a value without recording a wait.
        self.waits = Waits(steps)
        self.value: Callable[[Any], Any] = operator.attrgetter("_value")
        # Executions whose results are awaited, by the address of the array.
        self.awaited: dict[int, Execution] = {}

    def put(self, item: Item) -> None:
        """Called from any thread, in the order in which work was sent to the device."""
        is_left_to_script = True
        if isinstance(item, Execution) and item.leaf is not None:
            self.awaited[id(item.leaf)] = item
            is_left_to_script = item.program.is_waited_for
            if not is_left_to_script:
                self._wait_in_turn(item)
        self._queue.append(item)
        if self._thread is None:
            self._start()
        elif self._sleeps_long or not is_left_to_script:
            self._ring()

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._work, name="strobe-device", daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Wait until the device has done all its work, with a timeout."""
        thread, self._thread = self._thread, None
        if thread is not None and thread is not threading.current_thread():
            self._ring()
            thread.join(_PATIENCE_S)

    def after_fork_in_child(self, steps: StepCount) -> None:
        wait, value = self.waits.wait, self.value
        self.__init__(self._recorder, steps, self._step_ended)  # type: ignore[misc]
        self.waits.wait, self.value = wait, value

    def seen(self, array: Any, last: Execution | None) -> None:
        """The script has waited until this array was ready; `last` is the last call, if its results
        were not ready before.
        """
        now_ns = monotonic_ns()
        execution = self.awaited.get(id(array))
        if execution is not None and execution.leaf is array:
            self._done_at(execution, now_ns)
        if last is not None and (last is execution or last.is_there()):
            self._done_at(last, now_ns)
            if last.counters is not None:
                self.read(last)
            last.program.waits += 1
            if self._steps.is_watched:  # a window may begin or end here
                self._ring()

    def _done_at(self, execution: Execution, now_ns: int) -> None:
        """Results that the thread does not wait for are dropped: deleting an array is cheaper where
        that happens all the time.
        """
        execution.done_ns = execution.done_ns or now_ns
        if execution.program.is_waited_for:
            leaf, execution.leaf = execution.leaf, None
            self.awaited.pop(id(leaf), None)

    def passed_by(self, last: Execution) -> None:
        """The script continues without having waited for its last call."""
        was_left_to_script = last.program.is_waited_for
        last.program.not_waited_for()
        if last.is_there():
            self._done_at(last, monotonic_ns())
            self.read(last)
        if was_left_to_script:
            self._wait_in_turn(last)
            self._ring()

    def read(self, execution: Execution) -> None:
        """Read its counters, if it has any, once its results are ready.

        Two threads may do so at once. The counters are dropped only once the numbers are known:
        without counters the call counts as read.
        """
        counters = execution.counters
        if counters is not None:
            with contextlib.suppress(RuntimeError):  # donated to the next call
                execution.reading = Reading(*map(self._number, counters))
        execution.counters = None

    def _number(self, counter: Any) -> int:
        return int(self.value(counter.addressable_data(0)).flat[0])

    # On the background thread

    @property
    def _is_over(self) -> bool:
        return self._thread is not threading.current_thread()

    def _work(self) -> None:
        self.own_threads.add(_get_ident())
        is_over = False
        while not is_over:
            is_over = self._is_over
            try:
                self._follow()
                if self._done and (is_over or self._is_due()):
                    self._write()
            # an error that cannot be handled would occur again and again
            except Exception as error:
                self._queue.clear()
                self._done.clear()
                self.waits.leaves.clear()
                self._recorder.broke("device", error)
            if not is_over:
                self._sleep()
        self.marks.end()
        self.own_threads.discard(_get_ident())

    def _follow(self) -> None:
        """Until nothing is left, or only what the script is about to wait for."""
        while self._queue:
            item = self._queue[0]
            if isinstance(item, Execution) and item.leaf is not None and not item.done_ns:
                if self._is_left_to_script(item):
                    break
                self._wait_from(item)
            self._take_done()
            if self._is_due():
                self._write()

    def _is_left_to_script(self, item: Execution) -> bool:
        is_last = len(self._queue) == 1 and not self._is_over
        return not item.done_ns and is_last and item.program.is_waited_for

    def _is_due(self) -> bool:
        return self._is_due_at_once() or monotonic_ns() - self._written_ns >= _INTERVAL_NS

    def _is_due_at_once(self) -> bool:
        return self._steps.is_watched or not self.marks.is_training_known

    def _write(self) -> None:
        done, self._done = self._done, []
        for item in done:
            self.marks.take(item)
        self._written_ns = monotonic_ns()

    def _sleep(self) -> None:
        is_long = not self._queue and not self._done
        self._is_asleep, self._sleeps_long = True, is_long
        if not self._has_work(is_long):
            since_ns = monotonic_ns() - self._written_ns if self._done else 0
            left_s = max(0, _INTERVAL_NS - since_ns) / 1e9
            self._bell.acquire(timeout=-1 if is_long else left_s)
        self._is_asleep = self._sleeps_long = False

    def _has_work(self, is_long: bool) -> bool:
        """Whether work arrived since the last check that would not wake the thread."""
        if self._is_over or (is_long and self._queue):
            return True
        item = self._queue[0] if self._queue else None
        return isinstance(item, Execution) and not self._is_left_to_script(item)

    def _ring(self) -> None:
        if self._is_asleep:
            self._is_asleep = False
            with contextlib.suppress(RuntimeError):  # another thread was faster
                self._bell.release()

    def _wait_in_turn(self, execution: Execution) -> None:
        """Wait for it together with others, if its results may live until those are ready and are
        not read before.
        """
        if execution.counters is not None or not execution.program.is_result_small:
            self._is_one_by_one = True
        leaf = execution.leaf  # the thread may take it away
        if leaf is not None:
            self.waits.leaves.append(leaf)

    def _wait_from(self, execution: Execution) -> None:
        """Wait for its results, and for those that follow until it is time to record."""
        waits, leaf = self.waits, execution.leaf
        if leaf is None:  # the script has just waited for it
            return
        if not waits.leaves or waits.leaves[0] is not leaf:  # it was left to the script
            waits.leaves.insert(0, leaf)
        until_ns = self._written_ns + _INTERVAL_NS
        is_one = self._is_one_by_one or self._is_due_at_once()
        found = waits.one() if is_one else waits.until(until_ns)
        if found:
            self._date(found)
        if not execution.done_ns:  # donated to the next step, or failed: the script gets the error
            execution.done_ns = execution.sent_ns

    def _date(self, found: list[Found]) -> None:
        """Estimate the times of several executions that were found done at once.

        It is only known that they ended after the one before them, so they are spread over that
        time.
        """
        for now_ns, leaves in together(found):
            executions = [item for item in map(self.awaited.get, map(id, leaves)) if item]
            undated = [item for item in executions if not item.done_ns]
            for place, item in enumerate(undated):
                since_ns = max(self._dated_ns, item.sent_ns)
                item.done_ns = since_ns + max(0, now_ns - since_ns) // (len(undated) - place)
                self._dated_ns = item.done_ns
            for item in executions:
                self._dated_ns = max(self._dated_ns, item.done_ns)

    def _take_done(self) -> None:
        """Remove those that are known to be done, and those between them."""
        queue, awaited, leaves = self._queue, self.awaited, self.waits.leaves
        while queue:
            item = queue[0]
            if isinstance(item, Execution):
                leaf = item.leaf
                if leaf is not None:
                    if not item.done_ns:
                        break
                    awaited.pop(id(leaf), None)
                    item.leaf = None
                if item.counters is not None:
                    self.read(item)
                self._dated_ns = max(self._dated_ns, item.done_ns)
            self._done.append(queue.popleft())
        while leaves and id(leaves[0]) not in awaited:  # the script waited for it first
            del leaves[0]
