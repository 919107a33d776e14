"""Steps and phases of a trace that another tool recorded, from the spans it has.

Its spans are read as the marks that our own recorder would have left; what a step is follows from
the marks as ever (ingest/steps/detection.py). Where the user's loop called `profiler.step()`, the
trace has spans `ProfilerStep#N`, and these are the steps.

- update: `Optimizer.step#...`; zero_grad lies in no phase of its own, as in our recordings.
- data: the spans of a DataLoader's `__next__`.
- backward: the nodes that autograd runs, on whichever thread; a stretch of them is one pass.
- forward: the outermost modules on the training thread where the trace has them; else operators
  that could record a gradient, but for those that only move or make tensors. Only what a
  backward pass follows counts, unless nothing in the trace runs backward.
"""

import re
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from strobe.ingest.formats.kinds import BACKWARD_NAMES, KIND
from strobe.ingest.steps import detection as steps
from strobe.ingest.steps import phases as step_phases
from strobe.ingest.steps.bounds import Bounds
from strobe.ingest.steps.detection import Marks, Steps
from strobe.ingest.steps.phases import GAP, REST, Lengths
from strobe.ingest.steps.spans import Edges, training_edges
from strobe.ingest.trace import spans as spans_of
from strobe.ingest.trace.codes import Array, occurring
from strobe.ingest.trace.spans import Spans, Vocabulary
from strobe.model.journal import GRAD_ENABLED, TRAINING_MODE, Mark

_STEP = re.compile(r"ProfilerStep#\d+")
_UPDATE = re.compile(r"Optimizer\.step#")
_ZERO_GRAD = re.compile(r"Optimizer\.zero_grad#")
_NAMED = re.compile("|".join(p.pattern for p in (_STEP, _UPDATE, _ZERO_GRAD)))
_BACKWARD = re.compile("|".join(BACKWARD_NAMES))
# Batches are moved, and scalars read, before the model sees anything.
_PREPARES = re.compile(
    r"aten::(?:to|_to_copy|copy_|_?pin_memory|is_pinned|item|_local_scalar_dense|zero_|fill_"
    r"|(?:zeros|ones|empty|full|rand|new)\w*|arange|detach_?|set_|resize_|lift_fresh|alias"
    r"|is_nonzero|as_strided|record_stream)\Z|detach_?\Z"
)
_TRAINS = GRAD_ENABLED | TRAINING_MODE
_LEFT_OUT = "the profiler stopped at the beginning of the last ProfilerStep: it counts as no step"

# At one moment ends come first, then the borders of steps, then what begins.
_ENDS, _BORDER, _BEGINS = range(3)


@dataclass
class Stretches:
    """Intervals of time, in order of their start."""

    ts: Array
    end: Array

    def __len__(self) -> int:
        return len(self.ts)

    def take(self, chosen: Array) -> "Stretches":
        return Stretches(self.ts[chosen], self.end[chosen])


class _Seen(NamedTuple):
    """What the trace shows of the training, on the thread that trains."""

    steps: Stretches
    data: Stretches
    zero_grad: Stretches
    forward: Stretches
    backward: Stretches
    update: Stretches
    optimizer: Array  # of each update


def telling(spans: Spans, words: Vocabulary) -> Spans:
    """The few spans of a trace, or of a piece of it, that tell what a step is."""
    names = list(words.names)
    host = spans.arg("on_device") <= 0
    marks = (spans.kind == KIND["annotation"]) & _named(spans, names, _NAMED)
    kept = marks | np.isin(spans.kind, (KIND["data"], KIND["module"]))
    op = spans.kind == KIND["op"]
    backward = op & (_named(spans, names, _BACKWARD) | _is_node(spans))
    recording = op & (spans.arg("sequence") >= 0) & ~backward
    # Of operators the outermost ones say it all, and there are too many to keep them all.
    for sort in (backward, recording) if (backward | recording).any() else (op,):
        for track in occurring(spans.track[sort])[0].tolist():
            kept[_outermost(spans, np.flatnonzero(sort & (spans.track == track)))] = True
    found = spans.take(np.flatnonzero(kept & host))
    found.args = {name: found.arg(name) for name in ("sequence", "forward_thread")}
    return found


