"""The runs of a directory side by side: how each ended, its hyperparameters and what it reached.

It reads `run.json` and the small summary that each rank's tables have (`store/metric_summary.py`),
and no tables. Reading it again costs only what has changed since. Nothing is written.
"""

import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np

from strobe.errors import StrobeError
from strobe.model.manifest import MANIFEST_FILE, Manifest
from strobe.model.table import Column, Table
from strobe.store import metric_summary
from strobe.store.array_file import Array
from strobe.store.columns import Columns, relation_sql
from strobe.store.metric_summary import Summary
from strobe.store.nullable import UNKNOWN, Nullable
from strobe.store.rows import as_columns
from strobe.store.run import TABLES_DIR
from strobe.store.strings import Strings

_RUN = Column("run", "str", "Path of the run below the directory.")

RUNS = Table(
    "runs",
    "One row for each run.",
    (
        _RUN,
        Column(
            "state", "str", "live, imported, finished, failed, killed, ...; broken if unreadable."
        ),
        Column("started_unix_ns", "i64", "When it started, in nanoseconds since 1970.", True),
        Column("dur_ns", "i64", "Until it ended, or logged its last value; null while live.", True),
        Column("ranks", "i64", "Number of processes that trained."),
        Column("frameworks", "str", "Frameworks and their versions."),
        Column("scalars", "i64", "Number of tags; null if its tables have not been built.", True),
        Column("verdict", "str", "The first sentence of the advice; null if not known.", True),
        Column("problem", "str", "Why it cannot be read; null if it can.", True),
    ),
)

RUN_SCALARS = Table(
    "run_scalars",
    "One row for each run, rank, scalar and source.",
    (
        _RUN,
        Column("rank", "i64", "Rank of the process that logged it."),
        Column("tag", "str", "Name of the scalar."),
        Column("source", "str", "What logged it: automatic, strobe.log, tensorboard."),
        Column("count", "i64", "Number of values, including NaN and infinite ones."),
        Column("nan_count", "i64", "Number of values that are NaN."),
        Column("infinite_count", "i64", "Number of values that are infinite."),
        Column(
            "last",
            "f64",
            "The value logged last, in the last attempt; null in JSON if it is not finite.",
        ),
        Column("last_step", "i64", "Step of the last value.", nullable=True),
        Column("last_ts_ns", "i64", "When it was logged, since the run began.", nullable=True),
        Column("min", "f64", "Smallest finite value.", nullable=True),
        Column("min_step", "i64", "Step at which it occurs first.", nullable=True),
        Column("max", "f64", "Largest finite value.", nullable=True),
        Column("max_step", "i64", "Step at which it occurs first.", nullable=True),
        Column("lowest_step", "i64", "Smallest step with a value.", nullable=True),
        Column("highest_step", "i64", "Largest step with a value.", nullable=True),
    ),
)

RUN_HYPERPARAMETERS = Table(
    "run_hyperparameters",
    "One row for each run and hyperparameter.",
    (
        _RUN,
        Column("name", "str", "Name of the hyperparameter."),
        Column("value", "str", "Its value as text; lists and objects as JSON."),
    ),
)

TABLES = (RUNS, RUN_HYPERPARAMETERS, RUN_SCALARS)

_RANK = re.compile(r"rank_(\d+)\Z")
_FIGURES = tuple(column.name for column in RUN_SCALARS.columns[4:])

# The manifest of a run, and one word for its state. Raises StrobeError or OSError.
Describe = Callable[[Path], tuple[Manifest, str]]


class _File(NamedTuple):
    """The summary of a rank, as it was when it was read; 0 and 0 where its tables have none."""

    rank: int
    tables: str
    inode: int
    changed_ns: int


class _Entry(NamedTuple):
    files: list[_File]
    ranks: list[tuple[int, Summary]]
    tags: int | None  # None: there are no tables
    problem: str | None


