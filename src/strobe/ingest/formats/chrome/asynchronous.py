"""Asynchronous spans of a Chrome trace: of any thread, on tracks where they do not overlap.

Phases b, n, e and S, T, p, F. There may be more of them than memory holds, so they pass by four
times: a share at a time, all of one key in the same share, which numbers the keys; in slices of
time, which joins beginnings and ends; again so, in the order of the spans, which finds the lane of
each; and as they are, once it is known how many lanes there are.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from strobe.ingest.formats.chrome.events import PHASE, Events, of_phases
from strobe.ingest.formats.chrome.pairs import Joiner
from strobe.ingest.formats.chrome.spans import Places, whole
from strobe.ingest.formats.kinds import KIND
from strobe.ingest.trace.codes import Array
from strobe.ingest.trace.column_spool import SHARE_ROWS, Columns, Pile, deal, shares
from strobe.ingest.trace.problems import Problems
from strobe.ingest.trace.span_spool import Slice, Spool
from strobe.ingest.trace.spans import Spans, Track, Vocabulary

_BEGINS = (PHASE["b"], PHASE["S"])
_EDGES, _MARKS = "beSF", "nTp"


def spans(
    events: Events, where: Places, words: Vocabulary, window: int, file: str, said: Problems
) -> Iterator[Spans]:
    placed, lanes = Spool(), _Lanes()
    found = _joined(_numbered(events.asynchronous), words, file, said)
    for slice_ in found.slices():
        placed.append(lanes.take(slice_, where.family))
    first, tracks = _tracks(lanes.counts, events, words)
    for part in placed:
        part.track = tracks[first[part.arg("family")] + part.arg("lane")]
        part.args = {"window": np.full(len(part), window, dtype=np.int64)}
        yield part
    placed.clear()


def _numbered(given: Spool) -> Spool:
    """With the `place` of each in the file; its track is where its key is met first."""
    piles, first = shares(given.rows), 0
    for part in given:
        columns = {
            "ts_ns": part.ts_ns, "name": part.name, "thread": part.track, **part.args,
            "place": np.arange(first, first + len(part)),
        }  # fmt: skip
        first += len(part)
        deal(columns, columns["key"], piles)
    given.clear()
    result = Spool()
    for pile in piles:
        result += _first_places(pile)
        pile.clear()
    return result


def _first_places(share: Pile) -> Iterator[Spans]:
    """All of a key may be more than a share should have, but few keys are then many rows."""
    known = first = np.zeros(0, dtype=np.int64)
    for part in share.bunches(SHARE_ROWS):
        keys = np.concatenate([known, part["key"]])
        known, at = np.unique(keys, return_index=True)
        first = np.concatenate([first, part["place"]])[at]
        yield _as_spans(part, first[np.searchsorted(known, part["key"])])


def _as_spans(columns: Columns, track: Array) -> Spans:
    nothing = np.zeros(len(track), dtype=np.int64)
    args = {name: columns[name] for name in ("phase", "place", "thread")}
    return Spans(columns["ts_ns"], nothing, nothing.astype(np.int32), columns["name"], track, args)


def _joined(events: Spool, words: Vocabulary, file: str, said: Problems) -> Spool:
    """Spans, and the marks between; what was never ended lasts as long as there is anything."""
    last_ns = max((0, *(int(part.ts_ns.max()) for part in events)))
    joiner = Joiner(_BEGINS, lambda track: np.full(len(track), last_ns), words.names.get("", -1))
    result = Spool()
    for part in events.slices():
        phase = part.spans.arg("phase")
        marks = part.spans.take(of_phases(phase, _MARKS))
        marks = marks.take(np.argsort(marks.arg("place"), kind="stable"))
        marks.args["root"] = marks.arg("place")
        edges = part.spans.take(of_phases(phase, _EDGES))
        for kind, found in (
            ("annotation", joiner.take(Slice(edges, part.until_ns))), ("mark", marks),
        ):  # fmt: skip
            found.kind = np.full(len(found), KIND[kind], dtype=np.int32)
            found.track = found.arg("thread")
            found.args = {name: found.arg(name) for name in ("place", "root")}
            result.append(found)
    joiner.tell(file, said)
    return result


@dataclass
class _Lanes:
    """Numbers for outermost spans, so that those of one family and number do not overlap."""

    counts: dict[int, int] = field(default_factory=dict)  # by family
    _free: dict[int, list[tuple[int, int]]] = field(default_factory=dict)  # from when, which
    _root: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    _lane: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    _end_ns: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def take(self, part: Slice, family_of: Array) -> Spans:
        """Spans by start, the longer ones first; inner ones lie on the lane of the outermost."""
        spans, root = part.spans, part.spans.arg("root")
        family = family_of[spans.track]
        end_ns = spans.ts_ns + spans.dur_ns
        outer = np.flatnonzero(root == spans.arg("place"))
        columns = (column[outer].tolist() for column in (family, spans.ts_ns, end_ns))
        lane = [self._lane_for(*row) for row in zip(*columns, strict=True)]
        self._root = np.append(self._root, root[outer])
        self._lane = np.append(self._lane, np.array(lane, dtype=np.int64))
        self._end_ns = np.append(self._end_ns, end_ns[outer])
        order = np.argsort(self._root)
        place = order[np.searchsorted(self._root[order], root)] if len(root) else root
        spans.args = {"family": family, "lane": self._lane[place]}
        lasts = self._end_ns >= part.until_ns
        self._root, self._lane, self._end_ns = (
            column[lasts] for column in (self._root, self._lane, self._end_ns)
        )
        return spans

    def _lane_for(self, family: int, ts_ns: int, end_ns: int) -> int:
        free = self._free.setdefault(family, [])
        if free and free[0][0] <= ts_ns:
            _, number = heapq.heappop(free)
        else:
            number = self.counts.get(family, 0)
            self.counts[family] = number + 1
        heapq.heappush(free, (end_ns, number))
        return number


def _tracks(counts: dict[int, int], events: Events, words: Vocabulary) -> tuple[Array, Array]:
    """Where those of each family begin, and the tracks of their lanes."""
    pids = list(dict.fromkeys(pid for pid, _ in events.threads))
    first, tracks = [], list[int]()
    for family, pid in enumerate(pids):
        first.append(len(tracks))
        name = events.named.processes.get(pid, "")
        for lane in range(counts.get(family, 0)):
            track = Track("cpu", whole(pid), -1 - lane - (family << 32))
            words.track_names.setdefault(track, f"{name} async {lane + 1}".strip())
            tracks.append(words.tracks[track])
    return np.array(first, dtype=np.int64), np.array(tracks, dtype=np.int32)
