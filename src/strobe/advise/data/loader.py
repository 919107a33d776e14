"""A data loader as it was recorded: its settings, the waits for it, the times of its batches."""

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

# The model of the pipeline uses the times of about this many batches, sampled from the whole run.
_SAMPLED_BATCHES = 120
# Receiving a batch that is ready takes this long even if the batch is tiny: unpickling it, mapping
# its memory, requesting the next one (measured: 0.3 to 0.6 ms). A user cannot change it.
LEAST_RECEIVING_NS = 500_000
# The length of a step that found its batch ready is known if there are this many.
_ENOUGH_READY = 5
# Iterators used for a single batch are a fault from this many on: fewer may have another reason.
_ENOUGH_PASSES = 10
_SINGLE_RATIO = 1.2
# If this part of the waiting can be avoided, all of it is reported as avoidable.
_MOSTLY_RATIO = 0.9
# Training needs some of a core even if the process's CPU time hardly shows it.
LEAST_TRAINING_CORES = 0.3

_STAGE_TIMES = ("reading_ns", "transform_ns", "collate_ns", "send_ns")
_OR_ZERO = ", ".join(
    f"coalesce({name}, 0) AS {name}"
    for name in ("no_core_ns", "begun_ns", "made_ns", "queued_ns", *_STAGE_TIMES)
)

# Waits in the steps that are counted. `is_timed`: the wait ended with a batch whose times were
# recorded; they are 0 for the others.
_WAITS = f"""
    SELECT rank, loader, pass, number, is_start, ts_ns, dur_ns, {_OR_ZERO},
           least(coalesce(on_core_ns, dur_ns), dur_ns) AS on_core_ns,
           begun_ns IS NOT NULL AS is_timed
    FROM data_waits SEMI JOIN ({steps.COUNTED}) USING (rank, step) ORDER BY rank, loader, ts_ns
"""


