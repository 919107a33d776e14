"""Every table as a CSV file, in one folder."""

import os
import shutil
import tempfile
from pathlib import Path

from strobe.analyse.lookup import declaration, table_names, table_of
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
        raise UsageError(
            f"cannot write here: {error.strerror}",
            where=str(path),
            hint="choose an existing, writable folder with -o FOLDER",
        ) from error
    try:
        for name in table_names():
            table = declaration(name)
            with (temporary / f"{name}.csv").open("w", encoding="utf-8", newline="") as out:
                write_csv(table, rows(run.connection, table_of(run, name), table), out)
        os.chmod(temporary, 0o755)
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.exists():
            path.unlink()
        os.replace(temporary, path)
    except OSError as error:
        raise UsageError(
            f"cannot finish writing: {error.strerror}",
            where=str(path),
            hint="make room, or choose another place with -o",
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
