"""Open a run for questions: bring its tables up to date, then hand out everything by name."""

import os
from pathlib import Path

from strobe.analyse.opened import OpenedRun
from strobe.ingest.opening import open_run_dir


def open_run(path: str | os.PathLike[str], *, store_later: bool = False) -> OpenedRun:
    """With `store_later`, new tables may stay in memory until `opened.run.store()` is called."""
    return OpenedRun(open_run_dir(Path(path), store_later=store_later))
