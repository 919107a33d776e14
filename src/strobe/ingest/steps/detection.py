"""What is a training step? Decided from the marks of the whole run of a rank.

- Only the training thread counts: the one that updates most. Optimizers that step on a thread
  which runs no backward itself (autograd's device threads) update for the thread that does.
- strobe.step() ends a step. Without it a step ends with the last update of its optimizers;
  without updates, where data or a forward follows a backward.
- Step k + 1 begins where step k ended: logging, evaluation and the wait for data are its gap.
- The phases of a step tile it.

Marks do not show iterations whose update a gradient scaler skipped: they join the next step.
"""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from strobe.ingest.steps import bounds as step_bounds
from strobe.ingest.steps import phases as step_phases
from strobe.ingest.steps.bounds import Bounds
from strobe.ingest.steps.phases import Lengths
from strobe.ingest.steps.spans import (
    EVALUATION_BEGAN,
    LAST_SPAN_CODE,
    NOTHING,
    Bools,
    Edges,
    Ints,
    training_edges,
)
from strobe.ingest.trace.codes import in_order_once
from strobe.model.journal import BESIDE_TRAINING, GRAD_ENABLED, TRAINING_MODE, Mark

# The thread with most of these is the training thread; the first kind that occurs decides.
_SIGNS_OF_TRAINING = (
    Mark.UPDATE_ENDED,
    Mark.BACKWARD_ENDED,
    Mark.STEP,
    Mark.FORWARD_ENDED,
    Mark.DATA_CAME,
)


@dataclass(frozen=True)
class Marks:
    """The marks of a rank, one entry each, in time order (Mark explains code and value)."""

    ts_ns: npt.NDArray[np.integer]
    code: npt.NDArray[np.integer]
    ref: npt.NDArray[np.integer]
    value: npt.NDArray[np.integer]
    thread: npt.NDArray[np.integer]


@dataclass(frozen=True)
class Evaluations:
    """Forward passes that do not train, in time order; and those in evaluation mode next to others
    in training mode, with whether a backward pass follows (`is_followed`).
    """

    ts_ns: Ints
    dur_ns: Ints
    has_gradients: Bools
    is_followed: Bools


def no_evaluations() -> Evaluations:
    nothing = np.empty(0, dtype=np.int64)
    return Evaluations(nothing, nothing, nothing.astype(np.bool_), nothing.astype(np.bool_))


@dataclass(frozen=True)
class Steps:
    """Step k, counted from 1, is entry k - 1; the phases of a step tile it, in time order."""

    step_ts_ns: Ints
    step_dur_ns: Ints
    phase_step: Ints
    phase_name: Ints  # index into model.schema.PHASES
    phase_ts_ns: Ints
    phase_dur_ns: Ints
    problems: list[str]
    evaluations: Evaluations = field(default_factory=no_evaluations)


def decide(marks: Marks) -> Steps:
    problems: list[str] = []
    marks = _in_time_order(marks, problems)
    recorded = _of_training_thread(marks, problems)
    has_updates = bool(len(recorded.at(Mark.UPDATE_BEGAN, Mark.UPDATE_ENDED)))
    edges, alone_ts = training_edges(recorded)
    bounds = step_bounds.find(edges, has_updates=has_updates)
    all_reduce = _lengths(marks, Mark.ALL_REDUCE, problems)
    is_beside = marks.ref == BESIDE_TRAINING
    own_work = _lengths(marks, Mark.OWN_WORK, problems, ~is_beside)
    beside = _lengths(marks, Mark.OWN_WORK, problems, is_beside)
    zero_grad = _lengths(marks, Mark.ZERO_GRAD, problems)
    phases = step_phases.of_steps(edges, bounds, all_reduce, own_work, zero_grad, beside)
    bounds_ts = edges.ts[bounds.at]
    problems += _odd_ends(bounds_ts, alone_ts)
    problems += _no_steps(marks, bounds)
    evaluations = _evaluations(edges)
    return Steps(bounds_ts[:-1], np.diff(bounds_ts), *phases, problems, evaluations)


