"""Blocks of events on their way into a trace: spans, instants of memory, counters, executions."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from strobe.ingest.formats.xplane import names as names_of
from strobe.ingest.formats.xplane.events import TEXTS, UNKNOWN, Events
from strobe.ingest.formats.xplane.file import Metadata, Plane
from strobe.ingest.formats.xplane.judge import LEFT_OUT, Judge, Judged
from strobe.ingest.formats.xplane.names import Place
from strobe.ingest.formats.xplane.steps import Executions
from strobe.ingest.trace.codes import Array, first_of_each
from strobe.ingest.trace.spans import Spans, Track
from strobe.ingest.trace.trace import Memory, Samples, Trace

_PS_PER_NS = 1000
_MOST_KNOWN = 200_000
# What tells events of one metadata apart; the rest are numbers of single events.
_TELLING = ("program_id", *(name for name in TEXTS if name != "allocator_name"))
_FLAGS = ("correlation_id", "addr")  # whether there is one
_NOTHING = Metadata()


class Lane(NamedTuple):
    """A line of a plane, as a track of the run."""

    place: Place
    track: Track
    base_ns: int  # zero of its events' offsets, since 1970 where that is known
    stream: int = -1


@dataclass
class Assembler:
    """Takes blocks of events; the trace and the executions grow."""

    trace: Trace
    judge: Judge
    window: int
    executions: Executions = field(default_factory=Executions)
    _known: dict[tuple[Any, ...], int] = field(default_factory=dict)
    _judged: list[Judged] = field(default_factory=list)
    _unnamed: int = 0

    def take(self, lane: Lane, plane: Plane, events: Events) -> None:
        if not len(events.metadata):
            return
        ts_ns = lane.base_ns + events.offset_ps // _PS_PER_NS
        # By the end, so that rounding keeps a part inside its whole.
        end_ns = lane.base_ns + (events.offset_ps + events.dur_ps) // _PS_PER_NS
        if lane.place.line == names_of.COUNTERS_LINE:
            self._take_counters(plane, events, ts_ns)
            return
        if len(self._judged) > _MOST_KNOWN:  # names that never come again
            self._known, self._judged = {}, []
        which, codes = self._combinations(lane.place, plane, events)
        judged = [self._judged[number] for number in which]
        kind = np.array([j.kind for j in judged], dtype=np.int32)[codes]
        memory = np.array([j.memory for j in judged])[codes]
        if memory.any():
            self._take_memory(lane, plane, events, ts_ns, memory)
        rows = np.flatnonzero(kind != LEFT_OUT)
        if not len(rows):
            return
        codes, ts_ns, dur_ns = codes[rows], ts_ns[rows], (end_ns - ts_ns)[rows]
        name = np.array([j.name for j in judged], dtype=np.int32)[codes]
        track = np.full(len(rows), self.trace.words.tracks[lane.track], dtype=np.int32)
        args = self._args(lane, judged, codes, events, rows)
        spans = Spans(ts_ns, dur_ns, kind[rows], name, track, args)
        self.executions.take(lane.place, spans, judged, codes, events, rows)
        self.trace.spans.append(spans)

    def _combinations(self, place: Place, plane: Plane, events: Events) -> tuple[list[int], Array]:
        """Numbers of what was judged, and which of them each event is."""
        telling = [name for name in _TELLING if name in events.stats]
        columns = [events.metadata, *(events.stats[name] for name in telling)]
        flags = [name for name in _FLAGS if name in events.stats]
        columns += [np.where(events.stats[name] >= 0, 1, UNKNOWN) for name in flags]
        first, codes = first_of_each(columns)
        picked = [column[first].tolist() for column in columns]
        which = []
        for key in zip(*picked, strict=True):
            full = (id(plane), place, tuple(telling), tuple(flags), key)
            number = self._known.get(full)
            if number is None:
                number = self._known[full] = len(self._judged)
                self._judged.append(self._judge(place, plane, [*telling, *flags], key))
            which.append(number)
        return which, codes

    def _judge(
        self, place: Place, plane: Plane, telling: list[str], key: tuple[int, ...]
    ) -> Judged:
        metadata = plane.events.get(key[0], _NOTHING)
        if not metadata.name and not metadata.shown:
            self._unnamed += 1
            metadata = Metadata(f"event {key[0]}", "", metadata.stats)
        stats = dict(metadata.stats)
        for name, value in zip(telling, key[1:], strict=True):
            if value != UNKNOWN:
                stats[name] = plane.texts.get(value, "") if name in TEXTS else value
        return self.judge.judge(place, metadata, stats)

    def _args(
        self, lane: Lane, judged: list[Judged], codes: Array, events: Events, rows: Array
    ) -> dict[str, Array]:
        names = dict.fromkeys(name for j in judged for name in j.args)
        args = {
            name: np.array([j.args.get(name, UNKNOWN) for j in judged], dtype=np.int64)[codes]
            for name in names
        }
        args["window"] = np.full(len(rows), self.window, dtype=np.int64)
        if "correlation_id" in events.stats:
            args["correlation"] = events.stats["correlation_id"][rows]
        if lane.stream >= 0:
            args["stream"] = np.full(len(rows), lane.stream, dtype=np.int64)
        for name, stat in (("flops", "flops"), ("bytes", "bytes_transferred")):
            if stat in events.stats:
                given = events.stats[stat][rows]
                args[name] = np.where(given > 0, given, args.get(name, UNKNOWN))
        return args

    def _take_memory(
        self, lane: Lane, plane: Plane, events: Events, ts_ns: Array, memory: Array
    ) -> None:
        rows = np.flatnonzero(memory)
        words, ts_ns = self.trace.words, ts_ns[rows]
        size = np.maximum(events.stat("allocation_bytes")[rows], 0) * memory[rows]
        allocators, back = np.unique(events.stat("allocator_name")[rows], return_inverse=True)
        devices = [
            names_of.device_of_allocator(plane.texts.get(a, "")) for a in allocators.tolist()
        ]
        device = np.array([words.texts[d] for d in devices], dtype=np.int32)[back]
        track = np.full(len(rows), words.tracks[lane.track], dtype=np.int32)
        address = np.maximum(events.stat("addr")[rows], 0)
        self.trace.memory.append(Memory(ts_ns, track, address, size, device))
        used = events.stat("bytes_allocated")[rows]
        name = np.array([words.names[f"{d}_allocated_bytes"] for d in devices], np.int32)[back]
        known = used >= 0
        self.trace.counters.append(Samples(ts_ns[known], name[known], used[known]))

    def _take_counters(self, plane: Plane, events: Events, ts_ns: Array) -> None:
        value = events.stat("counter_value").astype(np.float64)
        if "counter_value" in events.doubles:
            exact = events.doubles["counter_value"]
            value = np.where(np.isnan(exact), value, exact)
        first, codes = first_of_each([events.metadata])
        metadata = [plane.events.get(n, _NOTHING) for n in events.metadata[first].tolist()]
        shown = [self.trace.words.names[m.shown or m.name or "counter"] for m in metadata]
        self.trace.counters.append(Samples(ts_ns, np.array(shown, dtype=np.int32)[codes], value))

    def tell(self, file: str) -> None:
        """What was met on the way that is worth a word."""
        self.trace.said.add(
            file, "the name of an event is missing: it is called by its number", self._unnamed
        )
