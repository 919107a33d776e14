"""What the device did with the programs it was given, and when: learned without holding it up.

Calls of compiled functions return before their results are there. A thread waits for a small
array of each call's results, in order, and marks what was done when it was: that is when a step of
training ran, however far ahead the script is. It has the interpreter's lock only to write that
down. If the script itself learns earlier that the array is there, that moment counts.
"""

import queue
import threading
from collections.abc import Callable
from time import monotonic_ns
from typing import Any

from strobe.collect.jax_programs import Program
from strobe.collect.recorder import Recorder
from strobe.collect.steps import StepCount
from strobe.model.journal import (
    GRAPH_BACKWARD,
    GRAPH_FORWARD,
    GRAPH_PARTS_BITS,
    GRAPH_UPDATE,
    Mark,
)

_GRADIENT = GRAPH_FORWARD | GRAPH_BACKWARD
_FUSED = _GRADIENT | GRAPH_UPDATE
_DISPATCH = "dispatch"

# Executions kept until it is known what their program does.
_MOST_PENDING = 256
# How long the end of the process waits for the device to come to its end.
_PATIENCE_S = 10.0


# The last that is put into the queue.
_END = object()


class Execution:
    """One call of a program."""

    __slots__ = (
        "called_ns", "done_ns", "is_next_step", "leaf", "program", "sent_ns", "thread",
    )  # fmt: skip

    def __init__(self, program: Program, thread: int, called_ns: int, sent_ns: int) -> None:
        self.program, self.thread = program, thread
        self.called_ns, self.sent_ns = called_ns, sent_ns
        # A result to wait for; and when it was there, as far as is known.
        self.leaf: Any = None
        self.done_ns = 0
        # Whether single operations have used the gradients that were gathered before.
        self.is_next_step = False

    def is_there(self, is_dated: bool = True) -> bool:
        """Whether its result is there by now, as far as anyone can tell; if so, since when."""
        leaf = self.leaf  # the thread that waits for it may take it away
        try:
            if leaf is not None and not leaf.is_ready():
                return False
        except RuntimeError:  # it was given away to another program
            return True
        if is_dated:
            self.done_ns = self.done_ns or monotonic_ns()
        return True


class StepSaid:
    """The script says that a step ends here; `by_hand`, with strobe.step()."""

    __slots__ = ("by_hand", "said_ns", "thread")

    def __init__(self, by_hand: bool) -> None:
        self.by_hand = by_hand
        self.said_ns, self.thread = monotonic_ns(), threading.get_ident()


class Waited:
    """The script waited for a batch of data."""

    __slots__ = ("asked_ns", "came_ns", "loader", "outcome", "ready", "thread")

    def __init__(self, loader: int, ready: int, asked_ns: int, outcome: int) -> None:
        """As the marks DATA_ASKED and DATA_CAME say it."""
        self.loader, self.ready = loader, ready
        self.asked_ns, self.outcome = asked_ns, outcome
        self.came_ns, self.thread = monotonic_ns(), threading.get_ident()


Item = Execution | StepSaid | Waited


