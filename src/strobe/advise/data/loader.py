"""A data loader as it was recorded: its settings, the waits for it, what its batches took."""

import functools
import itertools
import json
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from strobe.advise.data import pipeline_model
from strobe.advise.data.pipeline_model import Setting, Work
from strobe.advise.training import Array, Lines, Training
from strobe.analyse import data_waits
from strobe.analyse.tables.steps import steps

# So many batches, from all over the run, stand for the rest in the model.
_WORKS = 120
# To take even the smallest batch out of a queue that it lies ready in: unpickling, mapping its
# memory, ordering the next (measured: 0.3 to 0.6 ms). Nothing a user can change.
LEAST_TAKING_NS = 500_000
# So many steps that found their batch ready tell how long such a step is.
_ENOUGH_READY = 5
# Passes that are left after one batch: fewer may have another reason.
_ENOUGH_PASSES = 10
_SINGLE_RATIO = 1.2
# Waits that can be avoided to this part are reported as a whole.
_MOSTLY_RATIO = 0.9
# Training that scarcely shows up in the process's CPU time still needs some of a core.
LEAST_TRAINING_CORES = 0.3

_OF_A_WORK = ("reading_ns", "transform_ns", "collate_ns", "send_ns")
_OR_ZERO = ", ".join(
    f"coalesce({name}, 0) AS {name}"
    for name in ("no_core_ns", "begun_ns", "made_ns", "queued_ns", *_OF_A_WORK)
)

# Waits in steps that speak for the training. `is_brought`: it ended with a batch whose making was
# seen; what that took is 0 for the others.
_WAITS = f"""
    SELECT rank, loader, pass, number, is_start, ts_ns, dur_ns, {_OR_ZERO},
           least(coalesce(on_core_ns, dur_ns), dur_ns) AS on_core_ns,
           begun_ns IS NOT NULL AS is_brought
    FROM data_waits SEMI JOIN ({steps.COUNTED}) USING (rank, step) ORDER BY rank, loader, ts_ns
"""


