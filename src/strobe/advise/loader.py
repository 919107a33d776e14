"""A data loader as it was recorded: its settings, the waits for it, what its batches took."""

import functools
import json
import statistics
from dataclasses import dataclass, field, replace
from typing import Any

from strobe.advise import pipeline_model
from strobe.advise.pipeline_model import Setting, Work
from strobe.advise.training import Lines, Training
from strobe.analyse import data_waits

# So many batches, from all over the run, stand for the rest in the model.
_WORKS = 120
# To take even the smallest batch out of a queue that it lies ready in: unpickling, mapping its
# memory, ordering the next (measured: 0.3 to 0.6 ms). Nothing a user can change.
LEAST_TAKING_NS = 500_000
# Training that scarcely shows up in the process's CPU time still needs some of a core.
LEAST_TRAINING_CORES = 0.3


@dataclass
class Loader:
    """Sums are over the steps judged of one rank."""

    rank: int
    number: int  # 0: it came with a trace from elsewhere
    total_ns: float  # of the steps
    steps: int
    waits: list[dict[str, Any]]  # rows of data_waits
    settings: dict[str, Any] = field(default_factory=dict)
    line: Lines | None = None
    cores: float = 1.0
    training_cores: float = 1.0
    no_core_ns: float = 0.0  # of the steps, in which the training thread was ready to run

    @functools.cached_property
    def waited_ns(self) -> int:
        """In waits, whatever for."""
        return sum(int(wait["dur_ns"]) for wait in self.waits)

    @property
    def quiet_ns(self) -> float:
        """What the steps would take if nobody else took the cores away."""
        return max(1.0, self.total_ns - self.no_core_ns)

    @functools.cached_property
    def lost_ns(self) -> int:
        """In waits for data that a user can do something about. Where a batch lay ready, only what
        it takes to take it counts, and to wait for a core is the fault of whoever has the cores.
        Workers cannot make the first batch of a pass ahead."""
        if self.settings.get("stages"):  # a pipeline of threads that always work ahead
            later = (w for w in self.waits if not w["is_start"] and w["number"] > 1)
            return sum(max(0, int(wait["dur_ns"]) - LEAST_TAKING_NS) for wait in later)
        if not self.workers:
            return self.waited_ns - sum(int(wait["queued_ns"]) for wait in self.brought)
        spared = sum(int(wait["dur_ns"]) - self._taking_ns(wait) for wait in self.ready)
        return self.waited_ns - spared - (self.boundary_ns - self.restarts_ns)

    @property
    def workers(self) -> int | None:
        return self.settings.get("num_workers")

    @functools.cached_property
    def brought(self) -> list[dict[str, Any]]:
        """Waits that ended with a batch whose making was seen."""
        return [wait for wait in self.waits if wait["begun_ns"] is not None]

    @functools.cached_property
    def ready(self) -> list[dict[str, Any]]:
        """Waits for a batch that a worker had made before."""
        if not self.workers:
            return []
        return [w for w in self.brought if w["made_ns"] <= w["ts_ns"] and w["number"] > 1]

    @property
    def batches(self) -> int:
        """Waits for a batch; without those at the end of a pass, where that can be told."""
        return len(self.brought) or sum(not wait["is_start"] for wait in self.waits)

    @functools.cached_property
    def boundary_ns(self) -> int:
        """Waits between two passes: for the first to end, for the next to start, and where there
        are workers for the first batch, which they cannot make ahead."""
        at_work = [
            w for w in self.waits if w["is_start"] or (w["begun_ns"] is None and self.brought)
        ]
        if self.workers:
            at_work += [w for w in self.brought if w["number"] == 1]
        return sum(int(wait["dur_ns"]) for wait in at_work)

    @functools.cached_property
    def restarts_ns(self) -> int:
        """Of those, what workers which stay would spare: to end them and to start others, up to
        when the first of them gets to work."""
        if not self.workers or self.settings.get("persistent_workers"):
            return 0
        found = 0
        for wait in self.waits:
            if wait["is_start"] or (wait["begun_ns"] is None and self.brought):
                found += wait["dur_ns"]
            elif wait["number"] == 1 and wait["begun_ns"] is not None:
                found += max(0, min(wait["begun_ns"] - wait["ts_ns"], wait["dur_ns"]))
        return found

    @functools.cached_property
    def taking_ns(self) -> int:
        """In waits although a batch lay ready: to take it, and to order another one."""
        return sum(self._taking_ns(wait) for wait in self.ready)

    @functools.cached_property
    def receive_ns(self) -> float:
        """To take one batch that lies ready."""
        taking = [self._taking_ns(wait) for wait in self.ready]
        return statistics.median(taking) + LEAST_TAKING_NS if taking else LEAST_TAKING_NS

    def _taking_ns(self, wait: dict[str, Any]) -> int:
        """What lies in the user's hands of it."""
        on_core_ns = wait["on_core_ns"]
        taking_ns = wait["dur_ns"] if on_core_ns is None else min(on_core_ns, wait["dur_ns"])
        return max(0, int(taking_ns) - LEAST_TAKING_NS)

    @functools.cached_property
    def works(self) -> list[Work]:
        """What batches took, spread over the run."""
        chosen = self.brought[:: max(1, len(self.brought) // _WORKS)]
        plain = [
            Work(row["reading_ns"], row["transform_ns"], row["collate_ns"], row["send_ns"] or 0)
            for row in chosen
        ]
        on_core = sum(row["transform_ns"] for row in chosen)
        slowdown = 1 + sum(row["queued_ns"] for row in chosen) / on_core if on_core else 1.0
        # What training and workers take each other away, the model finds by itself.
        if not self.workers:
            return plain
        own = pipeline_model.run(plain, self.setting()).slowdown
        others = max(0.0, slowdown - own)
        return [replace(work, others_ns=work.transform_ns * others) for work in plain]

    @property
    def _quiet_waits_ns(self) -> float:
        name = "no_core_ns" if self.workers else "queued_ns"
        return self.waited_ns - sum(int(wait[name] or 0) for wait in self.waits)

    def setting(self, workers: int | None = None) -> Setting:
        count = self.workers or 0 if workers is None else workers
        return Setting(
            workers=count,
            training_ns=max(0.0, self.quiet_ns - self._quiet_waits_ns) / max(1, self.batches),
            prefetch=self.settings.get("prefetch_factor") or 2,
            cores=self.cores,
            training_cores=self.training_cores,
            receive_ns=self.receive_ns,
        )


def loaders(training: Training) -> list[Loader]:
    """Those that steps judged waited for, the one waited for longest first."""
    data_waits.prepare(training.run)
    rows = training.rows("FROM data_waits WHERE step IS NOT NULL ORDER BY rank, loader, ts_ns")
    waits: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for row in rows:
        if training.judges(row["rank"], row["step"]):
            waits.setdefault((row["rank"], row["loader"]), []).append(row)
    found = [_loader(training, rank, number, of) for (rank, number), of in waits.items()]
    return sorted(found, key=lambda loader: -loader.lost_ns)


def _loader(training: Training, rank: int, number: int, waits: list[dict[str, Any]]) -> Loader:
    columns = training.steps
    mine = columns["rank"] == rank
    total_ns = float((columns["dur_ns"] - columns["recorder_ns"])[mine].sum())
    found = Loader(rank, number, total_ns, int(mine.sum()), waits)
    told = training.rows(
        "SELECT file, line, details FROM places WHERE what = 'data loader' AND number = $number"
        " AND rank = $rank LIMIT 1",
        {"number": number, "rank": rank},
    )
    if told:
        found.settings = json.loads(told[0]["details"] or "{}")
        found.line = Lines(told[0]["file"], told[0]["line"]) if told[0]["line"] else None
    hosts = [entry.host for entry in training.run.manifest.ranks]
    beside = max(1, sum(host == found.settings.get("host") for host in hosts))
    found.cores = max(1.0, (found.settings.get("cores") or 1) / beside)
    found.training_cores = _training_cores(training, found)
    found.no_core_ns = float(training.no_core_ns[mine].sum())
    return found


def _training_cores(training: Training, loader: Loader) -> float:
    """Cores that the training process keeps busy while it does not make batches itself."""
    rows = training.run.sql(
        """
        SELECT (max(value) - min(value)) / nullif(max(ts_ns) - min(ts_ns), 0) FROM counters
        WHERE name = 'process_cpu_ns_total' AND rank = $rank
            AND ts_ns BETWEEN $first AND $last
        """,
        {"rank": loader.rank, "first": _first_ns(training, loader.rank),
         "last": _last_ns(training, loader.rank)},
    ).fetchall()  # fmt: skip
    used = rows[0][0] if rows and rows[0][0] is not None else None
    trained_ns = loader.total_ns - loader.waited_ns
    if used is None or trained_ns <= 0:
        return 1.0
    making = 0 if loader.workers else sum(
        row["transform_ns"] + row["collate_ns"] for row in loader.brought
    )  # fmt: skip
    cores = (used * loader.total_ns - making) / trained_ns
    return float(min(max(cores, LEAST_TRAINING_CORES), loader.cores))


def _first_ns(training: Training, rank: int) -> int:
    return int(training.steps["ts_ns"][training.steps["rank"] == rank].min())


def _last_ns(training: Training, rank: int) -> int:
    ends = training.steps["ts_ns"] + training.steps["dur_ns"]
    return int(ends[training.steps["rank"] == rank].max())