@dataclass
class Loader:
    """A loader of one rank; sums are over the steps judged."""

    rank: int
    number: int  # 0: of an imported trace
    total_ns: float  # of the steps
    steps: int
    waits: dict[str, Array]  # columns of _WAITS
    settings: dict[str, Any] = field(default_factory=dict)
    line: Lines | None = None
    cores: float = 1.0
    training_cores: float = 1.0
    process_cores: float = 0.0  # used by all threads of the process; 0 if unknown
    # In the steps: the training thread was ready to run, and other processes were using the cores.
    no_core_ns: float = 0.0
    background_cores: float | None = None  # used by the process's threads except the training one
    ready_step_ns: float | None = None  # a typical step that found its batch ready; None: too few
    # Outside the waits: how much longer than other steps the first steps of passes take.
    first_steps_ns: float = 0.0

    @functools.cached_property
    def waited_ns(self) -> int:
        """In all waits."""
        return int(self.waits["dur_ns"].sum())

    @property
    def quiet_ratio(self) -> float:
        """The part of the time that is left if no other process uses the cores. Only predictions
        use it, never a measured time."""
        return max(0.0, 1 - self.no_core_ns / max(1.0, self.total_ns))

    @property
    def trained_ns(self) -> float:
        """In the steps, outside the waits for this loader."""
        return max(0.0, self.total_ns - self.waited_ns)

    @functools.cached_property
    def lost_ns(self) -> int:
        """In waits that a user can avoid. If a batch was ready, only the time to receive it counts.
        Workers cannot prepare the first batch of an epoch in advance."""
        waits = self.waits
        if self.is_recreated:
            return self.waited_ns
        if self.is_threaded:
            later = waits["dur_ns"][~waits["is_start"] & (waits["number"] > 1)]
            return int(np.maximum(0, later - LEAST_RECEIVING_NS).sum())
        if not self.workers:
            return self.waited_ns
        spared = int(waits["dur_ns"][self.ready].sum()) - self.receiving_ns
        return self.waited_ns - spared - (self.boundary_ns - self.restarts_ns)

    @property
    def avoidable_ns(self) -> int:
        """The same, or all of the waiting if so little cannot be avoided (the least time to receive
        a batch) that a second figure would only confuse."""
        return self.waited_ns if self.lost_ns >= _MOSTLY_RATIO * self.waited_ns else self.lost_ns

    @functools.cached_property
    def is_recreated(self) -> bool:
        """Whether the loop creates a new iterator for every batch, as `next(iter(loader))` does. A
        pass that has only one batch is asked for a second one, which distinguishes it."""
        asked = int((~self.waits["is_start"]).sum())
        return self.passes >= _ENOUGH_PASSES and asked <= _SINGLE_RATIO * self.passes

    @property
    def is_threaded(self) -> bool:
        """Whether a pipeline prepares its batches in advance: MindData, grain, tf.data."""
        return "stages" in self.settings or "library" in self.settings

    @property
    def place(self) -> str | None:
        """The line that created it."""
        return str(self.line) if self.line else None

    @property
    def workers(self) -> int | None:
        return self.settings.get("num_workers")

    @functools.cached_property
    def _timed_batches(self) -> int:
        """The number of waits that ended with a batch whose times were recorded."""
        return int(self.waits["is_timed"].sum())

    @functools.cached_property
    def ready(self) -> Array:
        """Which waits were for a batch that a worker had finished before."""
        waits = self.waits
        if not self.workers:
            return np.zeros(len(waits["ts_ns"]), dtype=bool)
        was_made: Array = waits["is_timed"] & (waits["made_ns"] <= waits["ts_ns"])
        return was_made & (waits["number"] > 1)

    @property
    def batches(self) -> int:
        """The number of waits for a batch, without those for the end of a pass if these are
        known."""
        return self._timed_batches or int((~self.waits["is_start"]).sum())

    @functools.cached_property
    def _between(self) -> Array:
        """Which waits were for a pass to end, or for the next one to start."""
        waits = self.waits
        ends = ~waits["is_timed"] if self._timed_batches else False
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
        first: Array = self.waits["is_timed"] & (self.waits["number"] == 1)
        return first

    @functools.cached_property
    def boundary_ns(self) -> int:
        """Waits between two passes: for the first to end, for the next to start, and with workers
        for the first batch, which they cannot prepare in advance."""
        dur_ns = self.waits["dur_ns"]
        first_ns = int(dur_ns[self._first].sum()) if self.workers else 0
        return int(dur_ns[self._between].sum()) + first_ns

    @functools.cached_property
    def restarts_ns(self) -> int:
        """The part of these waits that persistent workers avoid: stopping workers, starting others
        until the first of them begins a batch, and preparing their first batch."""
        if not self.workers or self.settings.get("persistent_workers"):
            return 0
        waits, first = self.waits, self._first & ~self._between
        until_ns = np.clip(waits["begun_ns"] - waits["ts_ns"], 0, waits["dur_ns"])
        starting_ns = waits["dur_ns"][self._between].sum() + until_ns[first].sum()
        return int(starting_ns) + self.preparing_ns

    @functools.cached_property
    def preparing_ns(self) -> int:
        """In waits for the first batches of passes: how much longer than others these take to
        build, for example because a new worker opens its files. An iterable dataset may do so in
        every pass, also in persistent workers."""
        waits, first = self.waits, self._first & ~self._between
        later = waits["is_timed"] & (waits["number"] > (self.workers or 0))
        if not self.workers or self.settings.get("is_iterable") or later.sum() < _ENOUGH_READY:
            return 0
        until_ns = np.clip(waits["begun_ns"] - waits["ts_ns"], 0, waits["dur_ns"])
        usual_ns = np.median((waits["made_ns"] - waits["begun_ns"])[later])
        longer_ns = waits["dur_ns"] - until_ns - usual_ns
        return int(np.maximum(0, longer_ns)[first].sum())

    @functools.cached_property
    def receiving_ns(self) -> int:
        """In waits for batches that were ready: to receive them and to request others, as far as a
        user can change it."""
        return int(self._each_receiving_ns.sum())

    @functools.cached_property
    def receive_ns(self) -> float:
        """To receive one batch that is ready."""
        each_ns = self._each_receiving_ns
        return LEAST_RECEIVING_NS + (float(np.median(each_ns)) if len(each_ns) else 0.0)

    @functools.cached_property
    def _each_receiving_ns(self) -> Array:
        each_ns: Array = np.maximum(0, self.waits["on_core_ns"][self.ready] - LEAST_RECEIVING_NS)
        return each_ns

    @functools.cached_property
    def works(self) -> list[Work]:
        """The times of batches from all over the run."""
        rows = np.flatnonzero(self.waits["is_timed"])
        rows = rows[:: max(1, len(rows) // _SAMPLED_BATCHES)]
        of = {name: self.waits[name][rows].tolist() for name in _STAGE_TIMES}
        plain = [Work(*times) for times in zip(*(of[name] for name in _STAGE_TIMES), strict=True)]
        on_core, queued = sum(of["transform_ns"]), int(self.waits["queued_ns"][rows].sum())
        slowdown = 1 + queued / on_core if on_core else 1.0
        # The model itself finds how much training and workers slow each other down.
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
        """The part of the waiting that is removed if batches, which take `made_ns` now, are
        prepared `factor` times as fast in the background.

        A step cannot become shorter than a step that found its batch ready, nor than the time to
        prepare a batch, nor, if that computes, than the cores allow.
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
        """The time on a core that batches took, in workers or in the training process."""
        return int(self.waits["transform_ns"].sum() + self.waits["collate_ns"].sum())

    @property
    def passes(self) -> int:
        """The number of passes that began in these steps."""
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
    """The loaders that the steps judged waited for, the longest avoidable wait first."""
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
    """The ten longest waits, with the number of batches that were ready."""
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
    places = training.rows(
        "SELECT file, line, details FROM places WHERE what = 'data loader' AND number = $number"
        " AND rank = $rank LIMIT 1",
        {"number": number, "rank": rank},
    )
    if places:
        found.settings = json.loads(places[0]["details"] or "{}")
        found.line = Lines(places[0]["file"], places[0]["line"]) if places[0]["line"] else None
    hosts = [entry.host for entry in training.run.manifest.ranks]
    ranks_of_host = max(1, sum(host == found.settings.get("host") for host in hosts))
    found.cores = max(1.0, (found.settings.get("cores") or 1) / ranks_of_host)
    found.process_cores = _process_cores(training, rank) or 0.0
    found.background_cores = _background_cores(training, rank)
    found.training_cores = _training_cores(found)
    own = {name: column[mine] for name, column in columns.items()}
    others_ns = training.others_between(rank, own["ts_ns"], own["ts_ns"] + own["dur_ns"])
    found.no_core_ns = float(others_ns.sum())
    found.first_steps_ns = _first_steps_ns(found, own)
    ready = own["data_ns"] <= LEAST_RECEIVING_NS
    if ready.sum() >= _ENOUGH_READY:
        quiet_ns = own["dur_ns"] - own["recorder_ns"] - others_ns
        found.ready_step_ns = float(np.median(quiet_ns[ready]))
    return found


def _first_steps_ns(loader: Loader, own: dict[str, Array]) -> float:
    """A process that has just forked copies each page that it writes to, and new workers use cores
    while they start, so the first steps of a pass compute slowly too."""
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


def _background_cores(training: Training, rank: int) -> float | None:
    """Cores that the process's threads use, except the training thread."""
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
    """Cores that the training process uses while it does not build batches itself."""
    if not loader.process_cores or loader.trained_ns <= 0:
        return 1.0
    making_ns = 0 if loader.workers else loader.making_ns
    cores = (loader.process_cores * loader.total_ns - making_ns) / loader.trained_ns
    return float(min(max(cores, LEAST_TRAINING_CORES), loader.cores))


def _first_ns(training: Training, rank: int) -> int:
    return int(training.steps["ts_ns"][training.steps["rank"] == rank].min())


def _last_ns(training: Training, rank: int) -> int:
    ends = training.steps["ts_ns"] + training.steps["dur_ns"]
    return int(ends[training.steps["rank"] == rank].max())
