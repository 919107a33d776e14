"""Traces written elsewhere: which files they are, which reader and which rank they belong to.

`rank_N/raw/sources.json` lists what was imported for a rank. The files stay where they are, except
that archives were unpacked into the run.

Traces on the wall clock are placed on it; any other is placed so that it begins with the run. If
the run turns out to begin earlier than a first look at the traces told, `CLOCK_FILE` says so.
"""

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from strobe.errors import UnreadableTrace
from strobe.ingest.formats import compressed
from strobe.ingest.trace.trace import About, Trace
from strobe.model.manifest import MANIFEST_FILE, write_json

SOURCES_FILE = "sources.json"
ABOUT_FILE = "about.json"
CLOCK_FILE = "clock.json"  # beside raw/, while a run is being imported
_PEEK_BYTES = 64 << 10


@dataclass(frozen=True)
class Peek:
    """The beginning of a file, unpacked: what a reader recognises a format by."""

    path: Path
    head: bytes  # up to 64 KiB
    is_whole: bool  # whether that is all of it


@dataclass(frozen=True)
class Found:
    """Files that make up one trace of one rank, as far as a first look tells."""

    paths: tuple[Path, ...]
    rank: int | None = None
    first_unix_ns: int | None = None  # an early event, if the trace is on the wall clock
    # Files that the reader knows of and does not need: nobody else shall read them either.
    ignored: tuple[Path, ...] = ()
    ranks: tuple[int, ...] = ()  # of a trace that holds several, each whole
    world_size: int | None = None  # how many ranks the job has, if the trace says so
    folder: Path | None = None  # that contains all of it, where that is not the first file's


@dataclass
class Source:
    """One trace of a rank, as it is kept in sources.json."""

    reader: str
    paths: list[str]
    number: int = 0  # tells the sources of a rank apart
    sizes: list[int] = field(default_factory=list)
    rank: int = 0
    part: int | None = None  # which rank of a trace that holds several

    @property
    def path(self) -> Path:
        return Path(self.paths[0])


@dataclass
class Given:
    """What was imported for a rank, and what there is to say of the choice."""

    sources: list[Source] = field(default_factory=list)
    said: list[tuple[str, str, int]] = field(default_factory=list)  # source, what, count
    # Its clock is not that of the other ranks: its times count from its own first event.
    has_own_clock: bool = False


def is_imported(raw: Path) -> bool:
    return (raw / SOURCES_FILE).exists()


def write(raw: Path, given: Given) -> None:
    write_json(raw / SOURCES_FILE, asdict(given))


def given_to(raw: Path) -> Given:
    """Raises UnreadableTrace."""
    try:
        found = json.loads((raw / SOURCES_FILE).read_text(encoding="utf-8"))
        found["sources"] = [Source(**entry) for entry in found["sources"]]
        for source in found["sources"]:  # what was unpacked into the run moves with it
            source.paths = [os.path.normpath(raw / path) for path in source.paths]
        return Given(**found)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UnreadableTrace(
            f"the list of imported files cannot be read: {error}", where=str(raw / SOURCES_FILE),
            hint="import the traces again",
        ) from error  # fmt: skip


def listed(raw: Path) -> list[Source]:
    return given_to(raw).sources


def are_gone(raw: Path) -> bool:
    """Whether files that the tables of a rank were made from are not there any more."""
    try:
        return is_imported(raw) and any(
            not os.path.exists(path) for source in listed(raw) for path in source.paths
        )
    except UnreadableTrace:
        return False


def about(raw: Path) -> About:
    """What the traces of a rank say of its process; known once they were read."""
    try:
        return About(**json.loads((raw / ABOUT_FILE).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return About()


def read(raw: Path, rank: int, started_unix_ns: int) -> Trace:
    """Everything readable in the traces of a rank."""
    given = given_to(raw)
    whole, any_placed = Trace(), False
    for place, what, count in given.said:
        whole.said.add(place, what, count)
    for source in given.sources:
        trace = _read_one(source, whole)
        if trace is None:
            continue
        # A run's own timeline without a date still counts from where that run began.
        is_placed = trace.is_unix or (bool(trace.ready) and not started_unix_ns)
        is_placed &= not given.has_own_clock
        any_placed |= is_placed
        trace.shift(-started_unix_ns if is_placed else -trace.first_ns())
        if not is_placed and _has_company(raw):
            whole.said.add(source.path.name, _OTHER_CLOCK)
        _take(whole, trace, source)
    if (raw.parent / CLOCK_FILE).exists():
        _settle(raw, whole, started_unix_ns, any_placed)
    with contextlib.suppress(OSError):  # a run that others wrote is read all the same
        write_json(raw / ABOUT_FILE, asdict(whole.about))
    return whole


_OTHER_CLOCK = (
    "its times cannot be compared with those of other ranks: it was placed so that it begins with"
    " the run"
)


def _read_one(source: Source, whole: Trace) -> Trace | None:
    from strobe.ingest.formats.registry import READERS

    reader = READERS.named(source.reader)
    if reader is None:
        whole.said.add(source.path.name, f"this Strobe has no reader for {source.reader!r}")
        return None
    try:
        return reader.read(source, whole.words)
    except UnreadableTrace as error:
        whole.said.add(source.path.name, error.what)
        return None


def _take(whole: Trace, trace: Trace, source: Source) -> None:
    if (trace.ready and (whole.spans or whole.ready)) or (whole.ready and trace.spans):
        whole.said.add(
            source.path.name, "left out: another trace of this rank is a whole run's timeline"
        )
        return
    whole.take(trace)


def _has_company(raw: Path) -> bool:
    run = raw.parent.parent
    return sum(1 for _ in run.glob(f"rank_*/{raw.name}/{SOURCES_FILE}")) > 1


def _settle(raw: Path, whole: Trace, started_unix_ns: int, is_placed: bool) -> None:
    """Tell `strobe import` when the first event was; a rank that is alone begins the run itself."""
    first_ns, moved_ns = whole.first_ns(), 0
    if whole.ready:  # its zero is known: only what is before it can move it
        first_ns = min(first_ns, 0)
    if is_placed and not _has_company(raw) and (first_ns < 0 or not started_unix_ns):
        moved_ns = -first_ns
        whole.shift(moved_ns)
    told = {"first_ns": first_ns, "moved_ns": moved_ns, "is_placed": is_placed}
    write_json(raw.parent / CLOCK_FILE, told)


def clock_told(raw: Path) -> dict[str, Any]:
    try:
        told = json.loads((raw.parent / CLOCK_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return told if isinstance(told, dict) else {}


def peek(path: Path) -> Peek:
    head = compressed.beginning(path, _PEEK_BYTES)
    return Peek(path, head, is_whole=len(head) < _PEEK_BYTES)


def files_below(folder: Path) -> Iterator[Path]:
    """Every regular file, in a settled order, but hidden ones, and those of runs.

    Links are not followed: they may lead out of the folder, or round in circles.
    """
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(
            name for name in folders
            if not name.startswith(".") and not Path(place, name, MANIFEST_FILE).exists()
        )  # fmt: skip
        for name in sorted(names):
            path = Path(place) / name
            if not name.startswith(".") and path.is_file() and not path.is_symlink():
                yield path
