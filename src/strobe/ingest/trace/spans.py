"""The events of a rank before they become tables: columns that every reader fills."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from strobe.ingest.trace.codes import Array, Codes


class Track(NamedTuple):
    """A row of the timeline: a thread of the host, a stream of a device, the steps of a rank."""

    device: str
    process: int | None = None
    thread: int | None = None


STEPS_TRACK = Track("steps")
# windows begin and end inside steps, so they have a track of their own
WINDOWS_TRACK = Track("steps", thread=1)
PROGRAMS_TRACK = Track("cpu", thread=-1)  # runs of compiled programs, whichever thread called them

EVALUATION_TRACK = Track("steps", thread=2)


@dataclass
class Vocabulary:
    """The texts that the columns of a rank's events refer to."""

    names: Codes[str] = field(default_factory=Codes)
    texts: Codes[str] = field(default_factory=Codes)  # recorded arguments
    scopes: Codes[str] = field(default_factory=Codes)
    tracks: Codes[Track] = field(default_factory=Codes)
    track_names: dict[Track, str] = field(default_factory=dict)


@dataclass
class Spans:
    """Columns. `kind` is a number of classify.KIND; a named argument is -1 if unknown."""

    ts_ns: Array
    dur_ns: Array
    kind: Array
    name: Array
    track: Array
    args: dict[str, Array] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.ts_ns)

    def arg(self, name: str) -> Array:
        given = self.args.get(name)
        return given if given is not None else np.full(len(self), -1, dtype=np.int64)

    def between(self, start: int, end: int) -> "Spans":
        """A range of rows, without copying them."""
        args = {name: column[start:end] for name, column in self.args.items()}
        return Spans(
            self.ts_ns[start:end], self.dur_ns[start:end], self.kind[start:end],
            self.name[start:end], self.track[start:end], args,
        )  # fmt: skip

    def take(self, rows: Array) -> "Spans":
        args = {name: column[rows] for name, column in self.args.items()}
        return Spans(
            self.ts_ns[rows], self.dur_ns[rows], self.kind[rows], self.name[rows],
            self.track[rows], args,
        )  # fmt: skip


def make(ts_ns: Array, dur_ns: Array, kind: int, name: Array, track: Array) -> Spans:
    """Spans of one kind."""
    kinds = np.full(len(ts_ns), kind, dtype=np.int32)
    return Spans(ts_ns, dur_ns, kinds, np.asarray(name, np.int32), np.asarray(track, np.int32))


def joined(parts: list[Spans]) -> Spans:
    """All spans in the order of their ids: by start, longer ones first."""
    whole = appended(parts)
    return whole.take(in_order(whole.ts_ns, whole.dur_ns))


def appended(parts: list[Spans]) -> Spans:
    """All spans in their given order."""
    nothing = np.zeros(0, dtype=np.int64)
    parts = [make(nothing, nothing, 0, nothing, nothing), *parts]
    names = dict.fromkeys(name for part in parts for name in part.args)
    return Spans(
        np.concatenate([p.ts_ns for p in parts]),
        np.concatenate([p.dur_ns for p in parts]),
        np.concatenate([p.kind for p in parts]),
        np.concatenate([p.name for p in parts]),
        np.concatenate([p.track for p in parts]),
        {name: np.concatenate([p.arg(name) for p in parts]) for name in names},
    )


def in_order(ts_ns: Array, dur_ns: Array) -> Array:
    """Rows by start, longer ones first; equal ones in their given order."""
    # Sources are nearly sorted, from which a stable sort of one column benefits.
    order = np.argsort(ts_ns, kind="stable")
    start, length = ts_ns[order], dur_ns[order]
    same = start[1:] == start[:-1]
    if not (same & (length[1:] > length[:-1])).any():
        return order
    tied = np.zeros(len(order), dtype=bool)
    tied[1:] |= same
    tied[:-1] |= same
    rows = np.flatnonzero(tied)
    among = np.lexsort((np.arange(len(rows)), -length[rows], start[rows]))
    order[rows] = order[rows[among]]
    return order
