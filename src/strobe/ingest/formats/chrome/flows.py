"""Flow events of a Chrome trace: which spans they join.

A flow event belongs to the span around it on its thread, the end of a flow without `bp: e` to the
next span that begins there. The steps of a flow are linked in order of time.

There may be more of them than memory holds. So they pass by in slices of time with the spans, which
finds the span of each; then they are joined a share at a time, all of one flow in the same share.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from strobe.ingest.building import allocations, nesting
from strobe.ingest.formats.chrome.events import PHASE
from strobe.ingest.trace import spans as spans_of
from strobe.ingest.trace.codes import Array, in_order_once, mapped
from strobe.ingest.trace.column_spool import SHARE_ROWS, Columns, Pile, deal, shares
from strobe.ingest.trace.problems import Problems
from strobe.ingest.trace.span_spool import Slice, Spool
from strobe.ingest.trace.spans import Spans
from strobe.ingest.trace.trace import FlowParts, Flows

_START, _END = PHASE["s"], PHASE["f"]
_OF_ENDS = ("phase", "key", "place", "bp", "span")  # arguments that ends have, and spans have not


class File(NamedTuple):
    """Where problems are told."""

    name: str
    said: Problems


def passed_by(spans: Iterable[Spans], ends: Spool, track_of: Array) -> Iterator[Slice]:
    """Spans and the ends of flows in order of time; spans are numbered as they come."""
    together, first = Spool(), 0
    for part in spans:
        part.args["number"] = np.arange(first, first + len(part), dtype=np.int64)
        first += len(part)
        together.append(part)
    for part in ends:
        part.track = mapped(part.track, track_of)
        together.append(part)
    ends.clear()
    return together.slices()


class Binder:
    """Finds the span of each end, slice after slice, and then joins them."""

    def __init__(self, rows: int, window: int, file: File) -> None:
        self._window, self._file = window, file
        self._shares = shares(rows)
        self._open: list[Spans] = []  # spans of slices before that have not ended
        self._waiting: Columns = {}  # ends whose next span has not begun
        self._lost = self._highest = 0

    def take(self, part: Slice) -> Spans:
        """The spans of a slice, without the ends that were among them."""
        is_end = part.spans.arg("phase") >= 0
        ends, spans = (
            part.spans.take(np.flatnonzero(is_end)),
            part.spans.take(np.flatnonzero(~is_end)),
        )
        for name in _OF_ENDS:
            spans.args.pop(name, None)
        self._bind(ends, spans)
        around = [*self._open, spans]
        self._open = [_lasting(each, part.until_ns) for each in around]
        return spans

    def _bind(self, ends: Spans, spans: Spans) -> None:
        around = spans_of.joined([*self._open, spans]) if self._open else spans
        parent = nesting.parents(around.track, around.ts_ns, around.dur_ns)
        row = allocations.containing(ends.track, ends.ts_ns, around, parent)
        number = np.append(around.arg("number"), -1)  # the last one is that of no row
        self._highest = max(self._highest, int(number.max()))
        columns = {name: ends.arg(name) for name in ("phase", "key", "place", "bp", "span")}
        columns |= {"ts_ns": ends.ts_ns, "track": ends.track, "kind": ends.name}
        columns["span"] = np.where(columns["span"] >= 0, columns["span"], number[row])
        to_next = (columns["phase"] == _END) & (columns["bp"] == 0)
        self._put(_picked(columns, ~to_next))
        waiting = _joined(self._waiting, _picked(columns, to_next))
        following = _following(spans, waiting["track"], waiting["ts_ns"])
        found = following >= 0
        waiting["span"] = np.where(
            found, np.append(spans.arg("number"), -1)[following], waiting["span"]
        )
        self._put(_picked(waiting, found))
        self._waiting = _picked(waiting, ~found)

    def _put(self, ends: Columns) -> None:
        self._lost += int((ends["span"] < 0).sum())
        ends = _picked(ends, ends["span"] >= 0)
        names = ("key", "place", "phase", "ts_ns", "span", "kind")
        deal({name: ends[name] for name in names}, ends["key"], self._shares)

    def finish(self) -> FlowParts:
        if self._waiting:
            self._put(self._waiting)
        found, alone = Pile(SHARE_ROWS), 0
        for pile in self._shares:
            if pile.rows:
                flows, left = _linked(pile.joined(), self._window)
                alone += left
                found.append({"cause": flows.cause, "effect": flows.effect, "kind": flows.kind})
            pile.clear()
        what = "an arrow begins or ends where there is no span and was left out"
        self._file.said.add(self._file.name, what, self._lost)
        self._file.said.add(self._file.name, "an arrow has one end only and was left out", alone)
        return FlowParts(found, self._window, self._highest)


def _linked(ends: Columns, window: int) -> tuple[Flows, int]:
    """The arrows between these ends, and how many ends are alone."""
    ends = _picked(ends, np.argsort(ends["place"], kind="stable"))
    phase, span = ends["phase"], ends["span"]
    key = _in_order_of_appearance(ends["key"])
    order = _in_order(key, ends["ts_ns"], phase == _START)
    # An end leads nowhere further: the next end of a flow comes from the same span as it.
    goes_on = np.where(phase[order] != _END, np.arange(len(order)), -1)
    before = np.append(-1, np.maximum.accumulate(goes_on)[:-1])
    joins = (before >= 0) & (key[order[before]] == key[order]) & (phase[order] != _START)
    this, following = order[before[joins]], order[joins]
    alone = len(order) - len(np.union1d(this, following))
    return Flows(span[this], span[following], ends["kind"][this], window), alone


def _in_order_of_appearance(key: Array) -> Array:
    """Small numbers instead of keys."""
    _, first, back = np.unique(key, return_index=True, return_inverse=True)
    number = np.empty(len(first), dtype=np.int64)
    number[np.argsort(first)] = np.arange(len(first))
    return number[back]


def _in_order(key: Array, ts_ns: Array, starts: Array) -> Array:
    """By flow and time. The only start of a flow comes first even where clocks disagree."""
    count = np.bincount(key[starts], minlength=int(key.max(initial=0)) + 1)
    is_only = starts & (count[key] == 1)
    when = np.where(is_only, np.iinfo(np.int64).min, ts_ns)
    return np.lexsort((np.arange(len(key)), ~starts, when, key))


def _following(spans: Spans, track: Array, ts_ns: Array) -> Array:
    """The row of the next span that begins on a track, or -1."""
    found = np.full(len(ts_ns), -1, dtype=np.int64)
    for number in in_order_once(track).tolist():
        rows = np.flatnonzero(spans.track == number)
        moments = np.flatnonzero(track == number)
        place = np.searchsorted(spans.ts_ns[rows], ts_ns[moments], side="left")
        inside = place < len(rows)
        found[moments[inside]] = rows[place[inside]]
    return found


def _lasting(spans: Spans, until_ns: int) -> Spans:
    return spans.take(np.flatnonzero(spans.ts_ns + spans.dur_ns >= until_ns))


def _picked(columns: Columns, rows: Array) -> Columns:
    return {name: column[rows] for name, column in columns.items()}


def _joined(first: Columns, second: Columns) -> Columns:
    if not first:
        return second
    return {name: np.concatenate([first[name], second[name]]) for name in second}
