"""Steps as the device ran them: marks of what programs did, in the order in which they were sent.

A program that trains is a step, or a part of one if it only accumulates gradients. Executions of
programs not yet known to train are kept until they are.
"""

import threading
from collections.abc import Callable
from time import monotonic_ns
from typing import Any

from strobe.collect.jax.call_counts import Reading
from strobe.collect.jax.programs import Program
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

# Plain numbers: these are marked at every step.
_GRAPH = int(Mark.GRAPH)
_BACKWARD_BEGAN, _BACKWARD_ENDED = int(Mark.BACKWARD_BEGAN), int(Mark.BACKWARD_ENDED)
_UPDATE_BEGAN, _UPDATE_ENDED = int(Mark.UPDATE_BEGAN), int(Mark.UPDATE_ENDED)

# Maximum number of executions kept until it is known what their program does.
_MOST_PENDING = 256


class Execution:
    """One call of a program."""

    __slots__ = (
        "called_ns", "counters", "done_ns", "is_next_step", "leaf", "program", "reading",
        "sent_ns", "thread", "updates", "values",
    )  # fmt: skip

    def __init__(self, program: Program, thread: int, called_ns: int, sent_ns: int) -> None:
        self.program, self.thread = program, thread
        self.called_ns, self.sent_ns = called_ns, sent_ns
        # A result to wait for; and when it was ready, as far as known.
        self.leaf: Any = None
        self.done_ns = 0
        # Whether single operations have used the gradients that were accumulated before.
        self.is_next_step = False
        # For a program that accumulates gradients internally: its counters, their values when they
        # were read, and whether it updated, once known.
        self.counters: tuple[Any, Any] | None = None
        self.reading: Reading | None = None
        self.updates: bool | None = None
        # Training metrics by tag, as arrays.
        self.values: list[tuple[str, Any]] = []

    def is_there(self) -> bool:
        """Whether its result is ready by now, as far as known."""
        leaf = self.leaf  # the thread that waits for it may take it away
        try:
            return leaf is None or bool(leaf.is_ready())
        except RuntimeError:  # it was donated to another program
            return True


class StepSaid:
    """The script marks the end of a step; `by_hand` means with strobe.step()."""

    __slots__ = ("by_hand", "said_ns", "thread")

    def __init__(self, by_hand: bool) -> None:
        self.by_hand = by_hand
        self.said_ns, self.thread = monotonic_ns(), threading.get_ident()


class Waited:
    """The script waited for a batch of data."""

    __slots__ = ("asked_ns", "came_ns", "loader", "outcome", "ready", "thread")

    def __init__(self, loader: int, ready: int, asked_ns: int, outcome: int) -> None:
        """As in the marks DATA_ASKED and DATA_CAME."""
        self.loader, self.ready = loader, ready
        self.asked_ns, self.outcome = asked_ns, outcome
        self.came_ns, self.thread = monotonic_ns(), threading.get_ident()


class Computed:
    """The script computed a metric with single operations, after the calls that it sent before."""

    __slots__ = ("computed_ns", "record")

    def __init__(self, record: Callable[[int], None]) -> None:
        """`record` is called with the time that the metric belongs to."""
        self.record, self.computed_ns = record, monotonic_ns()


Item = Execution | StepSaid | Waited | Computed


