"""Turn traces written elsewhere into a run: find them, assign ranks, build the tables."""

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from strobe.errors import UnreadableTrace
from strobe.ingest.building import builder
from strobe.ingest.formats import compressed
from strobe.ingest.formats.registry import WITH_WORKERS
from strobe.ingest.importing import clock, discovery, ranks, sources
from strobe.ingest.importing.file_search import Search
from strobe.ingest.trace import progress
from strobe.ingest.trace.progress import Meter
from strobe.messages import message
from strobe.model.manifest import Manifest, write_manifest
from strobe.model.schema import METRIC_TABLES
from strobe.processes import ordered_pool
from strobe.store import parquet
from strobe.store.run import TABLES_DIR, Run
from strobe.store.run_folder import RAW_DIR, rank_dirs


@dataclass
class Imported:
    manifest: Manifest
    files: int
    bytes: int  # of the files, as stored on disk
    events: int


class Watcher(Protocol):
    """Receives the progress of an import."""

    def searches(self, files: int) -> None:
        """The search for traces has reached this number of files."""

    def begins(self, what: str, size: int, meter: Meter) -> None:
        """Reading begins; `what` was found, of this number of bytes."""


def import_traces(
    paths: list[Path], run: Path, watcher: Watcher | None = None, *, is_limited: bool = True
) -> Imported:
    """Make a run of all traces in files and folders; it is created completely or not at all."""
    search = Search() if is_limited else Search(sys.maxsize, float("inf"))
    if watcher is not None:
        search.progress = watcher.searches
    with _appearing(run) as folder:
        found = discovery.discover(paths, folder, search)
        given, started_unix_ns = ranks.assigned(found)
        manifest = Manifest(
            started_unix_ns=started_unix_ns, recorded_by="strobe import",
            command=["strobe", "import", *map(str, paths)], state="finished",
            directory=os.getcwd(), python=sys.version.split()[0],
        )  # fmt: skip
        write_manifest(folder, manifest)
        ranks.relative_to_run(given, folder)
        for rank, of_rank in given.items():
            raw = folder / f"rank_{rank}" / RAW_DIR
            raw.mkdir(parents=True)
            clock.wanted(raw)
            sources.write(raw, of_rank)
        files = {path for trace in found.traces for path in trace.found.paths}
        size = sum(_size(path) for path in files)
        # Several ranks are built in processes of their own, each with its own workers.
        shared = [t for t in found.traces if t.reader in WITH_WORKERS and len(given) == 1]
        expected = sum(compressed.expected_bytes(t.found.paths[0]) for t in shared)
        with progress.metered() as meter, ordered_pool.standing_by(expected, pieces=len(given)):
            if watcher is not None:
                watcher.begins(_what(found, len(given)), size, meter)
            builder.build(folder)
        clock.settle(folder)
        manifest = builder.describe(folder)
        write_manifest(folder, manifest)
        return Imported(manifest, len(files), size, _refuse_nothing(folder, paths))


def _what(found: discovery.Discovered, ranks: int) -> str:
    readers = ", ".join(sorted({seen.reader for seen in found.traces}))
    count = len(found.traces)
    traces = "1 trace" if count == 1 else f"{count:,} traces"
    return f"{traces} ({readers}) of " + ("1 rank" if ranks == 1 else f"{ranks:,} ranks")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _refuse_nothing(folder: Path, paths: list[Path]) -> int:
    """The number of events; raises an error if there is nothing at all."""
    events = _rows(folder, "events")
    others = ("counters", "allocations", *(table.name for table in METRIC_TABLES))
    if events or any(_rows(folder, table) for table in others):
        return events
    ranks = [raw.parent for raw in rank_dirs(folder).values()]
    opened = Run(folder, builder.describe(folder), ranks)
    try:
        said = opened.sql("SELECT source, what FROM problems ORDER BY count LIMIT 1").fetchall()
    finally:
        opened.close()
    raise UnreadableTrace(
        ": ".join(said[0]) if said else message("errors/traces.no-events"), where=str(paths[0])
    )


def _rows(folder: Path, table: str) -> int:
    return sum(map(parquet.rows_in, folder.glob(f"rank_*/{TABLES_DIR}/{table}.*parquet")))


@contextlib.contextmanager
def _appearing(run: Path) -> Iterator[Path]:
    """A folder next to the run that replaces it once it is complete.

    A run that exists already and may be replaced stays there until then.
    """
    made = next((path for path in reversed(run.parents) if not path.exists()), None)
    run.parent.mkdir(parents=True, exist_ok=True)
    _clear_leftovers(run)
    folder, old = (run.parent / f".{run.name}.{word}-{os.getpid()}" for word in ("tmp", "old"))
    folder.mkdir()
    try:
        yield folder
        if run.exists():
            os.rename(run, old)
        try:
            os.rename(folder, run)
        except BaseException:
            if old.exists():
                os.rename(old, run)
            raise
    finally:
        for path in (folder, old):
            shutil.rmtree(path, ignore_errors=True)
        if made is not None and not run.exists():
            shutil.rmtree(made, ignore_errors=True)


def _clear_leftovers(run: Path) -> None:
    """Of imports that were killed."""
    for path in run.parent.glob(f".{run.name}.tmp-*"):
        pid = path.name.rpartition("-")[2]
        if pid.isdigit() and not Path("/proc", pid).exists():
            shutil.rmtree(path, ignore_errors=True)
