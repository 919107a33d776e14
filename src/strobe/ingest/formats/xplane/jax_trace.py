"""JAX's Chrome JSON (<host>.trace.json.gz, perfetto_trace.json.gz): the same events as the XPlane.

Where the XPlane of the same profile lies beside it, that is read instead: it is complete, has the
wall clock and the compiled programs. The JSON is cut at a million events without a word in it.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from strobe.errors import UnreadableTrace
from strobe.ingest.formats.chrome.chunks import EventStream
from strobe.ingest.formats.xplane import folder as xplane_folder
from strobe.ingest.formats.xplane import reader as xplane
from strobe.ingest.formats.xplane.events import NUMBERS, TEXTS, UNKNOWN, Events
from strobe.ingest.formats.xplane.file import Metadata, Plane
from strobe.ingest.formats.xplane.judge import Judge
from strobe.ingest.formats.xplane.names import Place, device_of
from strobe.ingest.formats.xplane.spans import Assembler, Lane
from strobe.ingest.importing.sources import Found, Peek, Source, files_below, peek
from strobe.ingest.trace import progress
from strobe.ingest.trace.codes import Codes
from strobe.ingest.trace.spans import Track, Vocabulary
from strobe.ingest.trace.trace import Trace

NAME = "JAX trace JSON"

CUT_AT = 1_000_000  # events; by default, in JAX and in TensorFlow
_PS_PER_US = 1_000_000
_LATEST_US = 2**40
_LARGEST = 2**62
_PLANE_AS_PROCESS = re.compile(rb'"name"\s*:\s*"/(?:host|device):[^"]*"')
_IS_TRACE = re.compile(rb'\s*\{.*?"traceEvents"\s*:\s*\[', re.DOTALL)
_STREAM = re.compile(r"Stream #(\d+)")
_Value = str | int | float | bool | None


class _Event(msgspec.Struct, gc=False):
    ph: str = ""
    name: _Value = ""
    pid: _Value = 0
    tid: _Value = 0
    ts: float | str | None = None
    dur: float | str | None = None
    args: Any = None


def claim(folder: Path) -> list[Found]:
    """What JAX writes beside them for Perfetto is the same again."""
    found = []
    for path in files_below(folder):
        if path.name.endswith((".trace.json.gz", ".trace.json")) and _is_jax(peek(path).head):
            again = path.with_name("perfetto_trace.json.gz")
            found.append(Found((path,), ignored=(again,) if again.exists() else ()))
    return found


def recognise(peek: Peek) -> Found | None:
    if not _is_jax(peek.head):
        return None
    whole = _beside(peek.path)
    if whole is None:
        return Found((peek.path,))
    return Found((whole,), None, xplane_folder.started_file(whole)[0] or None, (peek.path,))


def read(source: Source, words: Vocabulary) -> Trace:
    if source.path.name.endswith(xplane_folder.SUFFIX):
        trace = xplane.read(source, words)
        trace.said.add(
            source.path.name, "it was read in place of the JSON beside it: it is complete"
        )
        return trace
    stream = EventStream(source.path, _Event)
    trace = Trace(words, stream.problems)
    lanes = _Lanes(Assembler(trace, Judge(words), source.number))
    for batch in stream.batches():
        lanes.take(batch)
        progress.report(events=len(batch))
    return lanes.finished(stream)


def _is_jax(head: bytes) -> bool:
    return bool(_IS_TRACE.match(head) and _PLANE_AS_PROCESS.search(head))


def _beside(path: Path) -> Path | None:
    """The XPlane of the same host in the same folder; of any host, for Perfetto's file."""
    names = [f"{xplane_folder.host_of(path)}{xplane_folder.SUFFIX}"]
    if path.name.startswith("perfetto_trace"):
        names = sorted(p.name for p in path.parent.glob(f"*{xplane_folder.SUFFIX}"))
    for whole in (path.with_name(name) for name in names):
        if whole.is_file() and xplane_folder.is_space(peek(whole).head):
            return whole
    return None


