"""Traces written elsewhere: their files, their reader and their rank.

`rank_N/raw/sources.json` lists what was imported for a rank. The files stay where they are, except
that archives were unpacked into the run.

Traces with wall-clock times are placed by them; any other is placed so that it begins with the run.
If the run turns out to begin earlier than estimated from the traces, `CLOCK_FILE` says so.
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
UNPACKED = "unpacked"  # below the run: the files of archives
CLOCK_FILE = "clock.json"  # next to raw/, while a run is being imported
_PEEK_BYTES = 64 << 10


@dataclass(frozen=True)
class Peek:
    """The beginning of a file, uncompressed, by which a reader recognises a format."""

    path: Path
    head: bytes  # up to 64 KiB
    is_whole: bool  # whether that is the whole file


@dataclass(frozen=True)
class Found:
    """Files that make up one trace of one rank, as far as known before reading."""

    paths: tuple[Path, ...]
    rank: int | None = None
    first_unix_ns: int | None = None  # an early event, if the trace has wall-clock times
    # Files that the reader knows and does not need; no other reader shall read them either.
    ignored: tuple[Path, ...] = ()
    ranks: tuple[int, ...] = ()  # of a trace that contains several, each completely
    world_size: int | None = None  # the number of ranks of the job, if the trace says so
    folder: Path | None = None  # that contains all of it, where that is not the first file's
    run: str = ""  # the ID of a run in a file that may contain several
    run_name: str = ""
    runs: tuple["Found", ...] = ()  # of such a file: each of its runs


@dataclass
class Source:
    """One trace of a rank, as stored in sources.json."""

    reader: str
    paths: list[str]
    number: int = 0  # distinguishes the sources of a rank
    sizes: list[int] = field(default_factory=list)
    rank: int = 0
    part: int | None = None  # the rank within a trace that contains several
    run: str = ""  # the run within a file that contains several

    @property
    def path(self) -> Path:
        return Path(self.paths[0])


@dataclass
class Given:
    """What was imported for a rank, and remarks about the choice."""

    sources: list[Source] = field(default_factory=list)
    said: list[tuple[str, str, int]] = field(default_factory=list)  # source, what, count
    # Its clock differs from that of the other ranks: its times count from its own first event.
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
        raise UnreadableTrace.of(
            "errors/traces.bad-sources", where=str(raw / SOURCES_FILE), reason=error
        ) from error


def listed(raw: Path) -> list[Source]:
    return given_to(raw).sources


def are_gone(raw: Path) -> bool:
    """Whether files that the tables of a rank were made from are gone."""
    try:
        return is_imported(raw) and any(
            not os.path.exists(path) for source in listed(raw) for path in source.paths
        )
    except UnreadableTrace:
        return False


def about(raw: Path) -> About:
    """What the traces of a rank say about its process; known once they were read."""
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
    with contextlib.suppress(OSError):  # a read-only run can be read all the same
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
    """Report the first event to `strobe import`; if there is only one rank, it begins the run
    itself.
    """
    first_ns, moved_ns = whole.first_ns(), 0
    if whole.ready:  # its zero is known: only earlier events can move it
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


def file_and_run(path: Path) -> tuple[Path, str]:
    """The file, and the name of one of its runs if the path is FILE/RUN."""
    for above in path.parents:
        if above.is_file() and not path.exists():
            return above, path.relative_to(above).as_posix()
        if above.is_dir():
            break
    return path, ""


def files_below(folder: Path) -> Iterator[Path]:
    """Every regular file, in a fixed order, except hidden ones and those of runs.

    Links are not followed: they may lead out of the folder, or be circular.
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
