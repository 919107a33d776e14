"""The points of every scalar of a rank, and sums over blocks of them: a file beside its tables.

A chart is drawn from it in time that depends on its pixels alone. The file is made when a chart is
first asked for, and again when the tables have changed; the sums of a line that has only grown are
kept.
"""

import errno
import hashlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from strobe.analyse.metrics import levels
from strobe.analyse.metrics.levels import Sums
from strobe.analyse.metrics.lines import Logged, Points, of_attempt, over_attempts
from strobe.analyse.select import quoted
from strobe.store import array_file
from strobe.store.array_file import Array
from strobe.store.nullable import UNKNOWN
from strobe.store.run import TABLES_DIR, Run
from strobe.store.run_folder import refuse_removed

FILE = "scalars.pyramid"
# Raise it when what is stored, or how it is worked out, changes.
_VERSION = 2
# Tags are read together up to this many points, so that memory stays bounded.
_BATCH_POINTS = 4_000_000
# The file of a rank that still trains is written again when it has grown by this ratio.
_WORTH_WRITING = 1 / 8
_CANNOT_WRITE = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT}
# Of a line: batch, first point, points, first block, first value that is not finite, their number.
_LINE_COLUMNS = 6
_WHOLE = -1  # instead of the number of an attempt: all of them

Add = Callable[[str, Array], None]


class Line(NamedTuple):
    """Points in order of their steps or of their times, and the sums over them."""

    points: Points
    levels: list[Sums]
    nan_at: Array
    positive_infinity_at: Array
    negative_infinity_at: Array


