"""What the time of each step was spent on."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from strobe.ingest.steps.bounds import Bounds
from strobe.ingest.steps.spans import (
    EVALUATION_BEGAN,
    Bools,
    Bytes,
    Edges,
    Ints,
    with_codes,
)
from strobe.model.journal import Mark
from strobe.model.schema import PHASES

GAP, FORWARD, BACKWARD, ALL_REDUCE, UPDATE, REST, RECORDER = (
    PHASES.index(name)
    for name in ("gap", "forward", "backward", "all_reduce", "update", "rest", "recorder")
)

Bits = npt.NDArray[np.uint16]

# Ongoing activities: a bit that is toggled at the first and the last edge of each.
IN_DATA, IN_FORWARD, IN_EVALUATION, IN_BACKWARD, IN_UPDATE, IN_COLLECTIVE, IN_ALL_REDUCE = (
    1 << bit for bit in range(7)
)
IN_CLOSURE_UPDATE = 1 << 7  # an update that runs forward and backward itself
IN_RECORDER = 1 << 8
IN_ZERO_GRAD = 1 << 9
IN_RECORDER_BESIDE = 1 << 10

_TURNS_OVER = {
    Mark.DATA_ASKED: IN_DATA,
    Mark.FORWARD_BEGAN: IN_FORWARD,
    EVALUATION_BEGAN: IN_EVALUATION,
    Mark.BACKWARD_BEGAN: IN_BACKWARD,
    Mark.UPDATE_BEGAN: IN_UPDATE,
    Mark.COLLECTIVE_BEGAN: IN_COLLECTIVE,
}

_TRAINING_EDGES = (
    Mark.FORWARD_BEGAN,
    Mark.BACKWARD_BEGAN,
    Mark.BACKWARD_ENDED,
    Mark.UPDATE_BEGAN,
    Mark.UPDATE_ENDED,
)


class Lengths(NamedTuple):
    """Spans recorded by a single mark, in time order: the start and the length of each."""

    ts: Ints
    length: Ints


class Phases(NamedTuple):
    step: Ints
    name: Ints
    ts: Ints
    dur: Ints


NO_PHASES = Phases(*(np.empty(0, dtype=np.int64) for _ in range(4)))


class _Stretches(NamedTuple):
    """The time from each edge to the next: what is going on, what came last, what comes next."""

    ts: Ints
    step: Ints
    state: Bits
    last: Bytes  # the last training edge of the step so far, 0 if none
    coming: Bytes  # its next one, 0 if none
    consumer: Bytes  # its next one that does not begin a forward


def of_steps(
    edges: Edges, bounds: Bounds, all_reduce: Lengths, own_work: Lengths, zero_grad: Lengths,
    beside: Lengths | None = None,
) -> Phases:  # fmt: skip
    """`beside`: our own work on another thread; it blocks only a training that is idle."""
    if not len(bounds.at):
        return NO_PHASES
    bounds_ts = edges.ts[bounds.at]
    reduced = _edges_within(all_reduce, bounds_ts)
    recorded = _edges_within(own_work, bounds_ts[[0, -1]])
    nothing = np.empty(0, dtype=np.int64)
    recorded_beside = _edges_within(beside or Lengths(nothing, nothing), bounds_ts[[0, -1]])
    cleared = _edges_within(zero_grad, bounds_ts)
    extra = (reduced, recorded, recorded_beside, cleared)
    bits = [IN_ALL_REDUCE, IN_RECORDER, IN_RECORDER_BESIDE, IN_ZERO_GRAD]
    extra_turns = np.repeat(bits, [len(part) for part in extra])
    stretches = _stretches(edges, bounds, np.concatenate(extra), extra_turns)
    name = _name(stretches, has_updates=bool(len(edges.at(Mark.UPDATE_ENDED))))
    ts, step = stretches.ts, stretches.step
    length = np.append(np.diff(ts), 0)
    keep = (step > 0) & (step < len(bounds.at)) & (length > 0)
    ts, step, name = ts[keep], step[keep], name[keep]
    if not len(ts):
        return NO_PHASES
    changes = np.append(True, (step[1:] != step[:-1]) | (name[1:] != name[:-1]))
    ts, step, name = ts[changes], step[changes], name[changes]
    dur = np.diff(ts, append=edges.ts[bounds.at[-1]])
    return Phases(step, name.astype(np.int64), ts, dur)


def _stretches(edges: Edges, bounds: Bounds, extra: Ints, extra_turns: Ints) -> _Stretches:
    """`extra`: further moments, and the bits that they toggle."""
    is_bound = np.zeros(len(edges.code), dtype=np.uint8)
    is_bound[bounds.at] = 1
    closes = np.zeros(len(edges.code), dtype=np.bool_)
    closes[bounds.at] = bounds.closes
    turns, opens_closure = _turns(edges)
    training = np.where(
        with_codes(edges.code, *_TRAINING_EDGES) & ~opens_closure, edges.code, 0
    ).astype(np.uint8)

    ts = edges.ts
    if len(extra):
        ts = np.append(ts, extra)
        order = np.argsort(ts, kind="stable")
        ts = ts[order]
        padding = np.zeros(len(extra), dtype=np.uint8)
        turns = np.append(turns, extra_turns.astype(np.uint16))[order]
        training = np.append(training, padding)[order]
        is_bound = np.append(is_bound, padding)[order]
        closes = np.append(closes, padding.astype(np.bool_))[order]

    step = np.cumsum(is_bound, dtype=np.int64)
    last, coming = _around(training, step, closes)
    consumer = _around(np.where(training == Mark.FORWARD_BEGAN, 0, training), step, closes)[1]
    return _Stretches(ts, step, np.bitwise_xor.accumulate(turns), last, coming, consumer)


def _turns(edges: Edges) -> tuple[Bits, Bools]:
    """The bits that each edge toggles; and which edges begin an update that runs a closure."""
    table = np.zeros(256, dtype=np.uint16)
    for began, bit in _TURNS_OVER.items():
        table[began] = table[began + 1] = bit
    turns = table[edges.code]
    begins = edges.at(Mark.UPDATE_BEGAN)
    work = edges.at(Mark.FORWARD_BEGAN, Mark.BACKWARD_BEGAN)
    ends = edges.mate[begins]
    runs_closure = np.searchsorted(work, ends) > np.searchsorted(work, begins)
    opens_closure = np.zeros(len(turns), dtype=np.bool_)
    opens_closure[begins[runs_closure]] = True
    turns[begins[runs_closure]] = turns[ends[runs_closure]] = IN_CLOSURE_UPDATE
    return turns, opens_closure


def _edges_within(spans: Lengths, bounds_ts: Ints) -> Ints:
    """Starts and ends, cut at the bounds that enclose their start, without overlaps."""
    ts, length = spans
    part = np.searchsorted(bounds_ts, ts, side="right")
    within = (part > 0) & (part < len(bounds_ts)) & (length > 0)
    ts, length, part = ts[within], length[within], part[within]
    if not len(ts):
        return ts
    end = np.maximum.accumulate(ts + np.minimum(length, bounds_ts[part] - ts))
    start = np.maximum(ts, np.append(ts[0], end[:-1]))
    return np.stack([start, end], axis=1).ravel()


def _around(training: Bytes, step: Ints, closes: Bools) -> tuple[Bytes, Bytes]:
    """For each stretch, the training edge before it and the one after it, within its step."""
    count = len(training)
    position = np.arange(count)
    is_edge = training != 0
    edge_step = step - closes
    earlier = np.maximum.accumulate(np.where(is_edge, position, 0))
    known = (training[earlier] != 0) & (edge_step[earlier] == step)
    last = np.where(known, training[earlier], 0).astype(np.uint8)
    later = np.minimum.accumulate(np.where(is_edge, position, count - 1)[::-1])[::-1]
    later = np.append(later[1:], count - 1)
    known = (training[later] != 0) & (edge_step[later] == step) & (later > position)
    return last, np.where(known, training[later], 0).astype(np.uint8)


def _name(stretches: _Stretches, *, has_updates: bool) -> Bytes:
    _, _, state, last, coming, consumer = stretches

    def during(bits: int) -> Bools:
        result: Bools = (state & bits) != 0
        return result

    after_forward = last == Mark.FORWARD_BEGAN
    nothing_yet = last == 0
    learned = with_codes(last, Mark.BACKWARD_ENDED, Mark.UPDATE_ENDED)
    forward = after_forward & (consumer == Mark.BACKWARD_BEGAN)
    forward |= (after_forward | nothing_yet) & during(IN_FORWARD)
    tail = learned & (coming == Mark.UPDATE_BEGAN)
    if not has_updates:
        tail |= learned & (coming == 0)

    name = np.full(len(state), REST, dtype=np.uint8)
    name[tail & ~during(IN_EVALUATION)] = UPDATE
    name[during(IN_CLOSURE_UPDATE)] = UPDATE
    name[nothing_yet] = GAP
    # Gradients are often cleared between the two passes: that belongs to neither.
    name[forward & ~during(IN_ZERO_GRAD)] = FORWARD
    name[during(IN_BACKWARD)] = BACKWARD
    name[during(IN_UPDATE)] = UPDATE
    name[during(IN_COLLECTIVE | IN_ALL_REDUCE) & ~nothing_yet] = ALL_REDUCE
    name[during(IN_DATA)] = GAP
    name[during(IN_RECORDER_BESIDE) & (name == GAP) & ~during(IN_DATA)] = RECORDER
    name[during(IN_RECORDER)] = RECORDER
    return name
