"""Columns of any kind that may exceed memory: stored and returned in the order they arrive."""

import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from strobe.ingest.trace import span_spool
from strobe.ingest.trace.codes import Array

Columns = dict[str, Array]

SHARE_ROWS = 400_000
HELD_ROWS = 400_000  # in all shares together


class Pile:
    """Rows beyond this limit go to a file in the scratch folder, if there is one."""

    def __init__(self, held_rows: int) -> None:
        self._scratch, self._held_rows = span_spool.scratch(), held_rows
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
            yield from span_spool.load(self._file)
        yield from self._held

    def joined(self) -> Columns:
        """All rows at once, without a second copy; {} if there are none."""
        whole: Columns = {}
        done = 0
        for part in self:
            for name, column in part.items():
                if name not in whole:
                    whole[name] = np.empty(self.rows, dtype=column.dtype)
                elif not np.can_cast(column.dtype, whole[name].dtype):
                    wider = np.promote_types(column.dtype, whole[name].dtype)
                    whole[name] = whole[name].astype(wider)
                whole[name][done : done + len(column)] = column
            done += len(column)
        return whole

    def emptied(self, names: Iterable[str]) -> Columns:
        """The same, also if there are none; the spool is empty afterwards."""
        whole = self.joined() or {name: np.zeros(0, dtype=np.int64) for name in names}
        self.clear()
        return whole

    def bunches(self, rows: int) -> Iterator[Columns]:
        """All rows, in parts of about this many."""
        bunch = Pile(self.rows)
        for part in self:
            bunch.append(part)
            if bunch.rows >= rows:
                yield bunch.joined()
                bunch.clear()
        if bunch.rows:
            yield bunch.joined()

    def clear(self) -> None:
        if self._file is not None:
            shutil.rmtree(self._file.parent, ignore_errors=True)
        self._file, self._held, self.rows, self._rows_held = None, [], 0, 0

    def _to_disk(self, scratch: Path) -> None:
        if self._file is None:
            self._file = Path(tempfile.mkdtemp(prefix=".pile-", dir=scratch)) / "columns"
        with self._file.open("ab") as file:
            for part in self._held:
                span_spool.dump(file, part)
        self._held, self._rows_held = [], 0


def shares(rows: int) -> list[Pile]:
    """Spools for this many rows, to distribute them to; while they are filled, little is
    in memory.
    """
    count = -(-rows // SHARE_ROWS)
    return [Pile(HELD_ROWS // count) for _ in range(count)]


def deal(columns: Columns, key: Array, piles: list[Pile]) -> None:
    """All rows of a key go to the same spool, in their order."""
    share = key.view(np.uint64) % np.uint64(max(1, len(piles)))
    order = np.argsort(share, kind="stable")
    borders = np.searchsorted(share[order], np.arange(1, len(piles), dtype=np.uint64))
    for pile, rows in zip(piles, np.split(order, borders), strict=False):
        pile.append({name: column[rows] for name, column in columns.items()})
