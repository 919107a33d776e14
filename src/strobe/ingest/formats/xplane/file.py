"""The outer parts of an XSpace: its planes, their lines, and the metadata that events point to.

Nothing of a file is held that was not asked for: it is read a window at a time. Field numbers:
https://github.com/openxla/xla/blob/main/third_party/tsl/tsl/profiler/protobuf/xplane.proto
"""

import os
import struct
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from strobe.errors import UnreadableTrace
from strobe.ingest.formats import compressed
from strobe.ingest.formats.xplane.wire import BYTES, VARINT, Broken, fields, header, signed
from strobe.ingest.trace.problems import Problems

# A field's value, and where its bytes begin and end in the file.
_Field = tuple[int, int, int, int, int]

_WINDOW_BYTES = 256 << 10
_LONGEST_HEADER = 20
_LONGEST_UNPACKED = 4 << 30  # protobuf itself ends at 2 GiB
_LONGEST_NAME = 1 << 16
_LARGE = 64 << 10
_MOST_FIELDS = 4_000_000
EVENTS_OF_LINE = 4
_PACKED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")


class XFile:
    """A file of any size, read a piece at a time."""

    def __init__(self, path: Path, said: Problems | None = None) -> None:
        self.name = path.name
        self.said = said if said is not None else Problems()
        self.is_packed = False
        self._file = self._opened(path)
        self.size = os.fstat(self._file.fileno()).st_size
        self._window, self._window_at = b"", 0

    def __enter__(self) -> "XFile":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def say(self, what: str, count: int = 1) -> None:
        self.said.add(self.name, what, count)

    def read(self, start: int, end: int) -> bytes:
        """Bytes of the file; fewer if it ends before."""
        at = start - self._window_at
        if at >= 0 and end - self._window_at <= len(self._window):
            return self._window[at : end - self._window_at]
        try:
            return os.pread(self._file.fileno(), end - start, start)
        except OSError as error:
            raise UnreadableTrace.of(
                "errors/traces.cannot-read", where=self.name, reason=error.strerror or error
            ) from error

    def fields(self, start: int, end: int, inside: str) -> Iterator[_Field]:
        """The fields of a message that lies here; a field that goes beyond its end is given cut."""
        at = start
        for _ in range(_MOST_FIELDS):
            if at >= end:
                return
            try:
                number, wire, value, begin, after = self._header(at, end)
            except Broken:
                self.say(f"{inside} is damaged: the rest of it is lost, {_bytes(end - at)}")
                return
            if after > end and (inside == "the file" or end < self.size):
                self.say(f"{inside} ends early: {_bytes(after - end)} are missing")
            yield number, wire, value, begin, min(after, end)
            at = after
        self.say(f"{inside} has more than {_MOST_FIELDS:,} parts: the rest was left out")

    def _header(self, at: int, end: int) -> _Field:
        wanted = min(at + _LONGEST_HEADER, end)
        if not (self._window_at <= at and wanted <= self._window_at + len(self._window)):
            self._window = self.read(at, min(at + _WINDOW_BYTES, end))
            self._window_at = at
        base = self._window_at
        number, wire, value, begin, after = header(self._window[: end - base], at - base)
        return number, wire, value, begin + base, after + base

    def _opened(self, path: Path) -> IO[bytes]:
        """The file itself, or what was packed in it, unpacked into a file without a name."""
        try:
            file = path.open("rb")
            if not file.peek(4).startswith(_PACKED):
                return file
            file.close()
            self.is_packed = True
            unpacked = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the XFile)
            size = 0
            for block in compressed.blocks(path, self.say):
                unpacked.write(block)
                size += len(block)
                if size > _LONGEST_UNPACKED:
                    self.say("it unpacks to more than 4 GiB: what is beyond was not read")
                    break
            unpacked.flush()
            return unpacked
        except OSError as error:
            raise UnreadableTrace.of(
                "errors/traces.cannot-read", where=str(path), reason=error.strerror or error
            ) from error


@dataclass
class Line:
    """A timeline of a plane; its events are read later."""

    id: int = 0
    name: str = ""
    shown: str = ""  # another name to show it by
    ts_ns: int = 0
    at: int = 0  # where its events begin in the file
    end: int = 0


@dataclass(slots=True)
class Metadata:
    """What all events with one number have in common."""

    name: str = ""
    shown: str = ""
    stats: dict[str, Any] = field(default_factory=dict)
    place: tuple[int, int] = (0, 0)  # in the file; of large ones the stats were not read


@dataclass
class Plane:
    """One source of events: the host, a device."""

    name: str = ""
    lines: list[tuple[int, int]] = field(default_factory=list)  # where they are in the file
    stats: dict[str, Any] = field(default_factory=dict)
    events: dict[int, Metadata] = field(default_factory=dict)
    texts: dict[int, str] = field(default_factory=dict)  # names of stats, and texts they refer to


@dataclass
class Space:
    """A whole file, without its events."""

    planes: list[Plane] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)

    def stat(self, plane: str, name: str) -> Any:
        """A stat of a plane by its name; None if it is not there."""
        found = (p.stats[name] for p in self.planes if p.name == plane and name in p.stats)
        return next(found, None)


def outline(file: XFile, only: frozenset[str] = frozenset()) -> Space:
    """Every plane of a file, or only those with these names."""
    space = Space()
    for number, wire, _, start, end in file.fields(0, file.size, "the file"):
        if wire != BYTES:
            continue
        if number == 1 and (not only or _plane_name(file, start, end) in only):
            space.planes.append(_plane(file, start, end))
        elif number in (2, 3):
            file.say(f"the profiler that wrote it said: {_name(file, start, end)}")
        elif number == 4:
            space.hosts.append(_name(file, start, end))
    return space


