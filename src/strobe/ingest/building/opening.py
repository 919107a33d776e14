"""Open the folder of a run for questions, building its tables first where they are stale."""

from pathlib import Path

from strobe.errors import MissingData, NoSuchRun, UnreadableTrace
from strobe.ingest.building.builder import build, describe, hold
from strobe.ingest.building.table_state import TableState, cached_tables, find_tables
from strobe.ingest.importing.file_search import refuse_folder_of_runs
from strobe.ingest.recording.rank_state import PROBLEMS_FILE
from strobe.messages import Message, message
from strobe.model.manifest import MANIFEST_FILE, STATES, Manifest, read_manifest
from strobe.store import migrate
from strobe.store.run import Run
from strobe.store.run_folder import CANNOT_WRITE, rank_dirs, while_there


def open_run_dir(path: Path | str, *, store_later: bool = False) -> Run:
    """The run of a folder. Raises UnreadableTrace or MissingData, with what to do; NoSuchRun, which
    is of the former, also if the run is removed while it is opened.

    With `store_later`, tables that had to be built may be in memory until `Run.store` is called.
    """
    run = Path(path)
    with while_there(run):
        _refuse_what_is_no_run(run)
        return _opened(run, store_later)


def _opened(run: Path, store_later: bool) -> Run:
    tables = find_tables(run)
    if store_later and tables.state is TableState.STALE and (held := hold(run)) is not None:
        return Run(run, held.manifest, [], held=held.tables, store=held.store)
    try:
        if (run / MANIFEST_FILE).exists() and migrate.migrate(run):
            tables = find_tables(run)
        manifest = build(run, tables)
    except OSError as error:
        if error.errno not in CANNOT_WRITE:
            raise
        if tables.are_usable:  # only run.json could not be written
            manifest = describe(run)
        else:
            tables = cached_tables(run)
            manifest = build(run, tables)
    return Run(run, manifest, [tables.home / f"rank_{number}" for number in rank_dirs(run)])


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
    refuse_folder_of_runs(run, inside)
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