def runs(found: Spans, words: Vocabulary) -> Spans:
    """The same with each run of operators of one sort, and nothing else in between, as one span.

    Steps come out the same, unless a span that parts the run stands elsewhere in the file.
    """
    names = list(words.names)
    found = found.take(np.lexsort((-found.dur_ns, found.ts_ns)))
    op = found.kind == KIND["op"]
    backward = op & (_named(found, names, _BACKWARD) | _is_node(found))
    plain = op & ~_named(found, names, _PREPARES)
    sort = np.where(plain, np.where(backward, 1, 2), 0)
    others = _stretches(found, np.flatnonzero(~op))
    inside = _has_begun_in(others, Stretches(found.ts_ns, found.ts_ns))
    goes_on = (sort[1:] > 0) & (sort[1:] == sort[:-1]) & (inside[1:] == inside[:-1])
    goes_on &= found.track[1:] == found.track[:-1]
    first = np.flatnonzero(np.append(True, ~goes_on)) if len(found) else np.zeros(0, dtype=np.int64)
    merged = found.take(first)
    if len(first):
        end = np.maximum.reduceat(found.ts_ns + found.dur_ns, first)
        merged.dur_ns = end - merged.ts_ns
    return merged


def steps_of(parts: list[Spans], words: Vocabulary) -> Steps | None:
    """None where the trace shows no training: an inference without marks, a kernel."""
    seen = _seen(spans_of.joined(parts), words)
    if seen is None:
        return None
    if len(seen.steps):
        return _by_profiler_steps(seen)
    if not len(seen.update) and not len(seen.backward):
        return None
    found = steps.decide(_marks(seen))
    return found if len(found.step_ts_ns) else None


def _seen(spans: Spans, words: Vocabulary) -> _Seen | None:
    names = list(words.names)
    annotation = spans.kind == KIND["annotation"]
    step = annotation & _named(spans, names, _STEP)
    update = annotation & _named(spans, names, _UPDATE)
    data = spans.kind == KIND["data"]
    op = spans.kind == KIND["op"]
    backward = op & (_named(spans, names, _BACKWARD) | _is_node(spans))
    recording = op & (spans.arg("sequence") >= 0) & ~backward
    main = _busiest_track(spans, (step, update, data, recording, op))
    if main is None:
        return None
    on_main = spans.track == main
    module = on_main & (spans.kind == KIND["module"])
    model = module if module.any() else on_main & (recording if recording.any() else op)
    model &= ~_named(spans, names, _PREPARES)
    rows = _outermost(spans, np.flatnonzero(update & on_main))
    own = {
        "steps": _apart(_stretches(spans, np.flatnonzero(step & on_main))),
        "data": _apart(_stretches(spans, np.flatnonzero(data & on_main))),
        "zero_grad": _stretches(
            spans, np.flatnonzero(annotation & on_main & _named(spans, names, _ZERO_GRAD))
        ),
        "update": _stretches(spans, rows),
    }
    called = _stretches(spans, np.flatnonzero(model))
    for other in ("data", "update"):  # what prepares a batch or steps is no forward pass
        called = called.take(~_has_begun_in(own[other], called))
    passes = _passes(
        called, _stretches(spans, np.flatnonzero(backward)),
        separators=np.sort(np.concatenate(
            [own["data"].ts, own["update"].ts, own["steps"].ts, own["steps"].end]
        )),
    )  # fmt: skip
    return _Seen(**own, forward=passes[0], backward=passes[1], optimizer=spans.name[rows])


def _is_node(spans: Spans) -> Array:
    """Whether each is a node of the backward graph, which knows the thread of its forward pass."""
    found: Array = (spans.arg("sequence") >= 0) & (spans.arg("forward_thread") > 0)
    return found


