"""Where a new run goes, for everything that makes one."""

import os
import re
import time
from pathlib import Path

from strobe.errors import UsageError
from strobe.model.manifest import MANIFEST_FILE

BASE_DIR = "strobe-runs"  # in the current folder


def imported_name(path: Path) -> str:
    """What to call a run of this trace."""
    return path.resolve().name.split(".")[0] or "import"


def new_run_folder(
    output: str | os.PathLike[str] | None, name: str, *, overwrite: bool = False
) -> Path:
    """The requested folder, or a new one in `BASE_DIR`, named after what is recorded."""
    if output is None:
        name = re.sub(r"[^\w.-]+", "-", name)[:40]
        base = Path(BASE_DIR) / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"
        folder, number = base, 1
        while folder.exists():
            number += 1
            folder = base.with_name(f"{base.name}-{number}")
        return folder
    folder = Path(output)
    if folder.is_dir() and any(folder.iterdir()):
        is_run = (folder / MANIFEST_FILE).exists()
        if not (overwrite and is_run):
            id = "cli/run.folder-has-run" if is_run else "cli/run.folder-not-empty"
            raise UsageError.of(id, where=str(folder))
    elif folder.exists() and not folder.is_dir():
        raise UsageError.of("cli/run.folder-is-file", where=str(folder))
    return folder