def line(file: XFile, start: int, end: int) -> Line:
    """A line up to its first event."""
    found = Line(end=end, at=end)
    for number, wire, value, begin, after in file.fields(start, end, "a line of events"):
        if number == EVENTS_OF_LINE and wire == BYTES:
            found.at = start
            break
        take_line_field(file, found, (number, wire, value, begin, after))
        start = after
    return found


def take_line_field(file: XFile, found: Line, given: _Field) -> None:
    number, wire, value, begin, after = given
    if wire == VARINT and number == 1:
        found.id = signed(value)
    elif wire == VARINT and number == 3:
        found.ts_ns = signed(value)
    elif wire == BYTES and number == 2:
        found.name = _name(file, begin, after)
    elif wire == BYTES and number == 11:
        found.shown = _name(file, begin, after)


def whole_stats(file: XFile, plane: Plane, metadata: Metadata) -> dict[str, Any]:
    """The stats of metadata that was too large to be read with the others."""
    data = file.read(*metadata.place)
    return _resolved(_metadata(file, data)[1].stats, plane.texts)


def _plane_name(file: XFile, start: int, end: int) -> str:
    """By the first fields of a plane alone."""
    for number, wire, _, begin, after in file.fields(start, end, "a plane"):
        if number == 2 and wire == BYTES:
            return _name(file, begin, after)
        if number > 2:
            break
    return ""


def _plane(file: XFile, start: int, end: int) -> Plane:
    found = Plane()
    stats: dict[Any, Any] = {}
    for number, wire, _, begin, after in file.fields(start, end, "a plane"):
        if wire != BYTES:
            continue
        if number == 6:
            data = file.read(begin, min(after, begin + _LARGE))
            _take_stat(stats, data, lambda: file.say("a stat of a plane is damaged"))
        else:
            _take_plane_field(file, found, number, begin, after)
    found.stats = _resolved(stats, found.texts)
    for metadata in found.events.values():
        metadata.stats = _resolved(metadata.stats, found.texts)
    return found


def _take_plane_field(file: XFile, found: Plane, number: int, begin: int, after: int) -> None:
    if number == 2:
        found.name = _name(file, begin, after)
    elif number == 3:
        found.lines.append((begin, after))
    elif number == 4:
        _take_event_metadata(file, found, begin, after)
    elif number == 5:
        key, text = _stat_metadata(file, file.read(begin, after))
        found.texts[key] = text


def _take_event_metadata(file: XFile, plane: Plane, begin: int, after: int) -> None:
    is_large = after - begin > _LARGE
    data = file.read(begin, begin + _LARGE if is_large else after)
    key, metadata = _metadata(file, data, is_cut=is_large)
    metadata.place = (begin, after)
    if is_large:
        metadata.stats = {}
    plane.events[key] = metadata


def _metadata(file: XFile, data: bytes, is_cut: bool = False) -> tuple[int, Metadata]:
    """An entry of the map of event metadata; its stats are still under numbers."""
    broken = _ignored if is_cut else lambda: file.say("metadata of an event is damaged")
    key, found = 0, Metadata()
    for number, value in fields(data, broken):
        if number == 1 and isinstance(value, int):
            key = signed(value)
        elif number == 2 and isinstance(value, bytes):
            _take_metadata(file, found, value, broken)
    return key, found


def _take_metadata(file: XFile, found: Metadata, data: bytes, broken: Callable[[], None]) -> None:
    for number, value in fields(data, broken):
        if not isinstance(value, bytes):
            continue
        if number == 2:
            found.name = _text(value)
        elif number == 4:
            found.shown = _text(value)
        elif number == 5:
            _take_stat(found.stats, value, broken)


def _stat_metadata(file: XFile, data: bytes) -> tuple[int, str]:
    def broken() -> None:
        file.say("the name of a stat is damaged")

    key, text = 0, ""
    for number, value in fields(data, broken):
        if number == 1 and isinstance(value, int):
            key = signed(value)
        elif number == 2 and isinstance(value, bytes):
            names = (v for n, v in fields(value, broken) if n == 2 and isinstance(v, bytes))
            text = _text(next(names, b""))
    return key, text


def _take_stat(stats: dict[Any, Any], data: bytes, broken: Callable[[], None]) -> None:
    key, found = 0, None
    for number, value in fields(data, broken):
        if number == 1 and isinstance(value, int):
            key = signed(value)
        else:
            found = stat_value(number, value)
    if found is not None:
        stats[key] = found


def stat_value(number: int, value: int | bytes) -> Any:
    """The value of a stat by its field number; a reference as a `Ref`."""
    if isinstance(value, int):
        return {3: value, 4: signed(value), 7: Ref(value)}.get(number)
    if number == 2 and len(value) == 8:
        return struct.unpack("<d", value)[0]
    return {5: _text(value), 6: value}.get(number)


class Ref(int):
    """The number of a text among the names of stats."""


def _resolved(stats: dict[Any, Any], texts: dict[int, str]) -> dict[str, Any]:
    return {
        texts.get(key, ""): texts.get(value, "") if isinstance(value, Ref) else value
        for key, value in stats.items()
    }


def _name(file: XFile, start: int, end: int) -> str:
    return _text(file.read(start, min(end, start + _LONGEST_NAME)))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _ignored() -> None:
    """Broken because it was cut on purpose."""


def _bytes(count: int) -> str:
    return f"{count:,} byte{'s' * (count != 1)}"
