"""Traces written elsewhere: which files they are, which reader and which rank they belong to.

`rank_N/raw/sources.json` lists what was imported for a rank. The files stay where they are.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from strobe.errors import UnreadableTrace
from strobe.ingest import packed
from strobe.ingest.trace import About, Trace
from strobe.model.manifest import write_json

SOURCES_FILE = "sources.json"
ABOUT_FILE = "about.json"
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


@dataclass
class Source:
    """One trace of a rank, as it is kept in sources.json."""

    reader: str
    paths: list[str]
    number: int = 0  # tells the sources of a rank apart
    sizes: list[int] = field(default_factory=list)

    @property
    def path(self) -> Path:
        return Path(self.paths[0])


def is_imported(raw: Path) -> bool:
    return (raw / SOURCES_FILE).exists()


def write(raw: Path, sources: list[Source]) -> None:
    write_json(raw / SOURCES_FILE, {"sources": [asdict(source) for source in sources]})


def listed(raw: Path) -> list[Source]:
    try:
        found = json.loads((raw / SOURCES_FILE).read_text(encoding="utf-8"))
        return [Source(**entry) for entry in found["sources"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UnreadableTrace(
            f"the list of imported files cannot be read: {error}", where=str(raw / SOURCES_FILE),
            hint="import the traces again",
        ) from error  # fmt: skip


def about(raw: Path) -> About:
    """What the traces of a rank say of its process; known once they were read."""
    try:
        return About(**json.loads((raw / ABOUT_FILE).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return About()


def read(raw: Path, rank: int, started_unix_ns: int) -> Trace:
    """Everything readable in the traces of a rank."""
    from strobe.ingest.readers import READERS

    readers = {reader.NAME: reader for reader in READERS}
    whole = Trace()
    for source in listed(raw):
        try:
            trace = readers[source.reader].read(source, whole.words)
        except UnreadableTrace as error:
            whole.said.add(error.where or source.path.name, error.what)
            continue
        trace.shift(-started_unix_ns if trace.is_unix else -trace.first_ns())
        whole.take(trace)
    write_json(raw / ABOUT_FILE, asdict(whole.about))
    return whole


def peek(path: Path) -> Peek:
    head = packed.beginning(path, _PEEK_BYTES)
    return Peek(path, head, is_whole=len(head) < _PEEK_BYTES)


def files_below(folder: Path) -> Iterator[Path]:
    """Every regular file, in a settled order; links out of the folder are not followed."""
    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(place) / name
            if path.is_file() and not path.is_symlink():
                yield path
