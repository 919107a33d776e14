"""Open a run for questions, building its tables first where they are missing or old."""

import errno
import hashlib
import os
import shutil
from pathlib import Path

from strobe.errors import MissingData, NoSuchRun, UnreadableTrace
from strobe.ingest.building.builder import build, hold, is_current, rank_dirs
from strobe.ingest.recording.rank_state import PROBLEMS_FILE
from strobe.messages import Message, message
from strobe.model.manifest import MANIFEST_FILE, STATES, Manifest, read_manifest
from strobe.store import migrate
from strobe.store.run import Run
from strobe.store.run_folder import while_there
from strobe.store.user_cache import user_cache as user_cache

_CANNOT_WRITE = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT}


def open_run_dir(path: Path | str, *, store_later: bool = False) -> Run:
    """The run of a directory. Raises UnreadableTrace or MissingData, with what to do;
    NoSuchRun, which is of the former, also where it is removed meanwhile.

    With `store_later`, tables that had to be built may be in memory until `Run.store` is called.
    """
    run = Path(path)
    with while_there(run):
        _refuse_what_is_no_run(run)
        return _opened(run, store_later)


def _opened(run: Path, store_later: bool) -> Run:
    if store_later and _can_be_stored(run) and (held := hold(run)) is not None:
        return Run(run, held.manifest, [], held=held.tables, store=held.store)
    home = run
    try:
        if (run / MANIFEST_FILE).exists():
            migrate.migrate(run)
        _refuse_full_disk(run)
        manifest = build(run)
    except OSError as error:
        if error.errno not in _CANNOT_WRITE:
            raise
        home = _cache(run)
        manifest = build(run, into=home)
    return Run(run, manifest, [home / f"rank_{number}" for number in rank_dirs(run)])


def _refuse_what_is_no_run(run: Path) -> None:
    if not run.exists():
        raise NoSuchRun.of("errors/run.missing", where=str(run))
    if not run.is_dir():
        raise UnreadableTrace.of("errors/run.is-file", where=str(run))
    if rank_dirs(run):
        return
    manifest = read_manifest(run) if (run / MANIFEST_FILE).exists() else None
    if manifest is not None:
        hint = what_to_do(manifest)
        raise MissingData.of(
            "errors/run.nothing-recorded",
            where=str(run),
            hint=hint,
            reason=why_nothing(run, manifest),
        )
    inside = [child for child in sorted(run.iterdir()) if (child / MANIFEST_FILE).exists()]
    if inside:
        raise UnreadableTrace.of(
            "errors/run.contains-runs", where=str(run), runs=", ".join(map(str, inside[:3]))
        )
    raise UnreadableTrace.of(
        "errors/run.no-run" if any(run.iterdir()) else "errors/run.empty", where=str(run)
    )


def why_nothing(run: Path, manifest: Manifest) -> str:
    """Of a run without ranks."""
    try:
        words = (run / PROBLEMS_FILE).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        words = []
    if words:
        return words[-1].split(": ", 1)[-1]
    if manifest.state == "recording":
        return message("errors/run.not-trained-yet")
    id = "errors/run.ended-before-training"
    state: str = manifest.state
    if state in STATES:
        state = message(f"summary.state-{state}")
    if manifest.exit_code:
        return message(f"{id}-with-code", state=state, code=manifest.exit_code)
    return message(id, state=state)


def what_to_do(manifest: Manifest) -> Message:
    """The hint for a run in which nothing was recorded."""
    id = "fix-script-first" if manifest.state == "failed" else "does-it-train"
    return message(f"errors/run.{id}")


def _can_be_stored(run: Path) -> bool:
    try:
        _refuse_full_disk(run)
    except OSError:
        return False
    return os.access(run, os.W_OK)


def _refuse_full_disk(run: Path) -> None:
    """DuckDB's own word on it is not an OSError, and comes when a table is half written."""
    raw_bytes = sum(path.stat().st_size for path in run.glob("rank_*/raw/*"))
    if shutil.disk_usage(run).free < raw_bytes and not is_current(run):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(run))


def tables_home(run: Path) -> Path:
    """The directory with the ranks' tables: the run, or the cache if it cannot be written to."""
    cached = _cached(run)
    is_elsewhere = cached.is_dir() and not (os.access(run, os.W_OK) and is_current(run))
    return cached if is_elsewhere else run


def _cached(run: Path) -> Path:
    return user_cache() / hashlib.sha256(str(run.resolve()).encode()).hexdigest()[:16]


def _cache(run: Path) -> Path:
    """Where the tables of a run go that cannot be written to."""
    home = _cached(run)
    home.mkdir(exist_ok=True)
    return home