class Pyramid:
    """The lines of a rank."""

    def __init__(self, about: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
        self.about, self._arrays = about, arrays
        self._series: dict[str, dict[str, dict[int, dict[str, Any]]]] = {}
        for one in about["series"]:
            by_source = self._series.setdefault(one["tag"], {})
            by_source.setdefault(one["source"], {})[one["attempt"]] = one
        self._lines: dict[int, Line] = {}

    @property
    def content(self) -> str:
        return str(self.about["content"])

    @property
    def tags(self) -> list[str]:
        return sorted(self._series)

    @property
    def points(self) -> int:
        return int(self.about["points"])

    def sources(self, tag: str) -> list[str]:
        """What logged a tag: a value that is automatic and one of the script are two lines."""
        return sorted(self._series.get(tag, ()))

    def attempts(self, tag: str, source: str | None = None) -> list[int]:
        """Numbers of the attempts that logged it. Without a source, the first one is meant."""
        return sorted(n for n in self._series[tag][source or self.sources(tag)[0]] if n != _WHOLE)

    def facts(
        self, tag: str, attempt: int | None = None, source: str | None = None
    ) -> dict[str, int]:
        """How many points were logged, and how many of them the lines leave out, and why."""
        return dict(self._found(tag, attempt, source)["facts"])

    def line(
        self, tag: str, axis: str, attempt: int | None = None, source: str | None = None
    ) -> Line:
        """`axis` is step or time; without an attempt, the line over all of them."""
        return self._line(int(self._found(tag, attempt, source)[axis]))

    def has(self, tag: str, source: str, attempt: int) -> bool:
        return attempt in self._series.get(tag, {}).get(source, {})

    def _found(self, tag: str, attempt: int | None, source: str | None) -> dict[str, Any]:
        attempts = self._series[tag][source or self.sources(tag)[0]]
        if attempt is None and _WHOLE not in attempts:
            (only,) = attempts.values()
            return only
        return attempts[_WHOLE if attempt is None else attempt]

    def _line(self, number: int) -> Line:
        if number not in self._lines:
            self._lines[number] = self._read_line(number)
        return self._lines[number]

    def _read_line(self, number: int) -> Line:
        row = self._arrays["lines"].reshape(-1, _LINE_COLUMNS)[number]
        batch, at, length, block, other, others = (int(n) for n in row)
        points = Points(*(self._arrays[f"{batch}/{c}"][at : at + length] for c in Points._fields))
        found = []
        for size in levels.level_sizes(length):
            rows = slice(block, block + size)
            found.append(Sums(*(self._arrays[f"{batch}/{name}"][rows] for name in Sums._fields)))
            block += size
        not_finite = self._arrays[f"{batch}/not_finite"][other : other + others]
        value = points.value[not_finite]
        kinds = (np.isnan(value), value == np.inf, value == -np.inf)
        return Line(points, found, *(not_finite[kind] for kind in kinds))


def pyramids(run: Run, known: Mapping[int, Pyramid] | None = None) -> dict[int, Pyramid]:
    """The pyramid of each rank that logged scalars, built where it is missing or old.

    `known` are those of an earlier state of the run. Raises NoSuchRun if it was removed meanwhile.
    """
    ranks = run.sql("SELECT DISTINCT rank FROM scalars ORDER BY rank").fetchall()
    folders = {folder.name: folder for folder in run.rank_dirs}
    known = known or {}
    return {
        rank: _current(run, rank, folders.get(f"rank_{rank}"), known.get(rank)) for (rank,) in ranks
    }


def _current(run: Run, rank: int, folder: Path | None, known: Pyramid | None) -> Pyramid:
    if folder is None:  # the tables are in memory
        return _in_memory(run, rank, "", known)
    content, path = _content(folder), folder / FILE
    stored = _opened(path)
    for one in (known, stored):
        if one is not None and one.content == content:
            return one
    old = known or stored
    if run.manifest.state == "recording" and stored is not None:
        ((points,),) = run.sql("SELECT count(*) FROM scalars WHERE rank = ?", [rank]).fetchall()
        if points - stored.points < stored.points * _WORTH_WRITING:
            return _in_memory(run, rank, content, old)
    about = _about(content)
    refuse_removed(folder / TABLES_DIR)
    try:
        with array_file.writing(path, about) as add:
            _build(run, rank, about, add, old)
    except OSError as error:
        if error.errno not in _CANNOT_WRITE:
            raise
        return _in_memory(run, rank, content, old)
    return Pyramid(*array_file.read(path))


def _opened(path: Path) -> Pyramid | None:
    about = array_file.read_about(path)
    if about is None or about.get("version") != _VERSION:
        return None
    return Pyramid(*array_file.read(path))


def _in_memory(run: Run, rank: int, content: str, old: Pyramid | None) -> Pyramid:
    about, arrays = _about(content), dict[str, Array]()
    _build(run, rank, about, arrays.__setitem__, old)
    return Pyramid(about, arrays)


def _content(folder: Path) -> str:
    """Changes when the rank's scalars do."""
    files = sorted((folder / TABLES_DIR).glob("scalars*.parquet"))
    states = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    return hashlib.sha256(repr(states).encode()).hexdigest()[:20]


def _about(content: str) -> dict[str, Any]:
    return {"version": _VERSION, "content": content, "points": 0, "series": []}


def _build(run: Run, rank: int, about: dict[str, Any], add: Add, old: Pyramid | None) -> None:
    lines: list[list[int]] = []
    for number, tags in enumerate(_batches(run, rank)):
        batch = _Batch(number)
        for tag, source, attempts in _read(run, rank, tags):
            logged = {attempt: of_attempt(points) for attempt, points in attempts.items()}
            if len(logged) > 1:
                logged[_WHOLE] = over_attempts(list(logged.values()))
            for attempt, one in logged.items():
                about["series"].append(
                    {"tag": tag, "source": source, "attempt": attempt, "facts": one.facts,
                     **batch.add(one, old, (tag, source, attempt), len(lines))}
                )  # fmt: skip
            about["points"] += sum(points.length for points in attempts.values())
        lines += batch.lines
        batch.write(add)
    add("lines", np.array(lines, dtype=np.int64).reshape(-1))


class _Batch:
    """The lines of some tags, one after the other in the same arrays."""

    def __init__(self, number: int) -> None:
        self._number = number
        self.lines: list[list[int]] = []
        self._points: list[Points] = []
        self._sums: list[Sums] = []
        self._not_finite: list[Array] = []
        self._at = self._block = self._other = 0

    def add(
        self, logged: Logged, old: Pyramid | None, series: tuple[str, str, int], before: int
    ) -> dict[str, int]:
        """The numbers of its line over steps and of its line over time, which may be the same."""
        axes = {"step": logged.by_step, "time": logged.by_time}
        if _are_equal(logged.by_step, logged.by_time):
            del axes["time"]
        numbers = {}
        for axis, points in axes.items():
            tag, source, attempt = series
            is_known = old is not None and old.has(*series)
            line = old.line(tag, axis, attempt, source) if old is not None and is_known else None
            numbers[axis] = before + self._add(points, line)
        return {"time": numbers["step"], **numbers}

    def _add(self, points: Points, old: Line | None) -> int:
        same = 0 if old is None else _same(points.value, old.points.value)
        found = levels.build(points.value, None if old is None else old.levels, same)
        not_finite = np.flatnonzero(~np.isfinite(points.value))
        self.lines.append(
            [self._number, self._at, points.length, self._block, self._other, len(not_finite)]
        )
        self._points.append(points)
        self._sums += found
        self._not_finite.append(not_finite)
        self._at += points.length
        self._block += sum(len(sums.low) for sums in found)
        self._other += len(not_finite)
        return len(self.lines) - 1

    def write(self, add: Add) -> None:
        for name in Points._fields:
            add(f"{self._number}/{name}", np.concatenate([getattr(p, name) for p in self._points]))
        for name in Sums._fields:
            parts = [getattr(sums, name) for sums in self._sums] or [np.zeros(0)]
            add(f"{self._number}/{name}", np.concatenate(parts))
        add(f"{self._number}/not_finite", np.concatenate(self._not_finite))


def _are_equal(a: Points, b: Points) -> bool:
    return np.array_equal(a.step, b.step) and np.array_equal(a.ts_ns, b.ts_ns)


def _same(new: Array, old: Array) -> int:
    """How many values from the first on have not changed."""
    count = min(len(new), len(old))
    is_other = new[:count].view(np.int64) != old[:count].view(np.int64)
    first = int(np.argmax(is_other)) if count else 0
    return first if count and is_other[first] else count


def _batches(run: Run, rank: int) -> Iterator[list[str]]:
    counts = run.sql(
        "SELECT tag, count(*) FROM scalars WHERE rank = ? GROUP BY tag ORDER BY tag", [rank]
    ).fetchall()
    batch: list[str] = []
    points = 0
    for tag, count in counts:
        if batch and points + count > _BATCH_POINTS:
            yield batch
            batch, points = [], 0
        batch.append(tag)
        points += count
    if batch:
        yield batch


def _read(run: Run, rank: int, tags: list[str]) -> Iterator[tuple[str, str, dict[int, Points]]]:
    """Tag, source, and the points of each attempt in the order in which they were logged."""
    sources = [source for (source,) in run.sql(
        "SELECT DISTINCT source FROM scalars WHERE rank = ? ORDER BY source", [rank]
    ).fetchall()]  # fmt: skip
    found = _fetched(run, rank, tags, sources)
    by_series = _order(found["code"], found["attempt"])
    code, attempt = found["code"][by_series], found["attempt"][by_series]
    is_first = (np.diff(code, prepend=-1) != 0) | (np.diff(attempt, prepend=-1) != 0)
    starts = np.flatnonzero(is_first)
    ends = np.append(starts[1:], len(code))
    points = Points(found["step"], found["ts_ns"], found["value"]).at(by_series)
    series: dict[int, dict[int, Points]] = {}
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        of_tag = series.setdefault(int(code[start]), {})
        of_tag[int(attempt[start])] = points.at(slice(start, end))
    for number, attempts in series.items():
        tag, source = divmod(number, len(sources))
        yield tags[tag], sources[source], attempts


def _order(code: Array, attempt: Array) -> Array:
    """By series, then as logged. numpy sorts numbers of 16 bits far faster than longer ones."""
    attempts, number = np.unique(attempt, return_inverse=True)
    series = code * len(attempts) + number
    is_narrow = int(series.max()) < 2**16
    order: Array = np.argsort(series.astype(np.uint16) if is_narrow else series, kind="stable")
    return order


def _fetched(run: Run, rank: int, tags: list[str], sources: list[str]) -> dict[str, Array]:
    """Columns in the order of the table; `code` numbers the pairs of a tag and a source."""
    listed = ", ".join(quoted(tag) for tag in tags)
    of_sources = ", ".join(quoted(source) for source in sources)
    run.connection.execute(f"CREATE OR REPLACE TEMP TYPE tag_of_batch AS ENUM ({listed})")
    run.connection.execute(f"CREATE OR REPLACE TEMP TYPE source_of_rank AS ENUM ({of_sources})")
    found = run.sql(
        f"""SELECT enum_code(tag::tag_of_batch)::BIGINT * {len(sources)}
                   + enum_code(source::source_of_rank)::BIGINT AS code, attempt,
                   coalesce(step, {UNKNOWN}) AS step, coalesce(ts_ns, {UNKNOWN}) AS ts_ns, value
            FROM scalars WHERE rank = ? AND tag IN ({listed})""",
        [rank],
    ).fetchnumpy()
    return {name: np.ma.getdata(column) for name, column in found.items()}
