"""Columns of any kind that may be more than memory holds: kept as they come, given back so."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from strobe.ingest import spool
from strobe.ingest.codes import Array

Columns = dict[str, Array]


class Pile:
    """Beyond so many rows they go to a file of the scratch folder, if there is one."""

    def __init__(self, held_rows: int) -> None:
        self._scratch, self._held_rows = spool.scratch(), held_rows
        self._held: list[Columns] = []
        self._file: Path | None = None
        self.rows = self._rows_held = 0

    def append(self, part: Columns) -> None:
        rows = len(next(iter(part.values())))
        if not rows:
            return
        self._held.append(part)
        self.rows, self._rows_held = self.rows + rows, self._rows_held + rows
        if self._scratch is not None and self._rows_held > self._held_rows:
            self._to_disk(self._scratch)

    def __iter__(self) -> Iterator[Columns]:
        if self._file is not None:
            yield from spool.load(self._file)
        yield from self._held

    def joined(self) -> Columns:
        """All of it at once, and no part of it twice; {} if there is nothing."""
        whole: Columns = {}
        done = 0
        for part in self:
            for name, column in part.items():
                if name not in whole:
                    whole[name] = np.empty(self.rows, dtype=column.dtype)
                whole[name][done : done + len(column)] = column
            done += len(column)
        return whole

    def clear(self) -> None:
        if self._file is not None:
            shutil.rmtree(self._file.parent, ignore_errors=True)
        self._file, self._held, self.rows, self._rows_held = None, [], 0, 0

    def _to_disk(self, scratch: Path) -> None:
        if self._file is None:
            self._file = Path(tempfile.mkdtemp(prefix=".pile-", dir=scratch)) / "columns"
        with self._file.open("ab") as file:
            for part in self._held:
                spool.dump(file, part)
        self._held, self._rows_held = [], 0
