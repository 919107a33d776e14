"""Every table as a CSV file, in one folder."""

import os
import shutil
import tempfile
from pathlib import Path

from strobe.analyse.opened import OpenedRun, declaration, table_names
from strobe.errors import UsageError
from strobe.show.text.table import rows, write_csv
from strobe.store.run import Run

NAME = "csv"
DOC = "a folder with every table as a CSV file"


def write(run: Run, path: Path) -> None:
    """Written beside, then renamed: a folder that is there is whole."""
    try:
        temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
    except OSError as error:
        raise UsageError.of(
            "errors/files.cannot-write", where=str(path), reason=error.strerror
        ) from error
    opened = OpenedRun(run)
    try:
        for name in table_names():
            table = declaration(name)
            with (temporary / f"{name}.csv").open("w", encoding="utf-8", newline="") as out:
                write_csv(table, rows(run.connection, opened.table(name), table), out)
        os.chmod(temporary, 0o755)
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.exists():
            path.unlink()
        os.replace(temporary, path)
    except OSError as error:
        raise UsageError.of(
            "errors/files.cannot-finish-folder", where=str(path), reason=error.strerror
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