class StepMarks:
    def __init__(
        self, recorder: Recorder, steps: StepCount, step_ended: Callable[[], None]
    ) -> None:
        self._recorder, self._steps, self._step_ended = recorder, steps, step_ended
        self._pending: list[Item] = []
        # Whether it is known which program trains: until then, executions are kept.
        self.is_training_known = False
        # When the last program was done, and the last one that trains; whether training ran since
        # the last explicit step.
        self._busy_until_ns = self._trained_until_ns = 0
        self._has_trained = False
        self._is_by_hand = False
        # The time that metrics of the last training program belong to.
        self._metrics_ns = 0
        # Calls that only accumulated gradients since a step ended, and in the step before; and the
        # last call, if it was one.
        self._gathered = self._gathered_each = 0
        self._last_gathered: Execution | None = None
        # Records the metrics of a call of a program, at a time.
        self.record_values: Callable[[Program, list[tuple[str, Any]], int], None] | None = None

    def take(self, item: Item) -> None:
        """Add the next one, which is done."""
        counts = item.program.counts if isinstance(item, Execution) else None
        if counts is not None:
            counts.take(item)
        self._pending.append(item)
        if not self.is_training_known:
            del self._pending[:-_MOST_PENDING]
        elif counts is None or not counts.is_open or len(self._pending) >= _MOST_PENDING:
            pending, self._pending = self._pending, []
            for known in pending:
                self._mark(known)

    def end(self) -> None:
        """No call follows that could show the end of a step: as many calls as before make one."""
        if self.is_training_known:
            for known in self._pending:
                self._mark(known)
            self._pending.clear()
        item = self._last_gathered
        if item is not None and self._gathered == self._gathered_each:
            self._end_gathering(item)
        self._last_gathered = None

    def _mark(self, item: Item) -> None:
        if isinstance(item, StepSaid):
            self._mark_step(item)
            return
        if isinstance(item, Waited):
            self._mark_wait(item)
            return
        if isinstance(item, Computed):  # the device may be behind the script, or ahead of it
            item.record(self._metrics_ns or item.computed_ns)
            return
        free_ns = self._busy_until_ns
        ends_ns = max(item.done_ns or item.sent_ns, free_ns)
        # If the results were ready when the call returned, the call itself ran the program.
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
        """While the device has work, nobody waits for data."""
        begins_ns = max(item.asked_ns, self._busy_until_ns)
        mark, ends_ns = self._recorder.mark, max(item.came_ns, begins_ns)
        mark(Mark.DATA_ASKED, item.loader, item.ready, begins_ns, item.thread)
        mark(Mark.DATA_CAME, item.loader, item.outcome, ends_ns, item.thread)

    def _mark_training(self, item: Execution, handed_ns: int, begins_ns: int, ends_ns: int) -> None:
        mark, number = self._recorder.mark, item.program.number
        self._metrics_ns = max(handed_ns, ends_ns - 1)
        if item.values and self.record_values is not None:
            self.record_values(item.program, item.values, self._metrics_ns)
            item.values = []
        gathers = item.program.gathers or item.updates is False
        if item.is_next_step:
            self._end_gathering(item)
        began = _BACKWARD_BEGAN if gathers else _UPDATE_BEGAN
        mark(began, 0 if gathers else number, 0, handed_ns, item.thread)
        if begins_ns > handed_ns:  # the device has nothing to do: an empty graph
            nothing = self._recorder.journal.string("program", _DISPATCH)
            mark(_GRAPH, nothing, (begins_ns - handed_ns) << GRAPH_PARTS_BITS, handed_ns,
                 item.thread)  # fmt: skip
        parts = _GRADIENT if gathers else _FUSED
        length = (ends_ns - begins_ns) << GRAPH_PARTS_BITS | parts
        mark(_GRAPH, number, length, begins_ns, item.thread)
        self._has_trained, self._trained_until_ns = True, ends_ns
        if gathers:
            mark(_BACKWARD_ENDED, 0, 0, ends_ns, item.thread)
        else:
            self._mark_updated(item, ends_ns)
        self._gathered += gathers
        self._last_gathered = item if gathers else None

    def _end_gathering(self, item: Execution) -> None:
        """Single operations have used the gradients; they are not distinguished."""
        ends_ns = self._trained_until_ns
        self._recorder.mark(_UPDATE_BEGAN, item.program.number, 0, ends_ns, item.thread)
        self._mark_updated(item, ends_ns)
        self._gathered_each, self._gathered = self._gathered, 0

    def _mark_updated(self, item: Execution, ends_ns: int) -> None:
        number = item.program.number
        self._recorder.mark(_UPDATE_ENDED, number, 0, ends_ns, item.thread)
        self._steps.updated(number)
        self._look()

    def _mark_step(self, item: StepSaid) -> None:
        """Marked where the script is; the step ends where the device is, if that is behind."""
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