def _named(spans: Spans, names: list[str], pattern: re.Pattern[str]) -> Array:
    """Whether the name of each span matches; each name is judged once."""
    matches = np.zeros(len(names) + 1, dtype=np.bool_)
    for number in occurring(spans.name)[0].tolist():
        matches[number] = pattern.match(names[number]) is not None
    found: Array = matches[spans.name]
    return found


def _busiest_track(spans: Spans, signs: tuple[Array, ...]) -> int | None:
    """The track of most of the first of these signs that the trace has."""
    for sign in signs:
        if sign.any():
            tracks, counts = np.unique(spans.track[sign], return_counts=True)
            return int(tracks[counts.argmax()])
    return None


def _stretches(spans: Spans, rows: Array) -> Stretches:
    rows = rows[spans.dur_ns[rows] > 0]
    rows = rows[np.lexsort((-spans.dur_ns[rows], spans.ts_ns[rows]))]
    return Stretches(spans.ts_ns[rows], spans.ts_ns[rows] + spans.dur_ns[rows])


def _outermost(spans: Spans, rows: Array) -> Array:
    """In order of time, without those that lie in another of them."""
    rows = rows[spans.dur_ns[rows] > 0]
    rows = rows[np.lexsort((-spans.dur_ns[rows], spans.ts_ns[rows]))]
    return rows[_reach(spans.ts_ns[rows] + spans.dur_ns[rows]) <= spans.ts_ns[rows]]


def _apart(found: Stretches) -> Stretches:
    return found.take(_reach(found.end) <= found.ts)


def _reach(end: Array) -> Array:
    """How far all before each one reach."""
    lowest = np.iinfo(np.int64).min
    return np.append(lowest, np.maximum.accumulate(end))[:-1] if len(end) else end


def _has_begun_in(around: Stretches, found: Stretches) -> Array:
    """Which of the stretches begin while one of those around is going on."""
    if not len(around):
        return np.zeros(len(found), dtype=np.bool_)
    place = np.searchsorted(around.ts, found.ts, side="right") - 1
    reach = np.maximum.accumulate(around.end)
    inside: Array = (place >= 0) & (reach[place] > found.ts)
    return inside


def _passes(model: Stretches, nodes: Stretches, separators: Array) -> tuple[Stretches, Stretches]:
    """Forward and backward passes: runs of the same, with nothing else between them."""
    # What a backward pass calls again (checkpointing) is part of it.
    model = model.take(~_has_begun_in(nodes, model))
    ts = np.concatenate([model.ts, nodes.ts])
    end = np.concatenate([model.end, nodes.end])
    is_backward = np.arange(len(ts)) >= len(model)
    order = np.argsort(ts, kind="stable")
    ts, end, is_backward = ts[order], end[order], is_backward[order]
    part = np.searchsorted(separators, ts, side="right")
    if not len(ts):
        return model, nodes
    change = (is_backward[1:] != is_backward[:-1]) | (part[1:] != part[:-1])
    first = np.flatnonzero(np.append(True, change))
    limit = np.append(separators, np.iinfo(np.int64).max)[part[first]]
    following = np.append(ts[first[1:]], np.iinfo(np.int64).max)
    end = np.minimum(np.minimum(np.maximum.reduceat(end, first), limit), following)
    runs = Stretches(ts[first], end)
    backward = is_backward[first]
    followed = np.append(backward[1:] & (part[first[1:]] == part[first[:-1]]), False)
    forward = ~backward & (followed if backward.any() else True)
    return runs.take(forward), runs.take(backward)


