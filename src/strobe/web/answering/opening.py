"""Open a run for the pages, and report how much of it has been read while its tables are built."""

import contextlib
import threading
from collections.abc import Callable
from pathlib import Path

from strobe.errors import StrobeError
from strobe.ingest.building.opening import open_run_dir
from strobe.ingest.importing import sources
from strobe.ingest.trace import progress
from strobe.store.run_folder import rank_dirs
from strobe.web.served_run import ServedRun

_REPORT_EVERY_S = 0.25

Report = Callable[[str, int, int], None]


def open_with_progress(path: Path, report: Report) -> ServedRun:
    is_over = threading.Event()
    with progress.metered() as meter:
        thread = threading.Thread(target=_report, args=(path, meter, report, is_over), daemon=True)
        thread.start()
        try:
            return ServedRun(open_run_dir(path))
        finally:
            is_over.set()
            thread.join()


def _report(path: Path, meter: progress.Meter, report: Report, is_over: threading.Event) -> None:
    size = None
    # A run that is removed meanwhile is reported by the thread that reads it.
    with contextlib.suppress(OSError, StrobeError):
        while not is_over.wait(_REPORT_EVERY_S):
            size = _bytes_to_read(path) if size is None else size
            report("reading the run", min(meter.done().bytes, size), size)


def _bytes_to_read(run: Path) -> int:
    total = 0
    for raw in rank_dirs(run).values():
        is_imported = sources.is_imported(raw)
        files = [s.path for s in sources.listed(raw)] if is_imported else list(raw.iterdir())
        for file in files:
            with contextlib.suppress(OSError):
                total += file.stat().st_size
    return total
