"""Tables whose traces are gone: they cannot be rebuilt, so they are used as they are."""

import contextlib
import json
from pathlib import Path

from strobe.ingest.importing import sources
from strobe.ingest.recording import trace_deletion
from strobe.model.schema import SCHEMA_VERSION

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
        usable = built.get("schema_version") == SCHEMA_VERSION and not built.get("failed")
    except (OSError, ValueError, AttributeError):
        return False
    if usable and sources.is_imported(raw):
        import duckdb

        with contextlib.suppress(OSError, duckdb.Error):  # a run that is read-only
            _say(tables, raw)
    return usable


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
