"""Every table as a CSV file, in one folder."""

from pathlib import Path

from strobe.analyse.lookup import declaration, table_names, table_of
from strobe.show.atomic import whole_folder
from strobe.show.text.table import rows, write_csv
from strobe.store.run import Run

NAME = "csv"
DOC = "a folder with every table as a CSV file"


def is_part(path: Path) -> bool:
    return path.suffix == ".csv"


def write(run: Run, path: Path) -> None:
    """Written beside, then renamed: a folder that is there is whole."""
    with whole_folder(path) as folder:
        for name in table_names():
            table = declaration(name)
            with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as out:
                write_csv(table, rows(run.connection, table_of(run, name), table), out)
