"""Build one rank: from what its recorder wrote, or from the traces that were imported for it."""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from strobe.ingest.building.tables import Tables, tables
from strobe.ingest.importing import sources
from strobe.ingest.trace import span_spool
from strobe.ingest.trace.problems import Problems
from strobe.model.schema import METRIC_TABLES, STORED_TABLES
from strobe.store import blobs, columns
from strobe.store.metric_summary import MetricSummary
from strobe.store.run import part_name

# Neighbours in time are neighbours in the file, so that a range of time is a few row groups. Tables
# of events arrive in that order; sorting them again would double the time to write them.
_ORDER = {"counters": ("name", "ts_ns"), "queues": ("name", "ts_ns")}
# From this many events on, writing a part takes longer than loading and starting a thread.
_WORTH_A_THREAD = 100_000
_BY_NAME = {table.name: table for table in STORED_TABLES}
_METRICS = {table.name for table in METRIC_TABLES}


def build_rank(raw: Path, rank: int, started_unix_ns: int, target: Path) -> None:
    """Write every stored table of a rank into an existing directory."""
    with span_spool.scratch_in(target), blobs.blobs_in(target):
        write_rank(read_rank(raw, rank, started_unix_ns), target)


def read_rank(raw: Path, rank: int, started_unix_ns: int) -> Iterator[Tables]:
    """Every stored table of a rank, by name, as columns: those of events in parts."""
    if sources.is_imported(raw):
        return tables(sources.read(raw, rank, started_unix_ns), rank)
    from strobe.ingest.recording import rank_reader

    return tables(rank_reader.read(raw, rank, started_unix_ns), rank)


def write_rank(parts: Iterable[Tables], target: Path) -> None:
    """While one part is written, the next one is prepared."""
    written, summary = Counter[str](), MetricSummary()
    with contextlib.ExitStack() as at_end:
        wait: Callable[[], None] = lambda: None  # noqa: E731
        submit = None
        for part in parts:
            wait()
            if columns.row_count(part.get("events", {})) < _WORTH_A_THREAD:
                _write_part(part, target, written, summary)
                continue
            if submit is None:
                from concurrent.futures import ThreadPoolExecutor

                submit = at_end.enter_context(ThreadPoolExecutor(1)).submit
            wait = submit(_write_part, part, target, written, summary).result
        wait()
    summary.write(target)


def _write_part(part: Tables, target: Path, written: Counter[str], summary: MetricSummary) -> None:
    for name, table in part.items():
        if (written[name] or name in _METRICS) and not columns.has_rows(table):
            continue
        path = target / part_name(name, written[name])
        columns.write(_BY_NAME[name], table, path, _ORDER.get(name, ()))
        summary.add(name, table)
        written[name] += 1


def write_failure(target: Path, rank: int, what: str) -> None:
    """The tables of a rank that could not be built: one row that says so."""
    said = Problems()
    said.add("ingest", what)
    columns.write(_BY_NAME["problems"], said.columns(rank), target / "problems.parquet")
