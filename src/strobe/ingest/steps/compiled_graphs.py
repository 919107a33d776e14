"""The phases inside compiled graphs: marks show when a graph ran, its operators what it did.

If a window has the operators of a run, they divide it into phases. A graph runs the same operators
every time, so its other runs are divided in the same proportions. Compilations inside a run, and
the runs of a graph whose operators were never recorded, are in `rest`. A run during which a window
began or ended lacks operators, so it does not count as recorded.

A graph may still be running when its call has returned and the call of the optimizer's graph waits
for it: the two are divided as one.
"""

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from strobe.ingest.formats.kinds import KIND
from strobe.ingest.formats.mindspore import phases as phases_of
from strobe.ingest.formats.mindspore.phases import Work
from strobe.ingest.recording.journal_reader import Journal
from strobe.ingest.recording.mark_counters import pairs
from strobe.ingest.steps.detection import Steps
from strobe.ingest.steps.phases import ALL_REDUCE, BACKWARD, FORWARD, GAP, REST, UPDATE
from strobe.ingest.trace.codes import Array
from strobe.ingest.trace.spans import Spans
from strobe.model.journal import COMPILATION, GRAPH_FORWARD, GRAPH_PARTS_BITS, Mark

# In the order in which a graph goes through them.
_ORDER = (FORWARD, BACKWARD, ALL_REDUCE, UPDATE)

# What the marks of a run call it if nothing better is known.
_CALLED = (BACKWARD, UPDATE)


class Piece(NamedTuple):
    phase: int
    begin: int
    end: int


class Run(NamedTuple):
    graphs: tuple[int, ...]
    begin: int  # if it was compiled first: when it started to run
    end: int


def divided(
    steps: Steps, marks: Journal, ts_ns: Array, found: list[Spans],
    unknown: Collection[int] = (),
) -> Steps:  # fmt: skip
    """Steps whose phases follow the operators of graphs; `ts_ns` of marks is in run time.

    For `unknown` graphs it is not known which operators belong to which.
    """
    if not (marks.code == Mark.GRAPH).any() or not len(steps.step_ts_ns):
        return steps
    runs, compiling = _runs(marks, ts_ns, steps)
    seen = _seen(runs, _work(found), _windows(marks, ts_ns))
    seen = {place: of for place, of in seen.items() if not {*runs[place].graphs} & {*unknown}}
    shares = _shares(runs, seen)
    pieces = compiling + [
        piece
        for place, run in enumerate(runs)
        for piece in seen.get(place) or _in_proportion(run, shares.get(run.graphs, {}))
    ]
    pieces.sort(key=lambda piece: piece.begin)
    return _laid(steps, pieces)


def _runs(marks: Journal, ts_ns: Array, steps: Steps) -> tuple[list[Run], list[Piece]]:
    """All runs of graphs, and the intervals in which they were compiled."""
    at = np.flatnonzero(marks.code == Mark.GRAPH)
    names = [ref for ref, (_, text) in marks.strings.items() if text.startswith(COMPILATION)]
    ends_compiling = (marks.code == Mark.SCOPE_ENDED) & np.isin(marks.ref, names)
    compiled_ns = ts_ns[ends_compiling]
    step = np.searchsorted(steps.step_ts_ns, ts_ns[at], side="right").tolist()
    columns = (marks.ref[at], ts_ns[at], marks.value[at])
    runs: list[Run] = []
    compiling: list[Piece] = []
    last_step = -1
    for place, (graph, begin, value) in enumerate(zip(*(c.tolist() for c in columns), strict=True)):
        end = begin + (value >> GRAPH_PARTS_BITS)
        inside = compiled_ns[(compiled_ns > begin) & (compiled_ns <= end)]
        start = int(inside.max()) if len(inside) else begin
        if start > begin:
            compiling.append(Piece(REST, begin, start))
        if value & GRAPH_FORWARD:
            runs.append(Run((graph,), start, end))
            last_step = step[place]
        elif step[place] == last_step:
            runs[-1] = Run((*runs[-1].graphs, graph), runs[-1].begin, end)
    return runs, compiling


