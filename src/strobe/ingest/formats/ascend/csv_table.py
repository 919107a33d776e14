"""A table in a CSV file, some columns of it, a stretch of rows at a time.

Columns are known by their names without case, spaces and underscores (`Step Id`, `step_id`); each
may have several names, as versions differ. A file may end anywhere, a line lack its end.
"""

import codecs
import csv
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from strobe.errors import UnreadableTrace
from strobe.ingest.formats import compressed
from strobe.ingest.formats.ascend.numbers import unit_ns
from strobe.ingest.trace.codes import Array
from strobe.ingest.trace.problems import Problems

ROWS = 1 << 15
_LONGEST_LINE = 4 << 20
_PLAIN = re.compile(r"[\s_]+")

Names = dict[str, tuple[str, ...]]  # what a column is called here: what files call it, without unit


class Part:
    """Some rows of a table: columns of text, all of one length. A column may be absent."""

    def __init__(self, columns: dict[str, list[str]], units: dict[str, int]) -> None:
        self.columns, self.units = columns, units
        self.count = len(next(iter(columns.values()), []))

    def text(self, name: str) -> list[str]:
        found = self.columns.get(name)
        return [""] * self.count if found is None else found

    def unit(self, name: str) -> int:
        return self.units.get(name, 1000)


def parts(
    path: Path, names: Names, needed: tuple[str, ...], said: Problems, rows: int = ROWS
) -> Iterator[Part]:
    """Nothing where a needed column is absent, which is said."""
    try:
        yield from _parts(path, names, needed, said, rows)
    except UnreadableTrace as error:
        said.add(path.name, error.what)


def header(path: Path) -> list[str]:
    """The names of its columns as they stand there."""
    try:
        return [cell.strip() for cell in next(_Rows(path, Problems()), [])]
    except UnreadableTrace:
        return []


def joined(columns: list[dict[str, Array]], names: Iterable[str]) -> dict[str, Array]:
    """Stretches of columns as whole columns."""
    empty = np.zeros(0, dtype=np.int64)
    return {name: np.concatenate([empty, *(part[name] for part in columns)]) for name in names}


def _parts(
    path: Path, names: Names, needed: tuple[str, ...], said: Problems, rows: int
) -> Iterator[Part]:
    reader = _Rows(path, said)
    header = next(reader, [])
    places = _places(header, names)
    missing = [name for name in needed if name not in places]
    if missing:
        what = "it is empty" if not header else f"it has no column {names[missing[0]][0]}"
        said.add(path.name, f"{what}, and was left out")
        return
    units = {name: unit_ns(header[place]) for name, place in places.items()}
    width = max(places.values()) + 1
    while True:
        taken = [row for _, row in zip(range(rows), reader, strict=False)]
        whole = [row for row in taken if len(row) >= width]
        blank = sum(not any(row) for row in taken)
        said.add(path.name, "a line is not whole and was left out", len(taken) - len(whole) - blank)
        if whole:
            columns = list(zip(*(row[:width] for row in whole), strict=True))
            yield Part({name: list(columns[place]) for name, place in places.items()}, units)
        if len(taken) < rows:
            return


def _places(header: list[str], names: Names) -> dict[str, int]:
    plain = [_PLAIN.sub("", cell.split("(")[0]).lower() for cell in header]
    places = {}
    for name, spellings in names.items():
        for spelling in spellings:
            wanted = _PLAIN.sub("", spelling).lower()
            if wanted in plain:
                places[name] = plain.index(wanted)
                break
    return places


class _Rows:
    """The rows of a file; lines that are none are counted and left out."""

    def __init__(self, path: Path, said: Problems) -> None:
        self._path, self._said = path, said
        self._reader: Any = csv.reader(_lines(path, said), skipinitialspace=True)

    def __iter__(self) -> "_Rows":
        return self

    def __next__(self) -> list[str]:
        while True:
            try:
                row: list[str] = next(self._reader)
                return row
            except csv.Error as error:
                self._said.add(self._path.name, f"a line is no CSV ({error}) and was left out")


def _lines(path: Path, said: Problems) -> Iterator[str]:
    """Lines with their ends. One without end in sight is left out, however long it goes on."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
    rest, is_lost = "", False
    for block in compressed.blocks(path, lambda what: said.add(path.name, what)):
        *whole, rest = (rest + decoder.decode(block)).split("\n")
        for line in whole[is_lost:]:
            yield line + "\n"
        is_lost = is_lost and not whole
        if len(rest) > _LONGEST_LINE:
            said.add(path.name, "a line is longer than 4 MiB and was left out", int(not is_lost))
            rest, is_lost = "", True
    if rest and not is_lost:
        yield rest
