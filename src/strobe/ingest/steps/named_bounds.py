"""FP_POINT and BP_POINT: the operators that begin the forward and end the backward pass, by name.

A point is the name of an operator, `aten::conv2d`, or with its module in front,
`Net.features.0/aten::conv2d`. Only steps with recorded operators can be changed.
"""

import itertools
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from strobe.ingest.formats.kinds import KIND
from strobe.ingest.steps.detection import Steps
from strobe.ingest.trace.codes import Array
from strobe.ingest.trace.problems import Problems
from strobe.ingest.trace.spans import Spans, Vocabulary
from strobe.model.schema import PHASES

_GAP, _FORWARD, _BACKWARD, _UPDATE, _REST = (
    PHASES.index(name) for name in ("gap", "forward", "backward", "update", "rest")
)


class Stretch(NamedTuple):
    name: int
    start: int
    end: int


def moved(
    steps: Steps, spans: Spans, scope: Array, words: Vocabulary, said: Problems,
    *, forward_point: str | None, backward_point: str | None,
) -> Steps:  # fmt: skip
    """The steps with the bounds of their phases at the named operators."""
    begins = _first_starts(steps, spans, _named(forward_point, spans, scope, words))
    ends = _last_ends(steps, spans, _named(backward_point, spans, scope, words))
    for variable, point, found in (
        ("FP_POINT", forward_point, begins), ("BP_POINT", backward_point, ends),
    ):  # fmt: skip
        if point and not found:
            said.add(variable, f"no recorded operator is called {point!r}; it was left out")
    if not begins and not ends:
        return steps
    rows: list[tuple[int, Stretch]] = []
    columns = (steps.phase_step, steps.phase_name, steps.phase_ts_ns, steps.phase_dur_ns)
    every = zip(*(column.tolist() for column in columns), strict=True)
    for step, group in itertools.groupby(every, key=lambda row: row[0]):
        stretches = [Stretch(name, ts, ts + dur) for _, name, ts, dur in group]
        if step in begins:
            stretches = _with_forward_from(stretches, begins[step])
        if step in ends:
            stretches = _with_backward_until(stretches, ends[step])
        rows.extend((step, stretch) for stretch in stretches)
    return replace(
        steps,
        phase_step=np.array([step for step, _ in rows], dtype=np.int64),
        phase_name=np.array([s.name for _, s in rows], dtype=np.int64),
        phase_ts_ns=np.array([s.start for _, s in rows], dtype=np.int64),
        phase_dur_ns=np.array([s.end - s.start for _, s in rows], dtype=np.int64),
    )


def _named(point: str | None, spans: Spans, scope: Array, words: Vocabulary) -> Array:
    """Rows of the operators that a point names."""
    if not point:
        return np.zeros(0, dtype=np.int64)
    module, _, name = point.rpartition("/")
    names, scopes = list(words.names), list(words.scopes)
    if name not in names or (module and module not in scopes):
        return np.zeros(0, dtype=np.int64)
    chosen = (spans.kind == KIND["op"]) & (spans.name == names.index(name))
    if module:
        chosen &= scope == scopes.index(module)
    return np.flatnonzero(chosen)


def _step_of(steps: Steps, ts_ns: Array) -> Array:
    """The step that contains each moment; 0 for none."""
    step = np.searchsorted(steps.step_ts_ns, ts_ns, side="right")
    inside = step > 0
    at = np.maximum(step - 1, 0)
    if len(steps.step_ts_ns):
        inside &= ts_ns < steps.step_ts_ns[at] + steps.step_dur_ns[at]
    return np.where(inside, step, 0)


def _first_starts(steps: Steps, spans: Spans, rows: Array) -> dict[int, int]:
    starts = spans.ts_ns[rows]
    order = np.argsort(-starts, kind="stable")  # the earliest last, so that it wins
    numbers = _step_of(steps, starts)
    found = dict(zip(numbers[order].tolist(), starts[order].tolist(), strict=True))
    found.pop(0, None)
    return found


def _last_ends(steps: Steps, spans: Spans, rows: Array) -> dict[int, int]:
    ends = spans.ts_ns[rows] + spans.dur_ns[rows]
    order = np.argsort(ends, kind="stable")
    numbers = _step_of(steps, spans.ts_ns[rows])
    found = dict(zip(numbers[order].tolist(), ends[order].tolist(), strict=True))
    found.pop(0, None)
    return found


def _with_forward_from(stretches: list[Stretch], begin: int) -> list[Stretch]:
    forward = [stretch.start for stretch in stretches if stretch.name == _FORWARD]
    first, last = stretches[0].start, stretches[-1].end
    result = _painted(stretches, first, begin, {_FORWARD}, _GAP)
    return _painted(result, begin, min(forward, default=last), {_GAP, _REST}, _FORWARD)


def _with_backward_until(stretches: list[Stretch], end: int) -> list[Stretch]:
    backward = [stretch.end for stretch in stretches if stretch.name == _BACKWARD]
    last = stretches[-1].end
    result = _painted(stretches, end, last, {_BACKWARD}, _UPDATE)
    return _painted(result, max(backward, default=last), end, {_UPDATE, _REST}, _BACKWARD)


def _painted(
    stretches: list[Stretch], start: int, end: int, old: set[int], new: int
) -> list[Stretch]:
    """Replace a phase between two moments by another one; equal neighbours are merged."""
    pieces: list[Stretch] = []
    for name, first, last in stretches:
        if name not in old or last <= start or first >= end:
            pieces.append(Stretch(name, first, last))
            continue
        middle = (max(first, start), min(last, end))
        pieces += [
            piece
            for piece in (
                Stretch(name, first, middle[0]), Stretch(new, *middle),
                Stretch(name, middle[1], last),
            )
            if piece.end > piece.start
        ]  # fmt: skip
    joined: list[Stretch] = []
    for piece in pieces:
        if joined and joined[-1].name == piece.name:
            piece = Stretch(piece.name, joined.pop().start, piece.end)
        joined.append(piece)
    return joined
