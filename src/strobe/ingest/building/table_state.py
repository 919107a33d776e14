"""Where the tables of a run are, and whether they match what it recorded."""

import enum
import hashlib
import json
import os
import shutil
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from strobe.ingest.importing import orphan_tables
from strobe.ingest.recording import rank_state
from strobe.model.schema import SCHEMA_VERSION
from strobe.store.run import TABLES_DIR
from strobe.store.run_folder import rank_dirs
from strobe.store.user_cache import user_cache
from strobe.version import __version__

BUILT_FILE = "built.json"


class TableState(enum.IntEnum):
    """From best to worst: the state of a run is that of its worst rank."""

    CURRENT = 0  # built by this version, from what is recorded now
    ORPHANED = 1  # built from traces that are gone: used as they are
    STALE = 2  # missing or old: to be built in the folder of the run
    UNWRITABLE = 3  # missing or old, and the run cannot be written: to be built in the user's cache


@dataclass(frozen=True)
class RunTables:
    """The tables of a run: below `home`, in a folder for each rank."""

    home: Path
    state: TableState
    stale: tuple[int, ...]  # the ranks whose tables are to be built

    @property
    def are_usable(self) -> bool:
        return self.state <= TableState.ORPHANED


def find_tables(run: Path) -> RunTables:
    """In the run, or in the user's cache if those of the run are stale and cannot be written."""
    own = _tables_in(run, run)
    if own.are_usable:
        return own
    cached = cached_tables(run)
    return cached if cached.are_usable or not _is_writable(run) else own


def cached_tables(run: Path) -> RunTables:
    """Those in the user's cache, whether or not they are built yet."""
    found = _tables_in(run, _cache_folder(run))
    return found if found.are_usable else replace(found, state=TableState.UNWRITABLE)


def tables_home(run: Path) -> Path:
    """`find_tables(run).home`; fast for a run that was never built in the cache."""
    return find_tables(run).home if _cache_folder(run).is_dir() else run


def is_current(run: Path) -> bool:
    """Whether the run holds usable tables of every rank."""
    return _tables_in(run, run).are_usable


def stamp(raw: Path, number: int) -> dict[str, Any]:
    """What the tables of a rank are built from, and by what."""
    return {
        "schema_version": SCHEMA_VERSION,
        "strobe_version": __version__,
        "builder": rank_state.builder(),
        "raw": rank_state.signature(raw),
        "rank": asdict(rank_state.describe(raw, number)),
    }


def _tables_in(run: Path, home: Path) -> RunTables:
    states = {number: _state(raw, home, number) for number, raw in rank_dirs(run).items()}
    stale = tuple(number for number, state in states.items() if state is TableState.STALE)
    return RunTables(home, _worst(states.values()), stale)


def _worst(states: Iterable[TableState]) -> TableState:
    return max(states, default=TableState.CURRENT)


def _state(raw: Path, home: Path, number: int) -> TableState:
    path = home / f"rank_{number}" / TABLES_DIR / BUILT_FILE
    try:
        if json.loads(path.read_text(encoding="utf-8")) == stamp(raw, number):
            return TableState.CURRENT
    except (OSError, ValueError):
        return TableState.STALE
    is_orphan = orphan_tables.are_kept(raw, path.parent, BUILT_FILE)
    return TableState.ORPHANED if is_orphan else TableState.STALE


def _is_writable(run: Path) -> bool:
    """Whether there are permissions and room: DuckDB reports a full disk too late, and its error
    is not an OSError."""
    raw_bytes = sum(path.stat().st_size for path in run.glob("rank_*/raw/*"))
    return os.access(run, os.W_OK) and shutil.disk_usage(run).free >= raw_bytes


def _cache_folder(run: Path) -> Path:
    return user_cache() / hashlib.sha256(str(run.resolve()).encode()).hexdigest()[:16]
