"""Import traces that other tools recorded; the format is recognised by content."""

import argparse
import contextlib
import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from strobe.cli.output_folder import add_output_folder, output_folder
from strobe.messages import localized, message
from strobe.model.new_run import imported_name

if TYPE_CHECKING:
    from strobe.ingest.importing.importer import Imported
    from strobe.ingest.trace.progress import Meter

_WORTH_SHOWING_S = 1.0
_POLL_S = 0.1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", metavar="PATH", nargs="+", help=localized("cli/import.paths"))
    add_output_folder(parser)
    parser.add_argument("-q", "--quiet", action="store_true", help=localized("cli/run.quiet"))
    parser.add_argument(
        "--no-limit", dest="is_limited", action="store_false",
        help=localized("cli/import.no-limit"),
    )  # fmt: skip


def run(args: argparse.Namespace) -> int:
    # Nothing here multiplies matrices. Without BLAS threads numpy loads faster, and readers may be
    # forked. The variable only works before numpy is loaded.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with _without_collecting():
        from strobe.ingest.importing.importer import import_traces
        from strobe.processes.ordered_pool import keep_memory

    paths = [Path(path) for path in args.paths]
    folder = output_folder(args, imported_name(paths[0]))
    began = time.monotonic()
    keep_memory()
    with _ended_by_sigterm(), Bar(with_page=not args.quiet) as bar:
        done = import_traces(paths, folder, bar, is_limited=args.is_limited)
    if not args.quiet:
        print(_outcome(done, folder, time.monotonic() - began), file=sys.stderr)
        _print_page(folder)
    return 0


@contextlib.contextmanager
def _without_collecting() -> Iterator[None]:
    """Loaded modules stay, so the garbage collector need not scan them, now or later."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()


def _print_page(folder: Path) -> None:
    from strobe.cli.opening import open_run
    from strobe.cli.report import print_page

    with open_run(str(folder)) as opened:
        print_page(opened, sys.stdout, str(folder))


def _outcome(done: "Imported", folder: Path, seconds: float) -> str:
    megabytes = done.bytes / 1e6
    files = message("cli/import.one-file") if done.files == 1 else message(
        "cli/import.files", count=f"{done.files:,}")  # fmt: skip
    has_speed = megabytes >= 1 and seconds > 0
    return localized(
        "cli/import.done-with-speed" if has_speed else "cli/import.done",
        events=f"{done.events:,}", files=files, size=f"{megabytes:,.1f} MB",
        duration=f"{seconds:.1f} s", folder=folder,
        speed=f"{megabytes / seconds:,.0f} MB/s" if has_speed else "",
    )  # fmt: skip


class _Terminated(BaseException):
    """SIGTERM, as an exception: temporary files are removed before the process ends."""


@contextlib.contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: Any) -> NoReturn:
        raise _Terminated

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    except _Terminated:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)


class Bar:
    """Shows the progress of reading, on a terminal, once it has taken a second.

    Meanwhile it loads what the page at the end will need.
    """

    def __init__(self, *, with_page: bool = False, place: str = "") -> None:
        """With a place, it prints what was found there."""
        self._place = place
        self._began, self._shown = time.monotonic(), 0.0
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._with_page = with_page

    def __enter__(self) -> "Bar":
        return self

    def __exit__(self, *exception: object) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def searches(self, files: int) -> None:
        now = time.monotonic()
        is_due = now - self._began > _WORTH_SHOWING_S and now - self._shown > _POLL_S
        if is_due and sys.stderr.isatty():
            self._shown = now
            sys.stderr.write("\r" + localized("cli/import.searching", count=f"{files:,}"))
            sys.stderr.flush()

    def begins(self, what: str, size: int, meter: "Meter") -> None:
        if self._shown:
            sys.stderr.write("\r\033[K")
        if self._place:
            text = localized("cli/import.importing", what=what, place=self._place)
            print(f"strobe: {text}", file=sys.stderr)
        if self._with_page:
            from strobe.store.columns import warm_up

            threading.Thread(target=warm_up).start()
        if sys.stderr.isatty():
            self._thread = threading.Thread(target=self._show, args=(size, meter), daemon=True)
            self._thread.start()

    def _show(self, size: int, meter: "Meter") -> None:
        if self._over.wait(_WORTH_SHOWING_S):
            return
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

        columns = (
            TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn(),
            TextColumn("{task.fields[events]}"), TimeRemainingColumn(),
        )  # fmt: skip
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            reading, writing = localized("cli/import.reading"), localized("cli/import.writing")
            task = bar.add_task(reading, total=size, events="")
            while not self._over.wait(_POLL_S):
                done = meter.done()
                is_read = done.bytes >= size
                bar.update(
                    task, completed=min(done.bytes, size),
                    description=writing if is_read else reading,
                    events=_events(done.events),
                )  # fmt: skip


def _events(count: int) -> str:
    return localized("cli/import.events", count=f"{count:,}") if count else ""
