"""What the commands that read a run share: opening it, and saying how to print."""

import argparse
import contextlib
import glob
import os
import sys
import time as clock
from pathlib import Path
from typing import TYPE_CHECKING

from strobe.cli.progress_line import ProgressLine
from strobe.errors import UsageError
from strobe.messages import localized
from strobe.model.manifest import MANIFEST_FILE

if TYPE_CHECKING:
    from strobe.analyse.opened import OpenedRun
    from strobe.show.text.paper import Paper

# Imported files that nobody asked about for so long are forgotten.
_KEPT_S = 7 * 24 * 3600
_PREFIX = "imported-"


def open_run(path: str) -> "OpenedRun":
    """A run, or a trace written elsewhere, which is imported first."""
    from strobe.analyse.opened import OpenedRun
    from strobe.ingest.building.opening import open_run_dir
    from strobe.ingest.importing.sources import file_and_run

    folder = Path(path)
    if not file_and_run(folder)[0].exists():
        raise UsageError.of("errors/run.missing", where=path)
    files = _traces(folder)
    run = _imported(folder, files) if files else folder
    with ProgressLine(localized("cli/parser.reading")):
        return OpenedRun(open_run_dir(run))


def _traces(path: Path) -> list[Path]:
    """The files that are to be imported: none of a run. Raises UsageError in a folder of runs."""
    if not path.is_dir():
        from strobe.ingest.importing.sources import file_and_run

        file = file_and_run(path)[0]  # a database in use changes in the files beside it
        return [file, *sorted(file.parent.glob(f"{glob.escape(file.name)}-*"))]
    if (path / MANIFEST_FILE).exists() or any((path / "raw").is_dir() for path in path.iterdir()):
        return []
    from strobe.ingest.importing.file_search import Search, contents, refuse_folder_of_runs

    found = contents(path, Search())
    refuse_folder_of_runs(path, found.runs)
    return found.files


def _imported(path: Path, files: list[Path]) -> Path:
    """The run made of a trace, made once for each content that the trace had."""
    from strobe.cli.commands.import_ import Bar
    from strobe.ingest.building.opening import user_cache
    from strobe.ingest.importing.importer import import_traces

    cache = user_cache()
    run = cache / f"{_PREFIX}{_signature(path, files)}"
    if not (run / MANIFEST_FILE).exists():
        _forget_old(cache)
        try:
            with Bar(place=str(path) if path.is_dir() else "") as bar:
                import_traces([path], run, bar)
        except OSError:
            if not (run / MANIFEST_FILE).exists():  # else somebody imported it at the same time
                raise
    with contextlib.suppress(OSError):
        os.utime(run)
    return run


def _signature(path: Path, files: list[Path]) -> str:
    """Changes with the name, size and time of change of any of these files, and the readers."""
    import hashlib

    from strobe.ingest.recording.rank_state import builder

    told = hashlib.sha256(str(path.resolve()).encode("utf-8", "surrogateescape"))
    told.update(str(builder()).encode())
    for file in files:
        with contextlib.suppress(OSError):
            status = file.stat()
            told.update(f"{file}\0{status.st_size}\0{status.st_mtime_ns}\0".encode(
                "utf-8", "surrogateescape"))  # fmt: skip
    return told.hexdigest()[:24]


def _forget_old(cache: Path) -> None:
    import shutil

    for entry in cache.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            if clock.time() - entry.stat().st_mtime > _KEPT_S:
                shutil.rmtree(entry, ignore_errors=True)


def add_output_arguments(parser: argparse.ArgumentParser) -> None:
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help=localized("cli/parser.json-ns"))
    how.add_argument("--csv", action="store_true", help=localized("cli/parser.csv-ns"))
    add_width(parser)


def add_width(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--width", type=whole_number, metavar="N", help=localized("cli/parser.width")
    )


def paper(args: argparse.Namespace) -> "Paper":
    from strobe.show.text.paper import Paper

    return Paper(sys.stdout, args.width)


def whole_number(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(localized("cli/parser.not-a-number", text=repr(text)))
    return int(text)


def time(text: str) -> int:
    from strobe.units import parse_duration

    try:
        return parse_duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
