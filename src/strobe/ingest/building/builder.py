"""Build the tables of a run from what its ranks recorded, each rank whole or not at all."""

import contextlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from strobe.errors import NoSuchRun
from strobe.ingest.building.rank_tables import build_rank, read_rank, write_failure, write_rank
from strobe.ingest.building.table_state import BUILT_FILE, RunTables, find_tables, stamp
from strobe.ingest.building.tables import Tables
from strobe.ingest.importing import sources
from strobe.ingest.recording import early_windows, rank_state, trace_deletion
from strobe.model.manifest import (
    MANIFEST_FILE,
    Manifest,
    Rank,
    read_manifest,
    write_json,
    write_manifest,
)
from strobe.model.schema import SCHEMA_VERSION
from strobe.processes import ordered_pool, process
from strobe.store.run import TABLES_DIR
from strobe.store.run_folder import RAW_DIR, folder_in, rank_dirs, refuse_removed, removed

_TEMPORARY = ".tables.tmp-"
_BUILD_APART = "strobe.ingest.building.builder:build_apart"
# Of raw files: larger ones are built in slices, which memory need not hold together.
_MOST_HELD_BYTES = 64 << 20
# From best to worst: a run ended as its worst rank did.
_SEVERITY = ("finished", "recording", "interrupted", "terminated", "failed", "killed")


def build(run: Path, tables: RunTables | None = None) -> Manifest:
    """Build the tables that are stale (by default, as `find_tables` says), and describe the run.

    A rank that cannot be built gets a row in its problems and does not spoil the others.
    """
    tables = tables or find_tables(run)
    is_own = tables.home == run
    if not is_own:
        tables.home.mkdir(exist_ok=True)
    read = _parts(run)
    manifest = describe(run)
    jobs = [(run, number, manifest.started_unix_ns, tables.home) for number in tables.stale]
    if len(jobs) > 1:
        for _ in ordered_pool.beside_each_other(_BUILD_APART, jobs):
            pass
    elif jobs:
        _build_one(*jobs[0])
    if is_own and _as_stored(run) != manifest.to_json():
        _tell(run, manifest, read)
    return manifest


@dataclass
class Held:
    """The tables of a run, built and in memory."""

    manifest: Manifest
    tables: list[Tables]
    store: Callable[[], None]  # writes them


def hold(run: Path) -> Held | None:
    """Build the stale tables of a run of one rank in memory; None where `build` must see to it."""
    ranks = rank_dirs(run)
    if len(ranks) != 1 or not (run / MANIFEST_FILE).exists():
        return None
    ((number, raw),) = ranks.items()
    if sources.is_imported(raw):  # its files lie elsewhere, and may be of any size
        return None
    if sum(path.stat().st_size for path in raw.iterdir()) > _MOST_HELD_BYTES:
        return None
    read = _parts(run)
    manifest, built = describe(run), stamp(raw, number)
    if manifest.schema_version != SCHEMA_VERSION:
        return None
    try:
        tables = list(read_rank(raw, number, manifest.started_unix_ns))
    except Exception:  # met again by build, and told
        return None

    def store() -> None:
        with _replacing(run / f"rank_{number}", raw) as folder:
            write_rank(tables, folder)
            write_json(folder / BUILT_FILE, built)
        _clear_ahead(run / f"rank_{number}", built)
        _simplify(run / f"rank_{number}", number, built)
        _tell(run, manifest, read)

    return Held(manifest, tables, store)


def _parts(run: Path) -> list[Path]:
    """What a run is told from, as far as it is there. Raises NoSuchRun if nothing is."""
    parts = [path for path in (run / MANIFEST_FILE, *rank_dirs(run).values()) if path.exists()]
    if not parts:
        raise removed(run)
    return parts


def _tell(run: Path, manifest: Manifest, read: list[Path]) -> None:
    """Write run.json anew, beside what it tells of: alone it would be a run, and a broken one."""
    refuse_removed(*read)
    write_manifest(run, manifest)
    try:
        refuse_removed(*read)
    except NoSuchRun:
        (run / MANIFEST_FILE).unlink(missing_ok=True)
        raise


def describe(run: Path) -> Manifest:
    """run.json with what the ranks say of themselves; made from them alone where it is missing."""
    ranks = [rank_state.describe(raw, number) for number, raw in rank_dirs(run).items()]
    if (run / MANIFEST_FILE).exists():
        manifest = read_manifest(run)
    else:
        starts = [rank.started_unix_ns for rank in ranks if rank.started_unix_ns is not None]
        manifest = Manifest(started_unix_ns=min(starts, default=0), recorded_by="unknown")
        manifest.host = ranks[0].host if ranks else ""
    if ranks:
        manifest.ranks = [_as_the_run_ended(rank, manifest) for rank in ranks]
    if manifest.state == "recording" and ranks and not _is_supervised(manifest, ranks):
        manifest.state = max((rank.state for rank in ranks), key=_SEVERITY.index)
    return manifest


