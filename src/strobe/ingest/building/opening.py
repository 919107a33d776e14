"""Open the folder of a run for questions, building its tables first where they are stale."""

from pathlib import Path

from strobe.errors import MissingData, NoSuchRun, UnreadableTrace
from strobe.ingest.building.builder import build, describe, hold
from strobe.ingest.building.table_state import TableState, cached_tables, find_tables
from strobe.ingest.importing.file_search import refuse_folder_of_runs
from strobe.ingest.recording.rank_state import PROBLEMS_FILE
from strobe.model.manifest import MANIFEST_FILE, Manifest, read_manifest
from strobe.store import migrate
from strobe.store.run import Run
from strobe.store.run_folder import CANNOT_WRITE, rank_dirs, while_there

DOES_IT_TRAIN = "check that the script trains: runs a backward pass or an optimizer"
_FIX_IT_FIRST = "fix the error that the script reported, then record it again"
_HOW_TO_RECORD = "record one with: strobe run -o RUN train.py"
_WHAT_TO_NAME = (
    "name the folder of a run (the -o RUN of strobe run) or a trace to import; to record a run: "
    "strobe run -o RUN train.py"
)


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
        raise NoSuchRun("there is no such run", where=str(run), hint=_WHAT_TO_NAME)
    if not run.is_dir():
        raise UnreadableTrace(
            "this is a file, and a run is a folder", where=str(run),
            hint=f"to see what is in a trace: strobe show {run}",
        )  # fmt: skip
    if rank_dirs(run):
        return
    manifest = read_manifest(run) if (run / MANIFEST_FILE).exists() else None
    if manifest is not None:
        raise MissingData(
            f"nothing was recorded: {why_nothing(run, manifest)}", where=str(run),
            hint=_FIX_IT_FIRST if manifest.state == "failed" else DOES_IT_TRAIN,
        )  # fmt: skip
    inside = [child for child in sorted(run.iterdir()) if (child / MANIFEST_FILE).exists()]
    refuse_folder_of_runs(run, inside)
    what = "this folder is not a run" if any(run.iterdir()) else "this folder is empty"
    raise UnreadableTrace(what, where=str(run), hint=_HOW_TO_RECORD)


def why_nothing(run: Path, manifest: Manifest) -> str:
    """Of a run without ranks."""
    try:
        words = (run / PROBLEMS_FILE).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        words = []
    if words:
        return words[-1].split(": ", 1)[-1]
    if manifest.state == "recording":
        return "no process of it has begun to train yet"
    code = f" (exit code {manifest.exit_code})" if manifest.exit_code else ""
    return f"the command {manifest.state}{code} before it trained a step"
