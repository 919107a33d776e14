"""Tables whose traces are gone: they cannot be rebuilt, so they are used as they are."""

import contextlib
import json
from pathlib import Path

from strobe.frameworks.families import family_of
from strobe.ingest.importing import sources
from strobe.ingest.recording import trace_deletion
from strobe.model.manifest import write_json
from strobe.model.schema import SCHEMA_VERSION

# The last version whose tables can be completed without their traces.
_WITHOUT_FAMILIES = 4

_GONE = (
    "files that this rank was imported from are gone: its tables are those that an older Strobe"
    " made of them; put the files back, or import them again"
)


def are_kept(raw: Path, tables: Path, built_file: str) -> bool:
    """Whether stale tables cannot be rebuilt but can be used as they are; `problems` says so."""
    if not sources.are_gone(raw) and not trace_deletion.is_simplified(raw):
        return False
    try:
        built = json.loads((tables / built_file).read_text(encoding="utf-8"))
        version = built.get("schema_version")
        usable = version in (SCHEMA_VERSION, _WITHOUT_FAMILIES) and not built.get("failed")
        if usable and version == _WITHOUT_FAMILIES:
            _add_families(tables)
            write_json(tables / built_file, {**built, "schema_version": SCHEMA_VERSION})
    except (OSError, ValueError, AttributeError):
        return False
    if usable and sources.is_imported(raw):
        import duckdb

        with contextlib.suppress(OSError, duckdb.Error):  # a run that is read-only
            _say(tables, raw)
    return usable


def _add_families(tables: Path) -> None:
    """Add the column `op_args.family`, which schema version 4 did not have."""
    import duckdb

    path = tables / "op_args.parquet"
    if not path.exists():
        return
    aside = path.with_name(f".{path.name}.tmp")
    args, events, target = (
        str(file).replace("'", "''") for file in (path, tables / "events.parquet", aside)
    )
    with duckdb.connect(config={"threads": 1}) as connection:
        joined = f"FROM read_parquet('{args}') a JOIN read_parquet('{events}') e ON e.id = event_id"
        pairs = connection.execute(f"SELECT DISTINCT e.name, a.node {joined}").fetchall()
        connection.execute("CREATE TABLE families (name VARCHAR, node VARCHAR, family VARCHAR)")
        rows = [(name, node, family_of(name, node)) for name, node in pairs]
        if rows:
            connection.executemany("INSERT INTO families VALUES (?, ?, ?)", rows)
        connection.execute(
            f"COPY (SELECT a.*, f.family {joined} LEFT JOIN families f"
            " ON f.name = e.name AND f.node IS NOT DISTINCT FROM a.node ORDER BY a.event_id)"
            f" TO '{target}' (FORMAT parquet, COMPRESSION zstd)"
        )
    aside.replace(path)


def _say(tables: Path, raw: Path) -> None:
    """Report it once."""
    import duckdb

    path = tables / "problems.parquet"
    aside = path.with_name(f".{path.name}.tmp")
    rank = int(raw.parent.name.rpartition("_")[2])
    source, target = (str(file).replace("'", "''") for file in (path, aside))
    with duckdb.connect(config={"threads": 1}) as connection:
        known = connection.execute(
            f"SELECT count(*) FROM read_parquet('{source}') WHERE what = $what", {"what": _GONE}
        ).fetchall()
        if known == [(0,)]:
            connection.execute(
                f"COPY (FROM read_parquet('{source}') UNION ALL"
                f" SELECT {rank}, '{sources.SOURCES_FILE}', '{_GONE}', 1) TO '{target}'"
                " (FORMAT parquet, COMPRESSION zstd)"
            )
            aside.replace(path)
