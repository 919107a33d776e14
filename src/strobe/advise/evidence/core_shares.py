"""The cores that training used in the steps judged, those it was missing, and what used them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from strobe.advise.thresholds import MOST_ESTIMATED
from strobe.advise.training import Training
from strobe.messages import Message, message
from strobe.model.journal import (
    CHILD_PROCESSES,
    DATA_THREADS,
    NO_CORE_COUNTER,
    NO_CORE_OF,
    ON_CORE_OF,
    PYTHON_THREADS,
    TRAINING_THREADS,
)
from strobe.units import count

# What the script itself runs in the background.
BACKGROUND = (DATA_THREADS, PYTHON_THREADS, CHILD_PROCESSES)
# Other programs that use fewer cores cannot keep a thread from running for long.
FEWEST_OTHER_CORES = 0.1


@dataclass(frozen=True)
class CoreShares:
    """Average numbers of cores of one rank, over the steps judged."""

    rank: int
    training: float
    missing: float  # training's threads were ready to run on them
    background: dict[str, float]  # by role, what the script runs in the background
    others: float  # programs that are not part of this job
    computing_ratio: float  # part of step time that is not spent waiting for data
    thread_missing: float  # of the training thread alone: part of step time

    @property
    def of_script(self) -> float:
        """All that the script runs in the background."""
        return sum(self.background.values())

    @property
    def lost_to_script(self) -> float:
        """The cores that training would gain if the script ran nothing in the background. Other
        programs compete for the cores that would become free."""
        blame = self.of_script / max(1e-9, self.of_script + self.others)
        gained_ratio = self.training / max(1e-9, self.training + self.others)
        return gained_ratio * min(self.of_script, self.missing * blame)

    @property
    def measured(self) -> Message:
        """What a finding says was measured."""
        used, missing = average(self.training), average(self.missing)
        return message("core-shares.measured", used=used, missing=missing)

    @property
    def others_share(self) -> float:
        """The part of step time that other programs cost: the time the training thread itself was
        without a core, or more if its other threads are missing cores."""
        blame = self.others / max(1e-9, self.of_script + self.others)
        of_threads = self.share_of(min(self.others, self.missing * blame))
        can_block = self.others >= FEWEST_OTHER_CORES
        of_thread = min(MOST_ESTIMATED, self.thread_missing * blame) if can_block else 0.0
        return max(of_threads, of_thread)

    def share_of(self, lost: float) -> float:
        """The part of step time that missing this number of cores costs."""
        return self.computing_ratio * lost / max(1e-9, self.training + lost)


def average(cores: float) -> str:
    """A measured number of cores: 1.5."""
    return f"{cores:.1f}"


def available(cores: float) -> Message:
    """The cores of a machine, or those that may be used: 2 cores."""
    if cores == 1:
        return message("core-shares.one-core")
    return message("core-shares.cores", count=count(cores))


def core_shares(training: Training, rank: int) -> CoreShares | None:
    """None if it was not recorded."""
    step = _steps(training, rank)
    total_ns = float(step["dur_ns"].sum())
    used, missing = _of_training(training, rank, step)
    if used is None or missing is None or not total_ns:
        return None
    background = {
        role: _cores(training, rank, ON_CORE_OF.format(role), step) or 0.0 for role in BACKGROUND
    }
    busy = _busy(training, rank, step)
    return CoreShares(
        rank, used, missing, background, max(0.0, busy - _of_job(training, rank)),
        1 - float(step["data_ns"].sum()) / total_ns,
        _cores(training, rank, NO_CORE_COUNTER, step) or 0.0,
    )  # fmt: skip


def _of_training(
    training: Training, rank: int, step: dict[str, Any]
) -> tuple[float | None, float | None]:
    """The cores that training used, and those it was missing. Its threads are sampled at intervals.
    In a run too short for that, the counters of the process and of the training thread are used."""
    used = _cores(training, rank, ON_CORE_OF.format(TRAINING_THREADS), step)
    missing = _cores(training, rank, NO_CORE_OF.format(TRAINING_THREADS), step)
    if used is not None and missing is not None:
        return used, missing
    used = _cores(training, rank, "process_cpu_ns_total", step)
    return used, _cores(training, rank, NO_CORE_COUNTER, step)


def _steps(training: Training, rank: int) -> dict[str, Any]:
    mine = training.steps["rank"] == rank
    return {name: column[mine] for name, column in training.steps.items()}


def _of_job(training: Training, rank: int) -> float:
    """The cores that this job uses on the host of a rank, including other ranks on that host."""
    hosts = {entry.rank: entry.host for entry in training.run.manifest.ranks}
    names = ("process_cpu_ns_total", ON_CORE_OF.format(CHILD_PROCESSES))
    return sum(
        _cores(training, other, name, _steps(training, other)) or 0.0
        for other in training.ranks if hosts.get(other) == hosts.get(rank)
        for name in names
    )  # fmt: skip


def _busy(training: Training, rank: int, step: dict[str, Any]) -> float:
    """The cores of the machine that were busy while the steps ran."""
    moments, milli = training.counter("cores_busy_milli", rank)
    # A sample covers the time since the previous one.
    inside = (moments >= step["ts_ns"].min()) & (
        moments <= (step["ts_ns"] + step["dur_ns"]).max() + 1_000_000_000
    )
    return float(milli[inside].mean()) / 1000 if inside.any() else 0.0


def _cores(training: Training, rank: int, name: str, step: dict[str, Any]) -> float | None:
    """The growth of a counter of nanoseconds per nanosecond of these steps; None if unknown."""
    moments, values = training.counter(name, rank)
    if len(moments) < 2:
        return None
    begins, ends = step["ts_ns"].astype(float), (step["ts_ns"] + step["dur_ns"]).astype(float)
    is_known = (begins >= moments[0]) & (ends <= moments[-1])  # between the first and last sample
    passed_ns = float((ends - begins)[is_known].sum())
    if not passed_ns:
        return None
    first, last = (np.interp(at[is_known], moments, values) for at in (begins, ends))
    return float((last - first).sum()) / passed_ns