def _evaluations(edges: Edges) -> Evaluations:
    begins = edges.at(EVALUATION_BEGAN, Mark.FORWARD_BEGAN)
    mode, is_followed = edges.value[begins], edges.code[begins] == Mark.FORWARD_BEGAN
    trains: Bools = is_followed & ((mode & TRAINING_MODE) != 0)
    keep = ~is_followed if not trains.any() else ~trains
    begins, mode, is_followed = begins[keep], mode[keep], is_followed[keep]
    ts = edges.ts[begins]
    has_gradients: Bools = (mode & GRAD_ENABLED) != 0
    return Evaluations(ts, edges.ts[edges.mate[begins]] - ts, has_gradients, is_followed)


def _in_time_order(marks: Marks, problems: list[str]) -> Marks:
    ts = marks.ts_ns.astype(np.int64, copy=False)
    backwards = int((ts[1:] < ts[:-1]).sum())
    if not backwards:
        return marks
    problems.append(f"{backwards} marks are earlier than the mark before them; they were sorted")
    order = np.argsort(ts, kind="stable")
    columns = (ts, marks.code, marks.ref, marks.value, marks.thread)
    return Marks(*(column[order] for column in columns))


def _of_training_thread(marks: Marks, problems: list[str]) -> Edges:
    """The first mark of the run is kept as a moment: explicitly marked steps may begin there."""
    code = np.where((marks.code > 0) & (marks.code < 256), marks.code, NOTHING).astype(np.uint8)
    keep = (marks.thread == _training_thread(marks)) & (code <= LAST_SPAN_CODE)
    keep &= code != NOTHING
    ends_update = code == Mark.UPDATE_ENDED
    if not (keep & ends_update).any() and ends_update.any():
        keep |= _updates_for_others(marks)
    uncounted = int((ends_update & ~keep).sum())
    if uncounted:
        problems.append(
            f"{uncounted} optimizer updates ran on other threads than the training thread;"
            " they are in no step"
        )
    keep |= code == Mark.STEP
    code[:1] = np.where(keep[:1], code[:1], NOTHING)
    keep[:1] = True
    columns = (column[keep].astype(np.int64) for column in (marks.ts_ns, marks.ref, marks.value))
    ts, ref, value = columns
    return Edges(ts, code[keep], ref, value, np.full(len(ts), -1, dtype=np.int64))


def _training_thread(marks: Marks) -> int:
    for sign in _SIGNS_OF_TRAINING:
        thread, count = np.unique(marks.thread[marks.code == sign], return_counts=True)
        if not len(thread):
            continue
        busiest = int(thread[count.argmax()])
        backward_threads = marks.thread[marks.code == Mark.BACKWARD_ENDED]
        if sign != Mark.UPDATE_ENDED or not len(backward_threads):
            return busiest
        if (backward_threads == busiest).any():
            return busiest
    return 0


def _updates_for_others(marks: Marks) -> Bools:
    """Updates on threads that never run backward."""
    is_update: Bools = (marks.code == Mark.UPDATE_BEGAN) | (marks.code == Mark.UPDATE_ENDED)
    backward_threads = in_order_once(marks.thread[marks.code == Mark.BACKWARD_ENDED])
    elsewhere: Bools = ~np.isin(marks.thread, backward_threads)
    is_update &= elsewhere
    return is_update


def _lengths(marks: Marks, mark: Mark, problems: list[str], chosen: Bools | None = None) -> Lengths:
    """From any thread: gradients are reduced on the thread where autograd finished them."""
    at = (marks.code == mark) & (True if chosen is None else chosen)
    ts, length = marks.ts_ns[at].astype(np.int64), marks.value[at].astype(np.int64)
    negative = int((length < 0).sum())
    if negative:
        problems.append(f"{negative} marks {mark.name} have a negative length; left out")
    return Lengths(ts, length)


def _odd_ends(bounds_ts: Ints, alone_ts: Ints) -> list[str]:
    """Before the first whole step and after the last one, unpaired begins and ends are normal."""
    if len(bounds_ts) < 2:
        return []
    odd = int(((alone_ts > bounds_ts[1]) & (alone_ts < bounds_ts[-1])).sum())
    if not odd:
        return []
    return [f"{odd} marks begin or end something whose other end was not recorded; left out"]


def _no_steps(marks: Marks, bounds: Bounds) -> list[str]:
    if len(bounds.at) or not (marks.code == Mark.FORWARD_BEGAN).any():
        return []
    return [
        "no whole training step was seen: no optimizer update and no backward;"
        " call strobe.step() at the end of each step"
    ]
