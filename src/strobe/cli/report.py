"""What `strobe run` prints when the script has ended: the verdict first, the summary below it.

If nothing was recorded, it prints the reason, and the run's empty folder is removed.
"""

import contextlib
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, TextIO

from strobe.cli.progress_line import ProgressLine
from strobe.collect.start.job import has_no_data
from strobe.errors import StrobeError
from strobe.messages import in_language, localized, users_language

if TYPE_CHECKING:
    from strobe.reading import OpenedRun

# In a run's folder: the runs that commands below it recorded with a `strobe run` of their own.
NESTED_FILE = "nested.txt"

_FEW_EVENTS = 200_000


def print_report(folder: Path) -> bool:
    """Whether it was cancelled, by Ctrl-C. Errors are printed, never raised."""
    with _interrupts() as interrupts:
        try:
            _print_report(folder, interrupts)
        except StrobeError as error:
            id = "cli/report.error-with-hint" if error.hint else "cli/report.error"
            say(localized(id, what=error.what, hint=error.hint))
        except BaseException as error:  # DuckDB raises an error of its own when it is interrupted
            if interrupts:
                say(localized("cli/report.cancelled", folder=folder))
            elif not isinstance(error, Exception):
                raise
            else:
                reason = f"{type(error).__name__}: {error}"
                say(localized("cli/report.failed", folder=folder, reason=reason))
        return bool(interrupts)


def _print_report(folder: Path, interrupts: list[int]) -> None:
    from strobe.ingest.building.opening import open_run_dir
    from strobe.reading import OpenedRun

    with ProgressLine(localized("cli/parser.reading")):
        opened = OpenedRun(open_run_dir(folder, store_later=True))
    with opened:
        _read_by_one_thread_if_small(opened)
        print_page(opened, sys.stderr, str(folder), interrupts)
        has_operators = opened.run.sql("FROM op_args LIMIT 1").fetchall()
        table = "operators" if has_operators else "steps"
        say(localized("cli/report.recorded", folder=folder, table=table))
        sys.stderr.flush()
        with contextlib.suppress(Exception):  # then it is done when the run is next opened
            opened.run.store()


def _read_by_one_thread_if_small(opened: "OpenedRun") -> None:
    """On a busy machine a query of a millisecond waits longer for its second thread."""
    ((events,),) = opened.run.sql("SELECT count(*) FROM events").fetchall()
    if events < _FEW_EVENTS:
        opened.run.connection.execute("SET threads = 1")


def print_page(
    opened: "OpenedRun", file: TextIO, name: str, interrupts: list[int] | None = None
) -> None:
    """The verdict, as soon as it is known, then the summary."""
    from strobe.advise import advise
    from strobe.show.text.findings import write_brief
    from strobe.show.text.paper import Paper
    from strobe.show.text.summary import print_summary

    with ProgressLine(localized("cli/parser.advising")):
        advice = advise(opened.run)
    if interrupts:  # a rule that was interrupted counts as one without an answer
        raise KeyboardInterrupt
    advice.run = name
    write_brief(advice, Paper(file))
    print(file=file, flush=True)
    print_summary(opened, file)


@contextlib.contextmanager
def _interrupts() -> Iterator[list[int]]:
    """The Ctrl-Cs that came meanwhile."""
    came: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        came.append(number)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield came
    finally:
        signal.signal(signal.SIGINT, before)


def print_why_nothing(folder: Path) -> bool:
    """Print why a run has no data, if it has none; whether it has none."""
    if not folder.is_dir() or any(folder.glob("rank_*")):
        return False
    # What reads runs is imported only now: where a package is broken, the summary says so.
    from strobe.ingest.building import opening
    from strobe.model.manifest import read_manifest

    nested = nested_runs(folder)
    if nested:
        say(localized("cli/report.nested", folder=nested[-1]))
        return True
    try:
        manifest = read_manifest(folder)
    except StrobeError:
        return False
    hint = "" if manifest.state == "failed" else opening.what_to_do(manifest)
    id = "cli/report.nothing-with-hint" if hint else "cli/report.nothing"
    say(localized(id, reason=opening.why_nothing(folder, manifest), hint=hint))
    return True


def remove_if_empty(folder: Path, *, was_there: bool) -> bool:
    """A run in which nothing was recorded goes, and `strobe-runs` with it if it is empty then."""
    from strobe.model.new_run import BASE_DIR

    if not folder.is_dir() or not has_no_data(folder, {NESTED_FILE}):
        return False
    for entry in folder.iterdir():
        with contextlib.suppress(OSError):
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    with contextlib.suppress(OSError):
        if not was_there:
            folder.rmdir()
        if folder.parent.name == BASE_DIR:
            folder.parent.rmdir()  # where others are in it, it stays
    return True


def nested_runs(folder: Path) -> list[str]:
    try:
        return (folder / NESTED_FILE).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []


def note_nested(outer: Path, folder: Path) -> None:
    """Report to the `strobe run` above this one where this one records."""
    with contextlib.suppress(OSError), open(outer / NESTED_FILE, "a", encoding="utf-8") as file:
        file.write(f"{folder.resolve()}\n")


def say(text: str) -> None:
    print(f"strobe: {in_language(text, users_language())}", file=sys.stderr)
