"""Profiles of JAX, TensorFlow and others on XLA: *.xplane.pb, of host threads, GPUs and TPUs.

Read are all events with their names; the operations of compiled programs with scopes, source lines,
shapes and work, as far as the programs in the file tell; launches and kernels, copies, collectives,
instants of memory, counters; and steps, from the executions of the program that trains.

Left out are the instants by which the profiler strings events together (ThreadpoolListener::...,
"end: ..."), sums of events without times, and what users gave to annotations as arguments.
"""

import re
from pathlib import Path

from strobe.errors import UnreadableTrace
from strobe.ingest.formats.xplane import folder as xplane_folder
from strobe.ingest.formats.xplane.events import Wanted, blocks
from strobe.ingest.formats.xplane.file import Line, Plane, Space, XFile, line, outline
from strobe.ingest.formats.xplane.folder import LATEST_NS, SINCE_1970_NS
from strobe.ingest.formats.xplane.judge import Judge, Programs
from strobe.ingest.formats.xplane.names import Place, device_of
from strobe.ingest.formats.xplane.spans import Assembler, Lane
from strobe.ingest.importing.sources import Found, Peek, Source
from strobe.ingest.trace import progress
from strobe.ingest.trace.spans import Track, Vocabulary
from strobe.ingest.trace.trace import About, Trace

NAME = "XPlane (JAX, XLA)"
NO_EVENTS = "and no events"

_METADATA_PLANE = "/host:metadata"
_MOST_LINES = 50_000  # threads and streams; each takes its time, however short it is
_STREAM = re.compile(r"Stream #\d+")


def claim(folder: Path) -> list[Found]:
    return xplane_folder.found_in(folder)


def recognise(peek: Peek) -> Found | None:
    if not xplane_folder.is_space(peek.head):
        return None
    return Found((peek.path,), first_unix_ns=xplane_folder.started_file(peek.path)[0] or None)


def read(source: Source, words: Vocabulary) -> Trace:
    trace = Trace(words)
    with XFile(source.path, trace.said) as file:
        space = outline(file)
        if not space.planes:
            raise UnreadableTrace.of("errors/traces.no-plane", where=str(source.path))
        trace.about = _about(space)
        start_ns, _ = xplane_folder.started(space)
        trace.is_unix = bool(start_ns)
        programs = Programs(file)
        for plane in space.planes:
            if plane.name == _METADATA_PLANE:
                programs.add(plane)
        assembler = Assembler(trace, Judge(words, programs), source.number)
        _limit_lines(file, space.planes)
        for plane in space.planes:
            _take_plane(file, plane, assembler, start_ns)
        assembler.tell(file.name)
        rest = file.size - sum(end - start for p in space.planes for start, end in p.lines)
        progress.report(0 if file.is_packed else rest)
    if programs.places and not trace.spans.rows and not trace.counters:
        raise UnreadableTrace.of(
            "errors/traces.only-programs", where=str(source.path), count=len(programs.places)
        )
    trace.steps = assembler.executions.steps()
    for what in trace.steps.problems if trace.steps else ():
        trace.said.add(source.path.name, what)
    return trace


def _limit_lines(file: XFile, planes: list[Plane]) -> None:
    room = _MOST_LINES
    for plane in planes:
        file.say(
            f"there are more than {_MOST_LINES:,} lines of events: the rest was left out",
            len(plane.lines) - room,
        )
        plane.lines = plane.lines[:room]
        room -= len(plane.lines)


def _take_plane(file: XFile, plane: Plane, assembler: Assembler, start_ns: int) -> None:
    device = device_of(plane.name)
    if device is None:
        file.say(
            f"a plane of a kind that is not known, {plane.name[:80]!r}: its events were left out",
            int(bool(plane.lines)),
        )
        return
    trace = assembler.trace
    wanted = Wanted(plane)
    _tell_dropped(file, plane)
    for start, end in plane.lines:
        found = line(file, start, end)
        if abs(found.ts_ns) >= LATEST_NS:
            file.say("a line of events has an impossible time and was left out")
            continue
        lane = _lane(found, device, trace.about.pid, start_ns)
        for block in blocks(file, found, wanted):
            assembler.take(lane, plane, block)
        trace.words.track_names[lane.track] = found.shown or found.name or f"line {found.id}"


def _lane(found: Line, device: str, pid: int, start_ns: int) -> Lane:
    """Times of a line count from the beginning of the profile; in old files since 1970."""
    base_ns = found.ts_ns if found.ts_ns >= SINCE_1970_NS else start_ns + found.ts_ns
    process = pid or None if device == "cpu" else None
    stream = found.id if _STREAM.match(found.name) and device != "cpu" else -1
    return Lane(Place(device, found.name), Track(device, process, found.id), base_ns, stream)


def _tell_dropped(file: XFile, plane: Plane) -> None:
    dropped = plane.stats.get("dropped_traces")
    if isinstance(dropped, int) and 0 < dropped < 2**62:
        file.say(f"the profiler dropped events of {plane.name}: it had no room for them", dropped)


def _about(space: Space) -> About:
    stats: dict[str, object] = {}
    for plane in space.planes:
        if plane.name == _METADATA_PLANE:
            stats |= plane.stats
    versions = {
        name.removesuffix("_version"): str(value)
        for name, value in stats.items()
        if name.endswith("_version") and isinstance(value, str | int)
    }
    pid = stats.get("process_id")
    devices = [device for p in space.planes if (device := _described(p)) is not None]
    return About(
        host=next(iter(space.hosts), ""),
        pid=pid if type(pid) is int and 0 < pid < 2**32 else 0,
        frameworks={name: value for name, value in versions.items() if value != name},
        devices=["cpu", *devices],
    )


def _described(plane: Plane) -> str | None:
    device = device_of(plane.name)
    if device is None or device == "cpu":
        return None
    names = ("gpu_device_name", "device_type_string", "device_vendor")
    known = (plane.stats[name] for name in names if isinstance(plane.stats.get(name), str))
    return f"{device} {next(known, '')}".strip()