class Device:
    def __init__(
        self, recorder: Recorder, steps: StepCount, step_ended: Callable[[], None]
    ) -> None:
        """`step_ended` is called on the thread that follows the device."""
        self._recorder, self._steps, self._step_ended = recorder, steps, step_ended
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        # Taken from the queue, and not yet done.
        self._next: Any = None
        self._dated_ns = 0
        self._thread: threading.Thread | None = None
        self._pending: list[Item] = []
        # Whether it is known which program trains: until then, executions are kept.
        self.is_training_known = False
        # When the last program of all was done, and the last that trains; whether training ran
        # since a step was last said.
        self._busy_until_ns = self._trained_until_ns = 0
        self._has_trained = False
        self._is_by_hand = False
        # Calls that only gathered gradients since a step ended, and in the step before; and the
        # last call, if it was one.
        self._gathered = self._gathered_each = 0
        self._last_gathered: Execution | None = None
        # Executions whose results are awaited, by the address of the array.
        self.awaited: dict[int, Execution] = {}

    @property
    def is_own_thread(self) -> bool:
        return self._thread is threading.current_thread()

    def put(self, item: Item) -> None:
        """From any thread, in the order in which things were sent to the device."""
        if isinstance(item, Execution) and item.leaf is not None:
            self.awaited[id(item.leaf)] = item
        self._queue.put(item)
        if self._thread is None:
            self._start()

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._work, name="strobe-device", daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Wait until the device has done all that it was given, but not for ever."""
        thread, self._thread = self._thread, None
        if thread is not None and thread is not threading.current_thread():
            self._queue.put(_END)
            thread.join(_PATIENCE_S)

    def after_fork_in_child(self, steps: StepCount) -> None:
        self.__init__(self._recorder, steps, self._step_ended)  # type: ignore[misc]

    def seen(self, array: Any) -> None:
        """The script has learned that this array is there."""
        execution = self.awaited.get(id(array))
        if execution is not None and execution.leaf is array:
            execution.done_ns = execution.done_ns or monotonic_ns()

    def _work(self) -> None:
        while (item := self._get(is_patient=True)) is not _END:
            try:
                together = [item]
                if isinstance(item, Execution) and item.leaf is not None:
                    _wait_for(item)
                    together += self._also_there()
                self._date(together)
                for each in together:
                    self._take(each)
            except Exception as error:
                self._recorder.broke("device", error)
            item, together = None, []  # and with them arrays
        self._end_last_gathering()

    def _get(self, is_patient: bool) -> Any:
        if self._next is not None:
            item, self._next = self._next, None
            return item
        try:
            return self._queue.get(is_patient)
        except queue.Empty:
            return None

    def _also_there(self) -> list[Any]:
        """What follows and is done as well: this thread may have waited long for Python's lock."""
        found = []
        while (item := self._get(is_patient=False)) is not None:
            if item is _END or (isinstance(item, Execution) and not item.is_there(is_dated=False)):
                self._next = item
                break
            found.append(item)
        return found

    def _date(self, together: list[Any]) -> None:
        """Of several that were found done at once it is only known that they ended since the one
        before them: they are spread over that time."""
        now_ns = monotonic_ns()
        executions = [item for item in together if isinstance(item, Execution)]
        undated = [item for item in executions if not item.done_ns]
        for place, item in enumerate(undated):
            since_ns = max(self._dated_ns, item.sent_ns)
            item.done_ns = since_ns + max(0, now_ns - since_ns) // (len(undated) - place)
            self._dated_ns = item.done_ns
        for item in executions:
            self._dated_ns = max(self._dated_ns, item.done_ns)
            if item.leaf is not None:
                self.awaited.pop(id(item.leaf), None)
                item.leaf = None

    def _take(self, item: Item) -> None:
        self._pending.append(item)
        if len(self._pending) > _MOST_PENDING:
            del self._pending[0]
        if self.is_training_known:
            pending, self._pending = self._pending, []
            for known in pending:
                self._mark(known)

    def _mark(self, item: Item) -> None:
        if isinstance(item, StepSaid):
            self._mark_step(item)
            return
        if isinstance(item, Waited):
            self._mark_wait(item)
            return
        free_ns = self._busy_until_ns
        ends_ns = max(item.done_ns or item.sent_ns, free_ns)
        # If the results were there when the call returned, it ran the program itself.
        is_inline = item.done_ns <= item.sent_ns
        begins_ns = max(free_ns, item.called_ns if is_inline else item.sent_ns)
        self._busy_until_ns = ends_ns
        if item.program.trains:
            handed_ns = max(free_ns, item.called_ns)
            self._mark_training(item, handed_ns, min(begins_ns, ends_ns), ends_ns)
        elif item.program.evaluates and self._recorder.is_recording:
            mark, number = self._recorder.mark, item.program.number
            mark(Mark.FORWARD_BEGAN, number, 0, min(begins_ns, ends_ns), item.thread)
            mark(Mark.FORWARD_ENDED, number, 1, ends_ns, item.thread)

    def _mark_wait(self, item: Waited) -> None:
        """As long as the device has something to do, nobody waits for data."""
        begins_ns = max(item.asked_ns, self._busy_until_ns)
        mark, ends_ns = self._recorder.mark, max(item.came_ns, begins_ns)
        mark(Mark.DATA_ASKED, item.loader, item.ready, begins_ns, item.thread)
        mark(Mark.DATA_CAME, item.loader, item.outcome, ends_ns, item.thread)

    def _mark_training(self, item: Execution, handed_ns: int, begins_ns: int, ends_ns: int) -> None:
        mark, number, gathers = self._recorder.mark, item.program.number, item.program.gathers
        if item.is_next_step:
            self._end_gathering(item)
        began = Mark.BACKWARD_BEGAN if gathers else Mark.UPDATE_BEGAN
        mark(began, 0 if gathers else number, 0, handed_ns, item.thread)
        if begins_ns > handed_ns:  # the device has nothing to do: a graph that does nothing
            nothing = self._recorder.journal.string("program", _DISPATCH)
            mark(Mark.GRAPH, nothing, (begins_ns - handed_ns) << GRAPH_PARTS_BITS, handed_ns,
                 item.thread)  # fmt: skip
        parts = _GRADIENT if gathers else _FUSED
        length = (ends_ns - begins_ns) << GRAPH_PARTS_BITS | parts
        mark(Mark.GRAPH, number, length, begins_ns, item.thread)
        self._has_trained, self._trained_until_ns = True, ends_ns
        if gathers:
            mark(Mark.BACKWARD_ENDED, 0, 0, ends_ns, item.thread)
        else:
            self._mark_updated(item, ends_ns)
        self._gathered += gathers
        self._last_gathered = item if gathers else None

    def _end_gathering(self, item: Execution) -> None:
        """Single operations have used the gradients; they are not told apart."""
        ends_ns = self._trained_until_ns
        self._recorder.mark(Mark.UPDATE_BEGAN, item.program.number, 0, ends_ns, item.thread)
        self._mark_updated(item, ends_ns)
        self._gathered_each, self._gathered = self._gathered, 0

    def _end_last_gathering(self) -> None:
        """No call follows that could show it: as many calls as before make a step."""
        item = self._last_gathered
        if item is not None and self._gathered == self._gathered_each:
            self._end_gathering(item)
        self._last_gathered = None

    def _mark_updated(self, item: Execution, ends_ns: int) -> None:
        number = item.program.number
        self._recorder.mark(Mark.UPDATE_ENDED, number, 0, ends_ns, item.thread)
        self._steps.updated(number)
        self._look()

    def _mark_step(self, item: StepSaid) -> None:
        """Said where the script is; the step ends where the device is, if that is behind."""
        if item.by_hand:
            self._is_by_hand = True
        elif self._is_by_hand or not self._has_trained:  # an annotation around something else
            return
        self._has_trained = False
        ends_ns = max(item.said_ns, self._busy_until_ns)
        self._recorder.mark(Mark.STEP, 0, 0, ends_ns, item.thread)
        self._steps.said()
        self._look()

    def _look(self) -> None:
        if self._steps.is_new and self._recorder.is_recording:
            self._step_ended()


def _wait_for(execution: Execution) -> None:
    leaf = execution.leaf
    try:
        leaf.block_until_ready()
    except Exception:  # given away to the next step, or failed: the script is told of that
        execution.done_ns = execution.done_ns or execution.sent_ns