def _work(found: list[Spans]) -> Work:
    """The operators of all windows that show which part of a step they are."""
    parts = []
    for spans in found:
        collective = spans.kind == KIND["collective"]
        rows = np.flatnonzero((spans.arg("part") >= 0) | collective)
        part = np.maximum(spans.arg("part")[rows], 0)
        ends = (spans.ts_ns + spans.dur_ns)[rows]
        parts.append(Work(spans.ts_ns[rows], ends, part, collective[rows]))
    if not parts:
        nothing = np.zeros(0, dtype=np.int64)
        return Work(nothing, nothing, nothing, nothing.astype(np.bool_))
    whole = Work(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
    return whole.take(np.argsort(whole.ts_ns, kind="stable"))


def _windows(marks: Journal, ts_ns: Array) -> tuple[Array, Array]:
    """When each began to record, in order, and when it ended."""
    first, last = pairs(
        marks.code == Mark.WINDOW_BEGAN, marks.code == Mark.WINDOW_ENDED, marks.value
    )
    order = np.argsort(ts_ns[first], kind="stable")
    return ts_ns[first[order]], ts_ns[last[order]]


def _seen(runs: list[Run], work: Work, windows: tuple[Array, Array]) -> dict[int, list[Piece]]:
    """For each run, by its position, the pieces in which operators with a known part ran."""
    begins, ends = windows
    if not len(work.ts_ns) or not len(begins):
        return {}
    window = np.searchsorted(begins, [run.begin for run in runs], side="right") - 1
    is_inside = (window >= 0) & ([run.end for run in runs] <= ends[window])
    places = [place for place in np.flatnonzero(is_inside).tolist() if _has_work(runs[place], work)]
    told = phases_of.steps([(runs[p].begin, runs[p].end) for p in places], work)
    pieces: dict[int, list[Piece]] = {}
    columns = (told.phase_step, told.phase_name, told.phase_ts_ns, told.phase_dur_ns)
    for number, phase, begin, length in zip(*(c.tolist() for c in columns), strict=True):
        pieces.setdefault(places[number - 1], []).append(Piece(phase, begin, begin + length))
    return {place: _without_edges(of_run) for place, of_run in pieces.items()}


def _has_work(run: Run, work: Work) -> bool:
    begin, end = np.searchsorted(work.ts_ns, [run.begin, run.end])
    return bool((work.part[begin:end] > 0).any())


def _without_edges(pieces: list[Piece]) -> list[Piece]:
    """Starting a graph belongs to the first of its parts, leaving it to the last."""
    inner = [piece for piece in pieces if piece.phase not in (GAP, REST)]
    if not inner:
        return pieces
    first, last = inner[0], inner[-1]
    result = []
    for piece in pieces:
        if piece.end <= first.begin:
            piece = piece._replace(phase=first.phase)
        elif piece.begin >= last.end:
            piece = piece._replace(phase=last.phase)
        result.append(piece)
    return result


def _shares(
    runs: list[Run], seen: dict[int, list[Piece]]
) -> dict[tuple[int, ...], dict[int, float]]:
    """For each graph, the share of its time in each phase."""
    sums: dict[tuple[int, ...], dict[int, int]] = {}
    for place, pieces in seen.items():
        of_graph = sums.setdefault(runs[place].graphs, {})
        for phase, begin, end in pieces:
            of_graph[phase] = of_graph.get(phase, 0) + end - begin
    return {
        graphs: {phase: ns / max(1, sum(of_graph.values())) for phase, ns in of_graph.items()}
        for graphs, of_graph in sums.items()
    }


def _in_proportion(run: Run, shares: dict[int, float]) -> Iterator[Piece]:
    begin, length, passed = run.begin, run.end - run.begin, 0.0
    for phase in (*_ORDER, REST):
        passed += shares.get(phase, 0.0)
        end = run.end if phase == REST else run.begin + round(length * passed)
        if end > begin:
            yield Piece(phase, begin, end)
            begin = end


def _laid(steps: Steps, pieces: list[Piece]) -> Steps:
    """The phases of steps, with pieces that replace what the marks called them."""
    rows: list[tuple[int, int, int, int]] = []  # step, phase, begin, end
    place = 0
    columns = (steps.phase_step, steps.phase_name, steps.phase_ts_ns, steps.phase_dur_ns)
    for step, phase, begin, length in zip(*(c.tolist() for c in columns), strict=True):
        end = begin + length
        if phase not in _CALLED:
            _add(rows, step, phase, begin, end)
            continue
        while place < len(pieces) and pieces[place].end <= begin:
            place += 1
        following = place
        while begin < end:
            piece = pieces[following] if following < len(pieces) else None
            if piece is None or piece.begin >= end:
                _add(rows, step, phase, begin, end)
                break
            _add(rows, step, phase, begin, max(begin, piece.begin))
            until = min(end, piece.end)
            _add(rows, step, piece.phase, max(begin, piece.begin), until)
            begin, following = until, following + 1
    table = np.array(rows, dtype=np.int64).reshape(-1, 4).T
    return replace(
        steps, phase_step=table[0], phase_name=table[1], phase_ts_ns=table[2],
        phase_dur_ns=table[3] - table[2],
    )  # fmt: skip


def _add(
    rows: list[tuple[int, int, int, int]], step: int, phase: int, begin: int, end: int
) -> None:
    if end <= begin:
        return
    if rows and rows[-1][:2] == (step, phase):  # the same phase continues
        rows[-1] = (*rows[-1][:3], end)
    else:
        rows.append((step, phase, begin, end))