def _as_the_run_ended(rank: Rank, manifest: Manifest) -> Rank:
    """A rank that could say nothing, or did not know its exit code, ended as the run did."""
    unsaid = rank.state == "killed" and manifest.state in ("terminated", "interrupted")
    is_alone = rank.state == "finished" and manifest.state == "failed" and not rank.world_size
    return replace(rank, state=manifest.state) if unsaid or is_alone else rank


def _is_supervised(manifest: Manifest, ranks: list[Rank]) -> bool:
    return any(rank.state == "recording" for rank in ranks)


def _as_stored(run: Path) -> Any:
    try:
        return json.loads((run / MANIFEST_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _build_one(run: Path, number: int, started_unix_ns: int, target: Path) -> None:
    raw = run / f"rank_{number}" / RAW_DIR
    # Taken first: what is written while we read makes the tables stale, not wrongly current.
    built = stamp(raw, number)
    with _replacing(target / f"rank_{number}", raw) as folder:
        try:
            build_rank(raw, number, started_unix_ns, folder)
            if sources.is_imported(raw):  # what its traces say of it is known only now
                built["rank"] = asdict(rank_state.describe(raw, number))
        except Exception as error:
            _empty(folder)
            write_failure(folder, number, _failure(error))
            built["failed"] = True  # never current: tried again when the run is next opened
        write_json(folder / BUILT_FILE, built)
    if target == run:
        _clear_ahead(target / f"rank_{number}", built)
        _simplify(target / f"rank_{number}", number, built)


def _simplify(rank: Path, number: int, built: dict[str, Any]) -> None:
    """The tables stay those of the traces that were deleted."""
    if trace_deletion.simplify(rank / RAW_DIR, built):
        write_json(rank / TABLES_DIR / BUILT_FILE, stamp(rank / RAW_DIR, number))


def _clear_ahead(rank: Path, built: dict[str, Any]) -> None:
    """What was read ahead of a rank that still trains is needed at its end."""
    if built["rank"]["state"] != "recording" and not built.get("failed"):
        early_windows.clear(rank)


def build_apart(run: Path, number: int, started_unix_ns: int, target: Path) -> None:
    """In a process of its own, so that one rank's crash or hunger for memory ends there."""
    rank_state.builder()  # kept, for all who are forked from here
    ended = process.run_apart(_build_one, run, number, started_unix_ns, target)
    if ended.code:
        raw = run / f"rank_{number}" / RAW_DIR
        with _replacing(target / f"rank_{number}", raw) as folder:
            what = f"the tables of this rank were not built (exit {ended.code}): {ended.words}"
            write_failure(folder, number, what)
            write_json(folder / BUILT_FILE, {**stamp(raw, number), "failed": True})


@contextlib.contextmanager
def _replacing(rank: Path, raw: Path) -> Iterator[Path]:
    """A fresh directory that becomes the rank's tables/ once it is complete.

    Raises NoSuchRun if what they are made of, `raw`, was removed meanwhile.
    """
    if rank != raw.parent:  # in the cache; the run's own rank is there, or must not come back
        folder_in(rank.parent, rank.name)
    _clear_leftovers(rank)
    folder = rank / f"{_TEMPORARY}{os.getpid()}"
    _remove(folder)
    folder_in(rank, folder.name, is_new=True)
    try:
        yield folder
        refuse_removed(raw)
        tables, old = rank / TABLES_DIR, rank / f"{_TEMPORARY}{os.getpid()}-old"
        with contextlib.suppress(FileNotFoundError):
            os.rename(tables, old)
        with contextlib.suppress(FileExistsError):  # somebody built the same at the same time
            os.rename(folder, tables)
        _remove(old)
    finally:
        _remove(folder)


def _clear_leftovers(rank: Path) -> None:
    """Of builders that were killed."""
    for path in rank.glob(f"{_TEMPORARY}*"):
        pid = path.name.removeprefix(_TEMPORARY).split("-")[0]
        if pid.isdigit() and not Path(f"/proc/{pid}").exists():
            _remove(path)


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir():  # what was kept on disk while it was read
            _remove(path)
        else:
            path.unlink()


def _remove(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)


def _failure(error: Exception) -> str:
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    place = f" ({Path(frame.tb_frame.f_code.co_filename).name}:{frame.tb_lineno})" if frame else ""
    return f"the tables of this rank were not built: {type(error).__name__}: {error}{place}"
