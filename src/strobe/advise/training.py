"""The training that rules judge: what most of them ask, worked out once."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from strobe.advise.framework import framework_of
from strobe.analyse.devices import has_devices
from strobe.analyse.tables.steps import steps
from strobe.frameworks import Framework, of_package
from strobe.model.journal import NO_CORE_COUNTER
from strobe.model.schema import COMPILED_PROGRAMS
from strobe.store.run import Run

Array = np.ndarray[Any, np.dtype[Any]]


class Lines(NamedTuple):
    """A line of the user's code."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file.rpartition('/')[2]}:{self.line}"


def by_rank(ranks: Array) -> dict[int, slice]:
    """Where the rows of each rank lie, among rows in the order of ranks."""
    numbers, first = np.unique(ranks, return_index=True)
    ends = np.append(first, len(ranks))[1:]
    places = zip(numbers.tolist(), first.tolist(), ends.tolist(), strict=True)
    return {rank: slice(start, end) for rank, start, end in places}


class Training:
    """A run, with the steps that speak for it: not the first ones, not those that full recording
    slowed down where enough others remain."""

    def __init__(self, run: Run) -> None:
        self.run = run
        steps.prepare(run)

    @functools.cached_property
    def steps(self) -> dict[str, Array]:
        """Columns of the table `steps`, of the steps judged."""
        rows = self.run.sql(f"FROM ({steps.COUNTED}) ORDER BY rank, step").fetchnumpy()
        return {name: np.asarray(column) for name, column in rows.items()}

    @functools.cached_property
    def no_core_ns(self) -> Array:
        """Of each step judged: in which its thread was ready to run and others had the cores. That
        is no fault of what the step does. 0 where it was not recorded."""
        found = np.zeros(self.step_count)
        for rank in self.ranks:
            mine = self.steps["rank"] == rank
            begins = self.steps["ts_ns"][mine]
            found[mine] = self.no_core_between(rank, begins, begins + self.steps["dur_ns"][mine])
        return found

    def no_core_between(self, rank: int, begins: Array, ends: Array) -> Array:
        """From one moment to the other, for pairs of them. Whoever had the cores: threads of the
        same process too."""
        moments, passed = self._no_core(rank)
        if len(moments) < 2:
            return np.zeros(len(begins))
        begun, ended = (np.interp(at.astype(float), moments, passed) for at in (begins, ends))
        # Between two moments at which it was told, it is only known in all.
        passed_ns: Array = np.minimum(ended - begun, ends - begins)
        return passed_ns

    def others_between(self, rank: int, begins: Array, ends: Array) -> Array:
        """The same, as far as other processes computed meanwhile."""
        passed_ns = self.no_core_between(rank, begins, ends)
        others, computed = self._others(rank)
        if len(others) < 2:
            return passed_ns
        begun, ended = (np.interp(at.astype(float), others, computed) for at in (begins, ends))
        limited: Array = np.minimum(passed_ns, ended - begun)
        return limited

    def _others(self, rank: int) -> tuple[Array, Array]:
        """Moments, and how long other processes had computed by then; none if it is unknown."""
        told_ns, own_ns = self.counter("process_cpu_ns_total", rank)
        looked_ns, busy_milli = self.counter("cores_busy_milli", rank)
        if len(told_ns) < 2 or not len(looked_ns):
            return np.zeros(0), np.zeros(0)
        # What a look says of the cores is said of the time since the one before.
        moments = np.concatenate([told_ns[:1], looked_ns]).astype(float)
        computed_ns = np.diff(np.interp(moments, told_ns.astype(float), own_ns))
        others_ns = (busy_milli / 1000 * np.diff(moments) - computed_ns).clip(0)
        return moments, np.concatenate([[0.0], np.cumsum(others_ns)])

    def _no_core(self, rank: int) -> tuple[Array, Array]:
        moments, passed = self.counter(NO_CORE_COUNTER, rank)
        if (np.diff(passed) < 0).any():  # several threads tell theirs: whose time is it
            return moments[:0], passed[:0]
        return moments.astype(float), passed.astype(float)

    def counter(self, name: str, rank: int) -> tuple[Array, Array]:
        """When a rank told the value of a counter, and the values, in order of time."""
        rows, of_rank = self._counters(name)
        mine = of_rank.get(rank, slice(0, 0))
        return rows["ts_ns"][mine], rows["value"][mine]

    @functools.cache  # noqa: B019 - lives as long as what it is asked about
    def _counters(self, name: str) -> tuple[dict[str, Array], dict[int, slice]]:
        """Of all ranks at once: each has files of its own, and a question goes through all."""
        query = "SELECT rank, ts_ns, value FROM counters WHERE name = $name ORDER BY rank, ts_ns"
        found = self.run.sql(query, {"name": name}).fetchnumpy()
        rows = {name: np.asarray(column) for name, column in found.items()}
        return rows, by_rank(rows["rank"])

    @functools.cached_property
    def _judged(self) -> set[tuple[int, int]]:
        return {*zip(self.steps["rank"].tolist(), self.steps["step"].tolist(), strict=True)}

    def judges(self, rank: int, step: int) -> bool:
        return (rank, step) in self._judged

    @functools.cached_property
    def ranks(self) -> list[int]:
        """Those with steps to judge."""
        ranks: list[int] = np.unique(self.steps["rank"]).tolist()
        return ranks

    @property
    def step_count(self) -> int:
        return len(self.steps["step"])

    @functools.cached_property
    def has_metrics_only(self) -> bool:
        """Whether it logged something, and nothing is known of how it ran."""
        ((has_scalars, has_events),) = self.run.sql(
            "SELECT EXISTS (FROM scalars), EXISTS (FROM events)"
        ).fetchall()
        return bool(has_scalars and not has_events)

    @functools.cached_property
    def is_all_warm_up(self) -> bool:
        """Whether the whole training is shorter than warm-up. Only `strobe run` sees the first
        steps; a profiler in the script, or another tool, may have recorded a few later ones."""
        counts = np.unique(self.steps["rank"], return_counts=True)[1]
        is_whole = self.run.manifest.recorded_by == "strobe run"
        return is_whole and 0 < int(counts.max(initial=0)) <= steps.WARM_UP_STEPS

    @functools.cached_property
    def total_ns(self) -> int:
        """The length of all steps judged, less Strobe's own work."""
        return int((self.steps["dur_ns"] - self.steps["recorder_ns"]).sum())

    @property
    def mean_ns(self) -> float:
        """The mean step, of those judged."""
        return self.total_ns / max(1, self.step_count)

    @functools.cached_property
    def typical_ns(self) -> float:
        """The median step."""
        trained = self.steps["dur_ns"] - self.steps["recorder_ns"]
        return float(np.median(trained)) if len(trained) else 0.0

    @functools.cached_property
    def is_imported(self) -> bool:
        return self.run.manifest.recorded_by == "strobe import"

    @functools.cached_property
    def framework(self) -> Framework:
        """The one that trains."""
        return framework_of(self.run)

    def may_have(self, has: Callable[[Framework], object]) -> bool:
        """Whether one of the frameworks that the run names has something, or it names none."""
        packages = {name for rank in self.run.manifest.ranks for name in rank.frameworks}
        return not packages or any(has(of_package(package)) for package in packages)

    @functools.cached_property
    def has_devices(self) -> bool:
        return has_devices(self.run)

    @functools.cached_property
    def has_operators(self) -> bool:
        return bool(self.run.sql("FROM events WHERE kind = 'op' LIMIT 1").fetchall())

    @functools.cached_property
    def runs_programs(self) -> bool:
        """Whether compiled programs compute several parts of a step in one call."""
        query = "FROM tracks WHERE name = $name LIMIT 1"
        return bool(self.run.sql(query, {"name": COMPILED_PROGRAMS}).fetchall())

    def place(self, what: str, number: int = 1, rank: int | None = None) -> Lines | None:
        """Where in the user's code something of the table `places` is."""
        of_rank = "" if rank is None else f"AND rank = {int(rank)}"
        found = self.run.sql(
            f"SELECT file, line FROM places WHERE what = $what AND number = $number {of_rank} "
            "ORDER BY rank LIMIT 1",
            {"what": what, "number": number},
        ).fetchall()
        return Lines(*found[0]) if found else None

    def rows(self, query: str, params: Any = None) -> list[dict[str, Any]]:
        relation = self.run.sql(query, params)
        names = relation.columns
        return [dict(zip(names, row, strict=True)) for row in relation.fetchall()]