def _marks(seen: _Seen) -> Marks:
    parts = [
        *_pair(seen.data, Mark.DATA_ASKED, values=(-1, 1)),
        *_pair(seen.forward, Mark.FORWARD_BEGAN, values=(_TRAINS, 1)),
        *_pair(seen.backward, Mark.BACKWARD_BEGAN),
        *_pair(seen.update, Mark.UPDATE_BEGAN, ref=seen.optimizer),
        _columns(seen.zero_grad.ts, Mark.ZERO_GRAD, _BEGINS,
                 value=seen.zero_grad.end - seen.zero_grad.ts),
        _columns(seen.steps.ts, Mark.STEP, _BORDER),
        _columns(seen.steps.end, Mark.STEP, _BORDER),
    ]  # fmt: skip
    ts, code, place, ref, value = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((place, ts))
    thread = np.zeros(len(ts), dtype=np.int64)
    return Marks(ts[order], code[order], ref[order], value[order], thread)


def _pair(
    found: Stretches, begins: Mark, values: tuple[int, int] = (0, 0), ref: Array | None = None
) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    return (
        _columns(found.ts, begins, _BEGINS, ref, values[0]),
        _columns(found.end, begins + 1, _ENDS, ref, values[1]),
    )


def _columns(
    ts: Array, code: int, place: int, ref: Array | None = None, value: "int | Array" = 0
) -> tuple[Array, ...]:
    count = len(ts)
    given = ref if ref is not None else np.zeros(count, dtype=np.int64)
    return ts, np.full(count, code), np.full(count, place), given, np.full(count, value)


def _by_profiler_steps(seen: _Seen) -> Steps:
    """The spans ProfilerStep#N as they are; the moments between them belong to no step."""
    problems = []
    working = _has_any(seen.steps, seen.forward, seen.backward, seen.update)
    if working[:-1].any() and not working[-1]:
        problems = [_LEFT_OUT]
        seen = seen._replace(steps=Stretches(seen.steps.ts[:-1], seen.steps.end[:-1]))
        working = working[:-1]
    whole = seen.steps
    seen = seen._replace(
        optimizer=seen.optimizer[_place(whole, seen.update) >= 0],
        **{name: _within(whole, getattr(seen, name))
           for name in ("data", "zero_grad", "forward", "backward", "update")},
    )  # fmt: skip
    marks = _marks(seen)
    at = marks.code != Mark.ZERO_GRAD
    unmatched = np.full(int(at.sum()), -1, dtype=np.int64)
    edges, _ = training_edges(
        Edges(marks.ts_ns[at], marks.code[at].astype(np.uint8), marks.ref[at], marks.value[at],
              unmatched)
    )  # fmt: skip
    borders = edges.at(Mark.STEP)
    bounds = Bounds(borders, np.ones(len(borders), dtype=np.bool_))
    nothing = Lengths(whole.ts[:0], whole.ts[:0])
    cleared = Lengths(seen.zero_grad.ts, seen.zero_grad.end - seen.zero_grad.ts)
    phases = step_phases.of_steps(edges, bounds, nothing, nothing, cleared)
    mine = phases.step % 2 == 1  # every other stretch between two borders is a step
    step = (phases.step[mine] + 1) // 2
    quiet = ~working & ~_has_any(whole, seen.data)
    name = np.where(quiet[step - 1] & (phases.name[mine] == GAP), REST, phases.name[mine])
    return Steps(
        whole.ts, whole.end - whole.ts, step, name, phases.ts[mine], phases.dur[mine], problems
    )


def _place(steps: Stretches, found: Stretches) -> Array:
    """The step in which each stretch begins, counted from 0; -1 outside all of them."""
    place = np.searchsorted(steps.ts, found.ts, side="right") - 1
    return np.where((place >= 0) & (found.ts < steps.end[place]), place, -1)


def _within(steps: Stretches, found: Stretches) -> Stretches:
    """Those that begin in a step, cut where it ends."""
    place = _place(steps, found)
    inside = place >= 0
    end = np.minimum(found.end[inside], steps.end[place[inside]])
    return Stretches(found.ts[inside], end)


def _has_any(steps: Stretches, *kinds: Stretches) -> Array:
    result = np.zeros(len(steps), dtype=np.bool_)
    for found in kinds:
        place = _place(steps, found)
        result[place[place >= 0]] = True
    return result
