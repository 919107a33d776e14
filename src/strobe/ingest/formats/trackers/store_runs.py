"""The runs of a file that contains several, and the name by which each is opened: FILE/RUN."""

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from strobe.errors import UnreadableTrace
from strobe.ingest.formats.trackers import database
from strobe.ingest.importing.sources import Found, files_below
from strobe.ingest.trace.problems import Problems
from strobe.ingest.trace.spans import Vocabulary
from strobe.ingest.trace.trace import Trace

Take = Callable[[sqlite3.Connection, Trace, database.Say], None]


@dataclass(frozen=True)
class StoredRun:
    id: str
    name: str = ""
    began_unix_ns: int | None = None


def found(path: Path, runs: Iterable[StoredRun]) -> Found | None:
    """The file, with each of its runs; None if it has none."""
    runs = list(runs)
    names = Counter(name for run in runs for name in {run.name, run.id})
    beside = tuple(
        other
        for other in (path.with_name(path.name + end) for end in database.BESIDE)
        if other.exists()
    )
    each = tuple(
        Found(
            (path,), rank=0, first_unix_ns=run.began_unix_ns, ignored=beside, run=run.id,
            run_name=run.name, folder=path / _label(run, names) if len(runs) > 1 else path,
        )
        for run in runs
    )  # fmt: skip
    return Found((path,), ignored=beside, runs=each) if each else None


def of_files(
    folder: Path, endings: tuple[str, ...], found_in: Callable[[Path], Found | None]
) -> Iterator[Found]:
    """Each run of the databases in a folder; one that cannot be read hides no other."""
    for path in files_below(folder):
        if not path.name.endswith(endings) or not database.is_database(path):
            continue
        try:
            its = found_in(path)
        except UnreadableTrace:  # reported when the file is looked at by itself
            continue
        yield from its.runs if its else ()


def read(path: Path, words: Vocabulary, take: Take) -> Trace:
    """A trace that `take` fills from the database; it begins again if that changes meanwhile."""
    problems = Problems()

    def attempt(connection: sqlite3.Connection) -> Trace:
        trace = Trace(words, is_unix=True)

        def say(what: str, count: int) -> None:
            trace.said.add(path.name, what, count)

        take(connection, trace, say)
        return trace

    trace = database.read(path, attempt, lambda what, count: problems.add(path.name, what, count))
    trace.said.update(problems)
    return trace


def unsaid(what: str, count: int) -> None:
    """Where runs are only listed: problems are counted when one is read."""


def _label(run: StoredRun, names: Counter[str]) -> str:
    """Its name, unless another run has the same, or the name cannot be part of a path."""
    is_plain = all(part not in ("", ".", "..") for part in run.name.split("/"))
    return run.name if is_plain and names[run.name] == 1 and "\0" not in run.name else run.id
