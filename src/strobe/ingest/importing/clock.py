"""When an imported run began, which is only certain once all of its traces were read.

A first look at each trace gives an estimate, by which its times are placed. If an event turns out
to be earlier, the tables of all ranks on the wall clock are shifted.
"""

from pathlib import Path

from strobe.ingest.importing import sources
from strobe.ingest.trace.trace import MOMENTS
from strobe.model.manifest import read_manifest, write_json, write_manifest
from strobe.model.schema import STORED_TABLES
from strobe.store.run import TABLES_DIR
from strobe.store.run_folder import rank_dirs

_COLUMNS = {table.name: table.column_names for table in STORED_TABLES}


def wanted(raw: Path) -> None:
    """Ask the processes that build ranks to report their first events."""
    write_json(raw.parent / sources.CLOCK_FILE, {})


def settle(run: Path) -> None:
    """Set the start of the run to its first event, if the estimate was too late or missing."""
    manifest = read_manifest(run)
    raws = rank_dirs(run).values()
    told = {raw: sources.clock_told(raw) for raw in raws}
    for raw in raws:
        (raw.parent / sources.CLOCK_FILE).unlink(missing_ok=True)
    placed = {raw: clock for raw, clock in told.items() if clock.get("is_placed")}
    if not placed:
        return
    first_ns = min(int(clock["first_ns"]) for clock in placed.values())
    if first_ns == 0 or (first_ns > 0 and manifest.started_unix_ns):
        return
    manifest.started_unix_ns = max(0, manifest.started_unix_ns + first_ns)
    write_manifest(run, manifest)
    for raw, clock in placed.items():
        if not clock["moved_ns"]:
            _move(raw.parent / TABLES_DIR, -first_ns)


def _move(tables: Path, by_ns: int) -> None:
    import duckdb

    with duckdb.connect(config={"threads": 2}) as connection:
        for path in sorted(tables.glob("*.parquet")):
            moments = [name for name in MOMENTS if name in _COLUMNS[path.name.partition(".")[0]]]
            if not moments:
                continue
            moved = ", ".join(f"{name} + {by_ns} AS {name}" for name in moments)
            aside = path.with_name(f"{path.name}.tmp")
            source, target = (str(file).replace("'", "''") for file in (path, aside))
            connection.execute(
                f"COPY (SELECT * REPLACE ({moved}) FROM read_parquet('{source}')) TO '{target}'"
                " (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 122880)"
            )
            aside.replace(path)