class Catalogue:
    """Runs by name, as they were when `refresh` was last called."""

    def __init__(self, describe: Describe, home: Callable[[Path], Path] = lambda run: run) -> None:
        """`home` gives the directory that has the tables of a run: usually the run itself."""
        self._describe = describe
        self._home = home
        self._entries: dict[str, _Entry] = {}
        self._runs: list[dict[str, Any]] = []

    def refresh(self, runs: Mapping[str, Path]) -> None:
        """Take these runs, by name; only those that have changed are read."""
        entries, rows = dict[str, _Entry](), []
        for name, folder in runs.items():
            try:
                entry = self._entry(name, folder)
                rows.append(self._row(name, folder, entry))
                entries[name] = entry
            except FileNotFoundError:  # removed in the meantime, or its tables are being replaced
                if name in self._entries and (folder / MANIFEST_FILE).exists():
                    entry = entries[name] = self._entries[name]
                    rows.append(self._row(name, folder, entry))
        self._entries, self._runs = entries, rows

    def _entry(self, name: str, folder: Path) -> _Entry:
        files = list(_summary_files(self._home(folder)))
        known = self._entries.get(name)
        if known is not None and known.files == files:
            return known
        ranks, problem = [], None
        for file in files:
            try:
                found = metric_summary.read(Path(file.tables)) if file.inode else None
            except StrobeError as error:
                problem = error.what
                continue
            if found is not None:
                ranks.append((file.rank, found))
        tags = len({tag for _, found in ranks for tag in found.tags}) if files else None
        return _Entry(files, ranks, tags, problem)

    def _row(self, name: str, folder: Path, entry: _Entry) -> dict[str, Any]:
        row: dict[str, Any] = {
            "run": name, "state": "broken", "ranks": 0, "frameworks": "", "problem": entry.problem,
        }  # fmt: skip
        try:
            manifest, state = self._describe(folder)
        except (StrobeError, OSError) as error:
            return {**row, "problem": getattr(error, "what", str(error))}
        frameworks = {n: v for rank in manifest.ranks for n, v in rank.frameworks.items()}
        return {
            **row,
            "state": state,
            "started_unix_ns": manifest.started_unix_ns or None,
            "dur_ns": _length_ns(manifest, state, entry),
            "ranks": len(manifest.ranks),
            "frameworks": ", ".join(f"{n} {v}" for n, v in sorted(frameworks.items())),
            "scalars": entry.tags,
        }  # fmt: skip

    def runs(self, verdicts: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
        """Rows of `runs`, the latest first; verdicts of those that were given advice."""
        rows = [{**row, "verdict": (verdicts or {}).get(row["run"])} for row in self._runs]
        return sorted(rows, key=lambda row: row.get("started_unix_ns") or 0, reverse=True)

    def tags(self) -> dict[str, int]:
        """The number of runs that have each tag, the most common first."""
        counts = Counter[str]()
        for entry in self._entries.values():
            counts.update({tag for _, found in entry.ranks for tag in found.tags})
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    def hyperparameters(self) -> list[dict[str, str]]:
        """Rows of `run_hyperparameters`."""
        return [
            {"run": run, "name": name, "value": value}
            for run, entry in self._entries.items()
            for name, value in _hyperparameters(entry).items()
        ]

    def scalars(self, tags: Iterable[str] | None = None) -> Columns:
        """Columns of `run_scalars`: of these tags, or of all."""
        wanted = None if tags is None else set(tags)
        numbers: dict[tuple[str, str], int] = {}
        known: dict[tuple[str, ...], tuple[Array, Array]] = {}
        parts: list[tuple[int, int, Array, Array, Summary]] = []
        for run, entry in enumerate(self._entries.values()):
            for rank, found in entry.ranks:
                key = (*found.tags, *found.sources)
                if key not in known:  # most runs of a directory log the same tags
                    known[key] = _numbered(found, wanted, numbers)
                rows, codes = known[key]
                if len(rows):
                    parts.append((run, rank, rows, codes, found))
        if not parts:
            return {}
        lengths = [len(rows) for _, _, rows, _, _ in parts]
        codes = np.concatenate([codes for _, _, _, codes, _ in parts])
        runs = np.repeat([run for run, *_ in parts], lengths)
        return {
            "run": Strings(runs.astype(np.int32), list(self._entries)),
            "rank": np.repeat([rank for _, rank, *_ in parts], lengths),
            "tag": Strings(codes.astype(np.int32), [tag for tag, _ in numbers]),
            "source": Strings(codes.astype(np.int32), [source for _, source in numbers]),
            **{name: _figures(name, [(rows, found) for _, _, rows, _, found in parts])
               for name in _FIGURES},
        }  # fmt: skip

    def connection(
        self, tags: Iterable[str] | None = None, verdicts: Mapping[str, str] | None = None
    ) -> duckdb.DuckDBPyConnection:
        """The tables `runs`, `run_hyperparameters` and `run_scalars`, for SQL."""
        connection = duckdb.connect()
        given: dict[str, Columns] = {
            RUNS.name: as_columns(RUNS, self.runs(verdicts)),
            RUN_HYPERPARAMETERS.name: as_columns(RUN_HYPERPARAMETERS, self.hyperparameters()),
            RUN_SCALARS.name: self.scalars(tags),
        }
        for table in TABLES:
            query = relation_sql(connection, table, given[table.name])
            connection.execute(f"CREATE TABLE {table.name} AS {query}")
        return connection


def _length_ns(manifest: Manifest, state: str, entry: _Entry) -> int | None:
    """Until its end; if that is not known, until the last value that it logged."""
    if state == "live":
        return None
    ends = [manifest.ended_unix_ns, *(rank.ended_unix_ns for rank in manifest.ranks)]
    known = [end for end in ends if end]
    if known:
        return max(known) - manifest.started_unix_ns
    times = [found.columns["last_ts_ns"] for _, found in entry.ranks]
    last_ns = max((int(column.max()) for column in times if len(column)), default=UNKNOWN)
    return None if last_ns == UNKNOWN else last_ns


def _summary_files(home: Path) -> Iterator[_File]:
    """One of each rank that has tables, in order. Links are not followed."""
    with os.scandir(home) as entries:
        ranks = [
            (int(match[1]), entry.path)
            for entry in entries
            if (match := _RANK.match(entry.name)) and entry.is_dir(follow_symlinks=False)
        ]
    for rank, folder in sorted(ranks):
        tables = os.path.join(folder, TABLES_DIR)
        status = _lstat(tables)
        if status is None or not stat.S_ISDIR(status.st_mode):
            continue
        status = _lstat(os.path.join(tables, metric_summary.FILE))
        if status is None or not stat.S_ISREG(status.st_mode):
            yield _File(rank, tables, 0, 0)
        else:
            yield _File(rank, tables, status.st_ino, status.st_mtime_ns)


def _lstat(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _hyperparameters(entry: _Entry) -> dict[str, str]:
    """Those of the lowest rank that has one of this name."""
    found: dict[str, str] = {}
    for _, summary in entry.ranks:
        found = {**summary.hyperparameters, **found}
    return found


def _numbered(
    found: Summary, wanted: set[str] | None, numbers: dict[tuple[str, str], int]
) -> tuple[Array, Array]:
    """Rows of the wanted tags, and the number of the tag and source of each."""
    rows = [row for row, tag in enumerate(found.tags) if wanted is None or tag in wanted]
    codes = [
        numbers.setdefault((found.tags[row], found.sources[row]), len(numbers)) for row in rows
    ]
    return np.array(rows, dtype=np.int64), np.array(codes, dtype=np.int64)


def _figures(name: str, parts: list[tuple[Array, Summary]]) -> Any:
    column = np.concatenate([found.columns[name][rows] for rows, found in parts])
    if name == "last" or name.endswith("count"):
        return column
    is_null = np.isnan(column) if column.dtype == np.float64 else column == UNKNOWN
    return Nullable(column, is_null)
