"""What a reader makes of training metrics: the rows of each table, read without a run."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from strobe.ingest.formats.registry import READERS
from strobe.ingest.importing.sources import Found, Source, peek
from strobe.ingest.trace.spans import Vocabulary
from strobe.ingest.trace.trace import Trace
from strobe.store.blobs import blobs_in
from strobe.store.nullable import Nullable
from strobe.store.strings import Strings

SUMMARY = Path(__file__).parents[3] / "shared" / "data" / "summary"
SAMPLES = Path(__file__).parent / "formats" / "samples"

Row = dict[str, Any]


def shared(name: str) -> Path:
    path = SUMMARY / name
    if not path.exists():
        pytest.skip("shared data absent")
    return path


def truth(name: str) -> Any:
    return json.loads(shared(name).read_text(encoding="utf-8"))


class Read:
    """The rows of one trace, by table, and its problems."""

    def __init__(self, reader: str, found: Found, folder: Path | None = None) -> None:
        paths = [str(path) for path in found.paths]
        with blobs_in(folder / "tables") if folder else _nothing():
            source = Source(reader, paths, run=found.run)
            self.trace: Trace = READERS.named(reader).read(source, Vocabulary())  # type: ignore[union-attr]
        self.problems = [what for _, what in self.trace.said.counts]
        self.tables: dict[str, list[Row]] = {}
        for part in self.trace.metrics.parts(0):
            for name, columns in part.items():
                self.tables.setdefault(name, []).extend(as_rows(columns))

    def __getitem__(self, table: str) -> list[Row]:
        return self.tables.get(table, [])

    def tagged(self, table: str, tag: str) -> list[Row]:
        return [row for row in self[table] if row["tag"] == tag]

    def points(self, tag: str) -> list[list[Any]]:
        """Step and value, as the truth has them."""
        return [[row["step"], row["value"]] for row in self.tagged("scalars", tag)]

    @property
    def tags(self) -> set[str]:
        return {row["tag"] for row in self["scalars"]}

    def facts(self, table: str = "hyperparameters") -> dict[str, tuple[str, float | None]]:
        return {row["name"]: (row["value"], row["number"]) for row in self[table]}


def _nothing():
    import contextlib

    return contextlib.nullcontext()


def as_rows(columns: dict[str, Any]) -> list[Row]:
    lists = {name: _values(column) for name, column in columns.items()}
    return [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]


def _values(column: Any) -> list[Any]:
    if isinstance(column, Strings):
        return [None if code < 0 else column.values[code] for code in column.codes.tolist()]
    if isinstance(column, Nullable):
        return column.tolist()
    return np.asarray(column).tolist()


def read(path: Path, reader: str = "TensorBoard", folder: Path | None = None) -> Read:
    """The only trace of a folder or file."""
    module = READERS.named(reader)
    assert module is not None
    found = module.claim(path) if path.is_dir() else [module.recognise(peek(path))]
    assert len(found) == 1 and found[0] is not None, found
    return Read(reader, found[0], folder)


def same(found: list[list[Any]], expected: list[list[Any]]) -> bool:
    """Steps and values, bit by bit; the truth has NaN and infinity as words."""
    as_numbers = [[step, float(value)] for step, value in expected]
    return repr(found) == repr(as_numbers) and all(map(_is_exact, found, as_numbers))


def _is_exact(a: list[Any], b: list[Any]) -> bool:
    if math.isnan(b[1]):
        return math.isnan(a[1])
    return a == b and math.copysign(1, a[1]) == math.copysign(1, b[1])
