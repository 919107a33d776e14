"""Build one rank: from what its recorder left, or from the traces that were imported for it."""

from pathlib import Path

from strobe.ingest import recorded, sources
from strobe.ingest.problems import Problems
from strobe.ingest.tables import tables
from strobe.model.schema import STORED_TABLES
from strobe.store import columns

# Neighbours in time lie together in the file, so that a stretch of time is a few row groups.
_ORDER = {
    "events": "id", "op_args": "event_id", "allocations": "ts_ns", "counters": "name, ts_ns",
    "queues": "name, ts_ns",
}  # fmt: skip
_BY_NAME = {table.name: table for table in STORED_TABLES}


def build_rank(raw: Path, rank: int, started_unix_ns: int, target: Path) -> None:
    """Write every stored table of a rank into an existing directory."""
    source = sources if sources.is_imported(raw) else recorded
    trace = source.read(raw, rank, started_unix_ns)
    for name, table in tables(trace, rank).items():
        columns.write(_BY_NAME[name], table, target / f"{name}.parquet", _ORDER.get(name, ""))


def write_failure(target: Path, rank: int, what: str) -> None:
    """The tables of a rank that could not be built: one row that says so."""
    said = Problems()
    said.add("ingest", what)
    columns.write(_BY_NAME["problems"], said.columns(rank), target / "problems.parquet")
