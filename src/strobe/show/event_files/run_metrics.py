"""The metrics of a run, a rank at a time, in the order in which they were logged."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from strobe.errors import MissingData
from strobe.model.schema import METRIC_TABLES
from strobe.show.event_files.omissions import Omissions
from strobe.store.blobs import find_blob
from strobe.store.run import Run

Array = np.ndarray[Any, np.dtype[Any]]
Row = dict[str, Any]

OF_TAGS = ("scalars", "histograms", "images", "tensors", "texts")
_SCALARS_PER_PAGE, _SCALARS_PER_CHUNK = 1_000_000, 100_000  # read, and encoded, at a time
_ROWS_PER_BATCH = 500
_NS_PER_S = 10**9


class Scalars(NamedTuple):
    tag: Array  # numbers of `RankMetrics.scalar_tags`
    step: Array
    wall_time: Array  # seconds since 1970
    value: Array


class RankMetrics:
    def __init__(self, run: Run, rank: int, omissions: Omissions) -> None:
        self._run, self.rank, self.omissions = run, rank, omissions
        self.started_s = run.manifest.started_unix_ns / _NS_PER_S
        self.scalar_tags: list[str] = [
            tag for (tag,) in self._fetch("SELECT DISTINCT tag FROM scalars", "ORDER BY tag")
        ]
        self._undated: dict[tuple[str, str], int] = {}

    def attempts(self) -> list[int]:
        """At least one, though nothing may have a tag."""
        tables = " UNION ".join(f"SELECT rank, attempt FROM {name}" for name in OF_TAGS)
        found = self._fetch(f"SELECT DISTINCT attempt FROM ({tables})", "ORDER BY attempt")
        return [attempt for (attempt,) in found] or [1]

    def first_step(self, attempt: int) -> int | None:
        tables = " UNION ALL ".join(f"SELECT rank, attempt, step FROM {name}" for name in OF_TAGS)
        ((step,),) = self._fetch(f"SELECT min(step) FROM ({tables})", f"AND attempt = {attempt}")
        return None if step is None else int(step)

    def kinds_of_tags(self) -> dict[str, list[str]]:
        """The tables that each tag is in."""
        tables = " UNION ".join(f"SELECT rank, tag, '{name}' AS kind FROM {name}"
                                for name in OF_TAGS)  # fmt: skip
        found: dict[str, list[str]] = {}
        for tag, kind in self._fetch(f"SELECT DISTINCT tag, kind FROM ({tables})", ""):
            found.setdefault(tag, []).append(kind)
        return found

    def scalars(self, attempt: int) -> Iterator[Scalars]:
        """In chunks."""
        if not self.scalar_tags:
            return
        names = ", ".join("'" + tag.replace("'", "''") + "'" for tag in self.scalar_tags)
        query = f"""
            SELECT enum_code(tag::ENUM({names})) AS tag, step, ts_ns, value,
                   epoch IS NOT NULL AS has_epoch
            FROM scalars WHERE rank = {self.rank} AND attempt = {attempt}
        """
        for page in self._pages(query):
            self.omissions.add("epochs", int(np.count_nonzero(page["has_epoch"])))
            for first in range(0, len(page["tag"]), _SCALARS_PER_CHUNK):
                part = {name: column[first : first + _SCALARS_PER_CHUNK]
                        for name, column in page.items()}  # fmt: skip
                tag = np.asarray(part["tag"]).astype(np.int64)
                yield Scalars(
                    tag, self._steps(tag, part["step"]), self._wall_times(part["ts_ns"]),
                    np.asarray(part["value"], dtype=np.float64),
                )  # fmt: skip

    def _pages(self, query: str) -> Iterator[dict[str, Array]]:
        """The rows of a query, as many at a time as memory should have."""
        done = 0
        while True:
            page = self._run.sql(f"{query} LIMIT {_SCALARS_PER_PAGE} OFFSET {done}").fetchnumpy()
            count = len(page["tag"])
            if count:
                yield page
            if count < _SCALARS_PER_PAGE:
                return
            done += count

    def rows(self, table: str, attempt: int) -> Iterator[Row]:
        """Of the other tables with tags; `wall_time` is in seconds since 1970."""
        for row in self._rows(table, f"AND attempt = {attempt}"):
            if row["step"] is None:
                row["step"] = self._next_position(table, row["tag"])
                self.omissions.add("steps")
            row["wall_time"] = self._wall_time(row["ts_ns"])
            yield row

    def facts(self, table: str) -> list[Row]:
        """Hyperparameters or lineage: those of this rank, and with the first also the run's."""
        first = rank_numbers(self._run)[0]
        condition = f"rank = {self.rank}" + (" OR rank IS NULL" if self.rank == first else "")
        relation = self._run.sql(f"SELECT * FROM {table} WHERE {condition}")
        return [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]

    def file(self, row: Row) -> bytes | None:
        """What the row's file contains; None if it is missing."""
        path = find_blob(self._run, self.rank, row["file"])
        try:
            if path is not None:
                return path.read_bytes()
        except OSError:
            pass  # counted below, as a file that is gone
        self.omissions.add("files")
        return None

    def _fetch(self, select: str, end: str) -> list[Any]:
        where = f"WHERE rank = {self.rank}"
        return self._run.sql(f"{select} {where} {end}").fetchall()

    def _rows(self, table: str, condition: str) -> Iterator[Row]:
        cursor = self._run.connection.cursor()
        try:
            cursor.execute(f"SELECT * FROM {table} WHERE rank = {self.rank} {condition}")
            names = [column[0] for column in cursor.description or ()]
            while batch := cursor.fetchmany(_ROWS_PER_BATCH):
                for row in batch:
                    yield dict(zip(names, row, strict=True))
        finally:
            cursor.close()

    def _steps(self, tag: Array, step: Array) -> Array:
        unknown = np.flatnonzero(np.ma.getmaskarray(step))
        steps = np.ma.getdata(step).astype(np.int64)
        for place in unknown.tolist():
            steps[place] = self._next_position("scalars", self.scalar_tags[tag[place]])
        self.omissions.add("steps", len(unknown))
        return steps

    def _next_position(self, table: str, tag: str) -> int:
        position = self._undated.get((table, tag), 0)
        self._undated[(table, tag)] = position + 1
        return position

    def _wall_times(self, ts_ns: Array) -> Array:
        self.omissions.add("times", int(np.ma.getmaskarray(ts_ns).sum()))
        since_1970 = np.ma.filled(ts_ns, 0).astype(np.int64) + self._run.manifest.started_unix_ns
        seconds: Array = since_1970 // _NS_PER_S + since_1970 % _NS_PER_S / _NS_PER_S
        return seconds

    def _wall_time(self, ts_ns: int | None) -> float:
        self.omissions.add("times", ts_ns is None)
        seconds, rest = divmod(self._run.manifest.started_unix_ns + (ts_ns or 0), _NS_PER_S)
        return seconds + rest / _NS_PER_S


def rank_numbers(run: Run) -> list[int]:
    """The ranks that have metrics. Raises MissingData if none has."""
    tables = " UNION ".join(f"SELECT rank FROM {table.name}" for table in METRIC_TABLES)
    found = [rank for (rank,) in run.sql(f"{tables} ORDER BY rank").fetchall()]
    ranks = [rank for rank in found if rank is not None]
    if not found:
        raise MissingData(
            "this run has no training metrics, so there is nothing to export",
            where=str(run.path),
            hint="log some with strobe.log({...}), or choose another format: strobe export RUN "
            "--format list",
        )
    return ranks or [0]
