"""When did compiled graphs really run, if their calls return before the graph has ended?

MindSpore returns from a call when the result (the loss) is ready. Backward pass and update
continue, and the next call waits for them, so the marks of such a call (UPDATE_RAN_ON) end too
early. Inside a window the operators show when each graph began and ended: a graph runs the same
operators each time, one run after the other. Other calls are moved in proportion. If the operators
cannot be matched to the calls, nothing is moved, and the phases of these graphs are unknown.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from strobe.ingest.formats.kinds import KIND
from strobe.ingest.formats.mindspore.names import FORWARD, UPDATE
from strobe.ingest.formats.mindspore.phases import PARTS
from strobe.ingest.recording.journal_reader import Journal
from strobe.ingest.recording.mark_counters import pairs
from strobe.ingest.trace.codes import Array
from strobe.ingest.trace.spans import Spans
from strobe.model.journal import (
    GRAPH_FORWARD,
    GRAPH_PARTS_BITS,
    GRAPH_UPDATE,
    UPDATE_RAN_ON,
    Mark,
)

# What the training thread does while the graph still runs costs no time of its own.
_CLIPPED = (
    Mark.DATA_ASKED, Mark.DATA_CAME, Mark.FORWARD_BEGAN, Mark.FORWARD_ENDED, Mark.BACKWARD_BEGAN,
    Mark.BACKWARD_ENDED, Mark.UPDATE_BEGAN, Mark.UPDATE_ENDED, Mark.WINDOW_ENDED,
)  # fmt: skip

_PARTS = (1 << GRAPH_PARTS_BITS) - 1

# A graph that ends at most this long after its call did not run on. In nanoseconds.
_SHORTEST_NS = 50_000


class Call(NamedTuple):
    """A call of a graph, or of a graph followed by that of its optimizer."""

    graphs: tuple[int, ...]
    marks: tuple[int, ...]  # positions of their marks
    begin: int
    end: int
    ran_on: bool


class Execution(NamedTuple):
    begin: int
    end: int


class Ends(NamedTuple):
    """The marks with their times moved to when graphs ran; and the graphs that are unknown."""

    marks: Journal
    ts_ns: Array
    unknown: frozenset[int]


def moved(marks: Journal, ts_ns: Array, found: list[Spans]) -> Ends:
    calls = _calls(marks, ts_ns)
    if not any(call.ran_on for call in calls):
        return Ends(marks, ts_ns, frozenset())
    executions, unmatched = _executions(marks, ts_ns, calls, found)
    known = {graph for place in executions for graph in calls[place].graphs}
    unknown = frozenset(
        graph for place in unmatched for graph in calls[place].graphs if calls[place].ran_on
    )
    ends = _ends(calls, executions, _begins_of_windows(marks, ts_ns), int(ts_ns.max()))
    return Ends(*_applied(marks, ts_ns, calls, ends, executions), unknown - known)


def _calls(marks: Journal, ts_ns: Array) -> list[Call]:
    updates = np.flatnonzero(marks.code == Mark.UPDATE_ENDED).tolist()
    ended = {(int(marks.ref[at]), int(marks.ts_ns[at])): at for at in updates}
    found: list[Call] = []
    open_call: Call | None = None
    for at in np.flatnonzero(marks.code == Mark.GRAPH).tolist():
        graph, value, begin = int(marks.ref[at]), int(marks.value[at]), int(ts_ns[at])
        length = value >> GRAPH_PARTS_BITS
        update = ended.get((graph, int(marks.ts_ns[at]) + length))
        runs_on = update is not None and int(marks.value[update]) == UPDATE_RAN_ON
        end = begin + length if update is None else int(ts_ns[update])
        call = Call((graph,), (at,), begin, end, runs_on)
        if open_call is not None and not value & GRAPH_FORWARD:
            call = Call(
                (*open_call.graphs, graph), (*open_call.marks, at), open_call.begin, call.end,
                runs_on,
            )  # fmt: skip
        open_call = None if value & GRAPH_UPDATE else call
        if value & GRAPH_UPDATE:
            found.append(call)
    return found


def _windows(marks: Journal, ts_ns: Array) -> list[tuple[int, int, int]]:
    """For each: when it began and ended, and until when its operators may run."""
    began, ended = marks.code == Mark.WINDOW_BEGAN, marks.code == Mark.WINDOW_ENDED
    first, last = pairs(began, ended, marks.value)
    edges = sorted(zip(ts_ns[first].tolist(), ts_ns[last].tolist(), strict=True))
    nexts = ([begin for begin, _ in edges] + [int(ts_ns.max()) + 1])[1:]
    return [(begin, end, until) for (begin, end), until in zip(edges, nexts, strict=True)]


def _begins_of_windows(marks: Journal, ts_ns: Array) -> Array:
    return np.sort(ts_ns[marks.code == Mark.WINDOW_BEGAN])


def _executions(
    marks: Journal, ts_ns: Array, calls: list[Call], found: list[Spans]
) -> tuple[dict[int, Execution], list[int]]:
    """By the position of the call; and the positions of calls whose operators could not
    be matched.
    """
    executions: dict[int, Execution] = {}
    unmatched: list[int] = []
    for begin, end, until in _windows(marks, ts_ns):
        places = [n for n, call in enumerate(calls) if begin <= call.begin < end]
        operators = _operators(found, begin, until)
        if not places or not len(operators.ts_ns):
            continue
        cuts = _alike(operators, len(places)) or _turns(operators)
        if len(cuts) != len(places):
            unmatched += places
            continue
        ends = [*cuts[1:], len(operators.ts_ns)]
        for place, first, last in zip(places, cuts, ends, strict=True):
            done = int(operators.end_ns[first:last].max())
            executions[place] = Execution(int(operators.ts_ns[first]), done)
    return executions, unmatched


class _Operators(NamedTuple):
    ts_ns: Array
    end_ns: Array
    name: Array
    part: Array


def _operators(found: list[Spans], begin: int, until: int) -> _Operators:
    parts = []
    for spans in found:
        is_one = np.isin(spans.kind, [KIND["op"], KIND["collective"]]) & (spans.arg("part") >= 0)
        rows = np.flatnonzero(is_one & (spans.ts_ns >= begin) & (spans.ts_ns < until))
        ends = spans.ts_ns[rows] + spans.dur_ns[rows]
        parts.append(np.stack([spans.ts_ns[rows], ends, spans.name[rows], spans.arg("part")[rows]]))
    table = np.concatenate([np.zeros((4, 0), dtype=np.int64), *parts], axis=1)
    return _Operators(*table[:, np.argsort(table[0], kind="stable")])


def _alike(operators: _Operators, count: int) -> list[int]:
    """The start of each of this many runs of the same operators; empty if they are not the same."""
    total = len(operators.name)
    if total % count:
        return []
    names = np.sort(operators.name.reshape(count, -1), axis=1)
    return list(range(0, total, total // count)) if (names == names[0]).all() else []


def _turns(operators: _Operators) -> list[int]:
    """Where a forward pass follows an update."""
    rows = np.flatnonzero(np.isin(operators.part, [PARTS.index(FORWARD), PARTS.index(UPDATE)]))
    updates = operators.part[rows] == PARTS.index(UPDATE)
    follows = rows[1:][updates[:-1] & ~updates[1:]]
    return [0, *follows.tolist()] if updates.any() else []


def _ends(
    calls: list[Call], executions: dict[int, Execution], windows: Array, last_ns: int
) -> list[int]:
    """When each graph ended: as recorded; or in proportion, if its call is one that ran on."""
    lengths = _typical(calls, executions)
    ends = []
    for place, call in enumerate(calls):
        end, seen = call.end, executions.get(place)
        if seen is not None and seen.end > call.end + _SHORTEST_NS:
            end = seen.end
        elif seen is None and call.ran_on and call.graphs in lengths:
            following = calls[place + 1] if place + 1 < len(calls) else None
            end = _estimate(call, following, *lengths[call.graphs])
            begins = windows[np.searchsorted(windows, call.end) :]
            end = min(end, int(begins[0]) if len(begins) else last_ns)
        ends.append(max(call.end, end))
    return ends


def _typical(
    calls: list[Call], executions: dict[int, Execution]
) -> dict[tuple[int, ...], tuple[float, float]]:
    """For graphs that run on: how long they run inside their call, and after it."""
    seen: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    for place, (begin, end) in executions.items():
        call = calls[place]
        if call.ran_on:
            inside = min(max(0, call.end - begin), end - begin)
            seen.setdefault(call.graphs, []).append((inside, end - begin - inside))
    medians = {graphs: np.median(lengths, axis=0) for graphs, lengths in seen.items()}
    return {
        graphs: (float(inside), float(after))
        for graphs, (inside, after) in medians.items() if after > _SHORTEST_NS
    }  # fmt: skip


def _estimate(call: Call, following: Call | None, inside: float, after: float) -> int:
    """The next call waits for the rest of this one, and then runs its own first part."""
    left = after - (following.begin - call.end) if following is not None else 0.0
    if following is None or left <= 0:
        return call.end + round(after)
    length = following.end - following.begin
    return following.begin + round(length * left / (left + inside))


def _applied(
    marks: Journal, ts_ns: Array, calls: list[Call], ends: list[int],
    executions: dict[int, Execution],
) -> tuple[Journal, Array]:  # fmt: skip
    returned = np.array([call.end for call in calls])
    done = np.maximum.accumulate(ends)

    def clip(moments: Array) -> Array:
        """Move what is between the return of a call and the end of its graph to that end."""
        last = np.searchsorted(returned, moments, side="right") - 1
        clipped: Array = np.where(last >= 0, np.maximum(moments, done[last]), moments)
        return clipped

    of_training = marks.thread == marks.thread[calls[0].marks[0]]
    moments = np.flatnonzero(of_training & np.isin(marks.code, _CLIPPED))
    times, value = ts_ns.astype(np.int64, copy=True), marks.value.astype(np.int64, copy=True)
    times[moments] = clip(ts_ns[moments])
    own = np.flatnonzero(of_training & (marks.code == Mark.OWN_WORK))
    times[own] = _after(clip(ts_ns[own]), list(executions.values()))
    value[own] = np.maximum(0, clip(ts_ns[own] + value[own]) - times[own])
    seen = [Execution(calls[place].begin, int(done[place])) for place in executions]
    closes = np.flatnonzero(of_training & (marks.code == Mark.WINDOW_ENDED))
    times[closes] = _after(times[closes], seen)
    begins = clip(np.array([call.begin for call in calls]))
    for call, begin, end in zip(calls, begins.tolist(), done.tolist(), strict=True):
        first, last = call.marks[0], call.marks[-1]
        times[first] = begin
        for at in call.marks:
            parts, length = int(value[at]) & _PARTS, int(value[at]) >> GRAPH_PARTS_BITS
            until = end if at == last else int(ts_ns[at]) + length
            value[at] = max(0, until - int(times[at])) << GRAPH_PARTS_BITS | parts
    order = np.argsort(times, kind="stable")
    again = replace(
        marks, ts_ns=marks.ts_ns[order], value=value[order], ref=marks.ref[order],
        thread=marks.thread[order], code=marks.code[order],
    )  # fmt: skip
    return again, times[order]


def _after(moments: Array, spans: list[Execution]) -> Array:
    """Moments inside one of these are moved to its end: the host waited for it."""
    if not spans:
        return moments
    begins, ends = np.array(sorted(spans)).T
    last = np.searchsorted(begins, moments, side="right") - 1
    waits = (last >= 0) & (moments < ends[last])
    after: Array = np.where(waits, ends[last], moments)
    return after