@dataclass
class _Lanes:
    """Processes are planes, threads are lines; their events go where those of an XPlane go."""

    assembler: Assembler
    planes: dict[Any, Plane] = field(default_factory=dict)
    names: dict[Any, Codes[str]] = field(default_factory=dict)
    texts: Codes[str] = field(default_factory=Codes)
    processes: dict[Any, str] = field(default_factory=dict)
    threads: dict[tuple[Any, Any], str] = field(default_factory=dict)
    complete: int = 0
    timeless: int = 0

    def take(self, batch: list[_Event]) -> None:
        by_thread: dict[tuple[Any, Any], list[tuple[_Event, int, int]]] = {}
        for event in batch:
            if event.ph == "M":
                self._name(event)
            elif event.ph == "X":
                self.complete += 1
                ts, dur = _picoseconds(event.ts), _picoseconds(event.dur)
                if ts is None or dur is None or dur < 0:
                    self.timeless += 1
                else:
                    by_thread.setdefault((event.pid, event.tid), []).append((event, ts, dur))
        for (pid, tid), events in by_thread.items():
            self._take_thread(pid, tid, events)

    def finished(self, stream: EventStream) -> Trace:
        trace = self.assembler.trace
        stream.say("an event has no time or length and was left out", self.timeless)
        if self.complete == CUT_AT:
            stream.say(
                f"it holds exactly {CUT_AT:,} events: JAX ends this file there, and what happened"
                " later is not in it; import the .xplane.pb of the same profile, which is complete"
            )
        if not trace.spans.rows:
            raise UnreadableTrace.of("errors/traces.no-events", where=str(stream.path))
        trace.steps = self.assembler.executions.steps()
        for what in trace.steps.problems if trace.steps else ():
            stream.say(what)
        return trace

    def _name(self, event: _Event) -> None:
        given = event.args.get("name") if isinstance(event.args, dict) else None
        if not isinstance(given, str):
            return
        if event.name == "process_name":
            self.processes[event.pid] = given
        elif event.name == "thread_name":
            self.threads[event.pid, event.tid] = given

    def _take_thread(self, pid: Any, tid: Any, events: list[tuple[_Event, int, int]]) -> None:
        process = self.processes.get(pid, "")
        device = device_of(process) or "cpu"
        plane = self.planes.setdefault(pid, Plane(process))
        names = self.names.setdefault(pid, Codes())
        found = Events(
            names.of((str(event.name) for event, _, _ in events), len(events)).astype(np.int64),
            np.array([ts for _, ts, _ in events], dtype=np.int64),
            np.array([dur for _, _, dur in events], dtype=np.int64),
        )
        for name in list(names)[len(plane.events) :]:
            plane.events[len(plane.events)] = Metadata(name)
        self._take_args(found, plane, [event.args for event, _, _ in events])
        own = tid if type(tid) is int and abs(tid) < _LARGEST else -1 - self._number(pid, tid)
        line = self.threads.get((pid, tid), "")
        stream = _STREAM.match(line) if device != "cpu" else None
        track = Track(device, None, own)
        self.assembler.trace.words.track_names[track] = line or f"thread {tid}"
        lane = Lane(Place(device, line), track, 0, int(stream.group(1)) if stream else UNKNOWN)
        self.assembler.take(lane, plane, found)

    def _number(self, pid: Any, tid: Any) -> int:
        return self.texts[f"thread {pid} {tid}"]

    def _take_args(self, found: Events, plane: Plane, args: list[Any]) -> None:
        rows = [(row, given) for row, given in enumerate(args) if isinstance(given, dict)]
        for name in (*NUMBERS, *TEXTS):
            known = [(row, given[name]) for row, given in rows if given.get(name) is not None]
            if not known:
                continue
            column = np.full(len(args), UNKNOWN, dtype=np.int64)
            for row, value in known:
                column[row] = self._code(plane, value) if name in TEXTS else _whole(value)
            found.stats[name] = column

    def _code(self, plane: Plane, value: Any) -> int:
        text = str(value)
        code = self.texts[text]
        plane.texts[code] = text
        return code


def _picoseconds(value: Any) -> int | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    # Not a number compares as False.
    return round(number * _PS_PER_US) if abs(number) < _LATEST_US else None


def _whole(value: Any) -> int:
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        return UNKNOWN
    return number if abs(number) < _LARGEST else UNKNOWN