@dataclass
class Loader:
    """Sums are over the steps judged of one rank."""

    rank: int
    number: int  # 0: it came with a trace from elsewhere
    total_ns: float  # of the steps
    steps: int
    waits: dict[str, Array]  # columns of _WAITS
    settings: dict[str, Any] = field(default_factory=dict)
    line: Lines | None = None
    cores: float = 1.0
    training_cores: float = 1.0
    process_cores: float = 0.0  # kept busy by all threads of the process; 0 if unknown
    # of the steps, in which the training thread was ready to run and other processes had the cores
    no_core_ns: float = 0.0
    beside_cores: float | None = None  # kept busy by all of its threads but the training one
    ready_step_ns: float | None = None  # a typical step that found its batch ready; None: too few
    # Outside the waits: what the first steps of passes take longer than other steps.
    first_steps_ns: float = 0.0

    @functools.cached_property
    def waited_ns(self) -> int:
        """In waits, whatever for."""
        return int(self.waits["dur_ns"].sum())

    @property
    def quiet_ratio(self) -> float:
        """The part of the time that is left if nobody else takes the cores away. Only predictions
        use it: what is reported as measured is what was measured."""
        return max(0.0, 1 - self.no_core_ns / max(1.0, self.total_ns))

    @property
    def trained_ns(self) -> float:
        """In the steps, outside the waits for this loader."""
        return max(0.0, self.total_ns - self.waited_ns)

    @functools.cached_property
    def lost_ns(self) -> int:
        """In waits that a user can do something about. Where a batch was ready, only what it takes
        to receive it counts. Workers cannot prepare the first batch of an epoch in advance."""
        waits = self.waits
        if self.is_recreated:
            return self.waited_ns
        if self.is_threaded:
            later = waits["dur_ns"][~waits["is_start"] & (waits["number"] > 1)]
            return int(np.maximum(0, later - LEAST_TAKING_NS).sum())
        if not self.workers:
            return self.waited_ns
        spared = int(waits["dur_ns"][self.ready].sum()) - self.taking_ns
        return self.waited_ns - spared - (self.boundary_ns - self.restarts_ns)

    @property
    def avoidable_ns(self) -> int:
        """The same; all of the waiting where what cannot be avoided is not worth a second figure:
        the least that it takes to receive a batch."""
        return self.waited_ns if self.lost_ns >= _MOSTLY_RATIO * self.waited_ns else self.lost_ns

    @functools.cached_property
    def is_recreated(self) -> bool:
        """Whether the loop makes a new iterator for every batch, as `next(iter(loader))` does. A
        pass that a single batch completes is asked for a second one, which tells it apart."""
        asked = int((~self.waits["is_start"]).sum())
        return self.passes >= _ENOUGH_PASSES and asked <= _SINGLE_RATIO * self.passes

    @property
    def is_threaded(self) -> bool:
        """Whether a pipeline prepares its batches in advance: MindData, grain, tf.data."""
        return "stages" in self.settings or "library" in self.settings

    @property
    def place(self) -> str | None:
        """Where it was made."""
        return str(self.line) if self.line else None

    @property
    def workers(self) -> int | None:
        return self.settings.get("num_workers")

    @functools.cached_property
    def _brought(self) -> int:
        """How many waits ended with a batch whose making was seen."""
        return int(self.waits["is_brought"].sum())

    @functools.cached_property
    def ready(self) -> Array:
        """Which waits were for a batch that a worker had made before."""
        waits = self.waits
        if not self.workers:
            return np.zeros(len(waits["ts_ns"]), dtype=bool)
        was_made: Array = waits["is_brought"] & (waits["made_ns"] <= waits["ts_ns"])
        return was_made & (waits["number"] > 1)

    @property
    def batches(self) -> int:
        """Waits for a batch; without those at the end of a pass, where that can be told."""
        return self._brought or int((~self.waits["is_start"]).sum())

    @functools.cached_property
    def _between(self) -> Array:
        """Which waits were for a pass to end, or for the next to start."""
        waits = self.waits
        ends = ~waits["is_brought"] if self._brought else False
        between: Array = waits["is_start"] | ends
        return between

    @property
    def starts(self) -> Array:
        """Which waits were for a pass to start, or for its first batch."""
        starts: Array = self.waits["is_start"] | self._first
        return starts

    @functools.cached_property
    def _first(self) -> Array:
        """Which waits were for the first batch of a pass."""
        first: Array = self.waits["is_brought"] & (self.waits["number"] == 1)
        return first

    @functools.cached_property
    def boundary_ns(self) -> int:
        """Waits between two passes: for the first to end, for the next to start, and where there
        are workers for the first batch, which they cannot make ahead."""
        dur_ns = self.waits["dur_ns"]
        first_ns = int(dur_ns[self._first].sum()) if self.workers else 0
        return int(dur_ns[self._between].sum()) + first_ns

    @functools.cached_property
    def restarts_ns(self) -> int:
        """Of those, what workers which stay would spare: to end them and to start others, up to
        when the first of them gets to work, and what they prepare for their first batch."""
        if not self.workers or self.settings.get("persistent_workers"):
            return 0
        waits, first = self.waits, self._first & ~self._between
        until_ns = np.clip(waits["begun_ns"] - waits["ts_ns"], 0, waits["dur_ns"])
        starting_ns = waits["dur_ns"][self._between].sum() + until_ns[first].sum()
        return int(starting_ns) + self.preparing_ns

    @functools.cached_property
    def preparing_ns(self) -> int:
        """In waits for the first batches of passes: what those take longer to make than others, as
        when a new worker opens its files. An iterable dataset may do that in every pass."""
        waits, first = self.waits, self._first & ~self._between
        later = waits["is_brought"] & (waits["number"] > (self.workers or 0))
        if not self.workers or self.settings.get("is_iterable") or later.sum() < _ENOUGH_READY:
            return 0
        until_ns = np.clip(waits["begun_ns"] - waits["ts_ns"], 0, waits["dur_ns"])
        usual_ns = np.median((waits["made_ns"] - waits["begun_ns"])[later])
        longer_ns = waits["dur_ns"] - until_ns - usual_ns
        return int(np.maximum(0, longer_ns)[first].sum())

    @functools.cached_property
    def taking_ns(self) -> int:
        """In waits although a batch lay ready: to take it, and to order another one; what of it
        lies in the user's hands."""
        return int(self._takings_ns.sum())

    @functools.cached_property
    def receive_ns(self) -> float:
        """To take one batch that lies ready."""
        takings = self._takings_ns
        return float(np.median(takings)) + LEAST_TAKING_NS if len(takings) else LEAST_TAKING_NS

    @functools.cached_property
    def _takings_ns(self) -> Array:
        takings: Array = np.maximum(0, self.waits["on_core_ns"][self.ready] - LEAST_TAKING_NS)
        return takings

    @functools.cached_property
    def works(self) -> list[Work]:
        """What batches took, spread over the run."""
        rows = np.flatnonzero(self.waits["is_brought"])
        rows = rows[:: max(1, len(rows) // _WORKS)]
        of = {name: self.waits[name][rows].tolist() for name in _OF_A_WORK}
        plain = [Work(*times) for times in zip(*(of[name] for name in _OF_A_WORK), strict=True)]
        on_core, queued = sum(of["transform_ns"]), int(self.waits["queued_ns"][rows].sum())
        slowdown = 1 + queued / on_core if on_core else 1.0
        # What training and workers take each other away, the model finds by itself.
        if not self.workers:
            return plain
        own = pipeline_model.run(plain, self.setting()).slowdown
        others = max(0.0, slowdown - own)
        return [replace(work, others_ns=work.transform_ns * others) for work in plain]

    @property
    def step_ns(self) -> float:
        """The mean step."""
        return self.total_ns / max(1, self.steps)

    def recovered_by(self, made_ns: float, factor: float, computes: bool) -> float:
        """The part of the waiting that ends if batches, which take `made_ns` now, are prepared
        `factor` times as fast in the background.

        A step cannot become shorter than one that found its batch ready, nor than the time in which
        a batch is prepared, nor, if that computes, than the cores allow.
        """
        trained_ns = self.trained_ns / max(1, self.steps)
        if self.ready_step_ns is not None:
            trained_ns = min(self.step_ns, max(trained_ns, self.ready_step_ns))
        limits = [trained_ns, made_ns / max(1.0, factor)]
        if computes:
            limits.append(self.step_ns * min(1.0, self.process_cores / self.cores))
        saved_ns = max(0.0, self.step_ns - max(limits))
        return min(1.0, saved_ns * self.steps / max(1, self.avoidable_ns))

    @property
    def making_ns(self) -> int:
        """What batches took on a core, wherever they were made."""
        return int(self.waits["transform_ns"].sum() + self.waits["collate_ns"].sum())

    @property
    def passes(self) -> int:
        """How many were begun in these steps."""
        return len(np.unique(self.waits["pass"][self.waits["is_start"]]))

    def setting(self, workers: int | None = None) -> Setting:
        count = self.workers or 0 if workers is None else workers
        return Setting(
            workers=count,
            training_ns=self.trained_ns * self.quiet_ratio / max(1, self.batches),
            prefetch=self.settings.get("prefetch_factor") or 2,
            cores=self.cores,
            training_cores=self.training_cores,
            receive_ns=self.receive_ns,
        )


def loaders(training: Training) -> list[Loader]:
    """Those that steps judged waited for, the one waited for longest first."""
    data_waits.prepare(training.run)
    rows = training.run.sql(_WAITS).fetchnumpy()
    waits = {name: np.asarray(column) for name, column in rows.items()}
    which = np.stack([waits["rank"], waits["loader"]])
    borders = np.flatnonzero((np.diff(which) != 0).any(axis=0)) + 1
    parts = [
        {name: column[first:end] for name, column in waits.items()}
        for first, end in itertools.pairwise([0, *borders.tolist(), which.shape[1]])
        if end > first
    ]
    found = [_loader(training, part) for part in parts]
    return sorted(found, key=lambda loader: -loader.lost_ns)


def longest_waits(training: Training, loader: Loader) -> tuple[dict[str, Any], ...]:
    """The longest ten, with what lay ready."""
    query = f"""
        SELECT id, rank, step, ts_ns, dur_ns, ready, worker FROM data_waits
        SEMI JOIN ({steps.COUNTED}) USING (rank, step)
        WHERE rank = $rank AND loader = $loader ORDER BY dur_ns DESC, ts_ns LIMIT 10
    """
    return tuple(training.rows(query, {"rank": loader.rank, "loader": loader.number}))


def _loader(training: Training, waits: dict[str, Array]) -> Loader:
    rank, number = int(waits["rank"][0]), int(waits["loader"][0])
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
    found.process_cores = _process_cores(training, rank) or 0.0
    found.beside_cores = _beside_cores(training, rank)
    found.training_cores = _training_cores(found)
    own = {name: column[mine] for name, column in columns.items()}
    others_ns = training.others_between(rank, own["ts_ns"], own["ts_ns"] + own["dur_ns"])
    found.no_core_ns = float(others_ns.sum())
    found.first_steps_ns = _first_steps_ns(found, own)
    ready = own["data_ns"] <= LEAST_TAKING_NS
    if ready.sum() >= _ENOUGH_READY:
        quiet_ns = own["dur_ns"] - own["recorder_ns"] - others_ns
        found.ready_step_ns = float(np.median(quiet_ns[ready]))
    return found


def _first_steps_ns(loader: Loader, own: dict[str, Array]) -> float:
    """A process that has just forked copies each page it writes to, and new workers take cores
    while they start: the first steps of a pass compute slowly too."""
    if not loader.restarts_ns:
        return 0.0
    begun_ns = loader.waits["ts_ns"][loader.starts]
    rows = np.searchsorted(own["ts_ns"], begun_ns, side="right") - 1
    is_first = np.zeros(len(own["ts_ns"]), dtype=bool)
    is_first[rows[rows >= 0]] = True
    computing_ns = own["dur_ns"] - own["recorder_ns"] - own["data_ns"]
    if is_first.sum() < _ENOUGH_READY or (~is_first).sum() < _ENOUGH_READY:
        return 0.0
    usual_ns = np.median(computing_ns[~is_first])
    return float(np.maximum(0, computing_ns[is_first] - usual_ns).sum())


def _process_cores(training: Training, rank: int) -> float | None:
    ((cores,),) = training.run.sql(
        """
        SELECT (max(value) - min(value)) / nullif(max(ts_ns) - min(ts_ns), 0) FROM counters
        WHERE name = 'process_cpu_ns_total' AND rank = $rank
            AND ts_ns BETWEEN $first AND $last
        """,
        {"rank": rank, "first": _first_ns(training, rank), "last": _last_ns(training, rank)},
    ).fetchall()
    return None if cores is None else float(cores)


def _beside_cores(training: Training, rank: int) -> float | None:
    """Cores that the process keeps busy beside the training thread."""
    ((own, of_process),) = training.run.sql(
        """
        SELECT (SELECT (max(cpu_ns) - min(cpu_ns)) / nullif(max(ts_ns) - min(ts_ns), 0) FROM samples
                WHERE rank = $rank AND thread = 'training' AND cpu_ns IS NOT NULL),
               (SELECT (max(value) - min(value)) / nullif(max(ts_ns) - min(ts_ns), 0) FROM counters
                WHERE rank = $rank AND name = 'process_cpu_ns_total')
        """,
        {"rank": rank},
    ).fetchall()
    return None if own is None or of_process is None else max(0.0, of_process - own)


def _training_cores(loader: Loader) -> float:
    """Cores that the training process keeps busy while it does not make batches itself."""
    if not loader.process_cores or loader.trained_ns <= 0:
        return 1.0
    making = 0 if loader.workers else loader.making_ns
    cores = (loader.process_cores * loader.total_ns - making) / loader.trained_ns
    return float(min(max(cores, LEAST_TRAINING_CORES), loader.cores))


def _first_ns(training: Training, rank: int) -> int:
    return int(training.steps["ts_ns"][training.steps["rank"] == rank].min())


def _last_ns(training: Training, rank: int) -> int:
    ends = training.steps["ts_ns"] + training.steps["dur_ns"]
    return int(ends[training.steps["rank"] == rank].max())
