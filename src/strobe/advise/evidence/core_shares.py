"""How many cores training had while the counted steps ran, how many it lacked, and who had them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from strobe.advise.training import Training
from strobe.model.journal import (
    CHILD_PROCESSES,
    DATA_THREADS,
    NO_CORE_COUNTER,
    NO_CORE_OF,
    ON_CORE_OF,
    PYTHON_THREADS,
    TRAINING_THREADS,
)

# What the script itself runs alongside training.
ALONGSIDE = (DATA_THREADS, PYTHON_THREADS, CHILD_PROCESSES)
# Other programs that use less cannot keep a thread from running for long.
LEAST_OTHERS = 0.1


@dataclass(frozen=True)
class CoreShares:
    """Average cores of one rank over the counted steps."""

    rank: int
    training: float
    lacked: float  # training's threads were ready to run on them
    alongside: dict[str, float]  # by role: what the script runs alongside training
    others: float  # programs that are not part of this job
    computing_ratio: float  # part of step time that is not spent waiting for data
    thread_lacked: float  # part of step time in which the training thread was ready without a core

    @property
    def of_script(self) -> float:
        return sum(self.alongside.values())

    @property
    def lost_to_script(self) -> float:
        """Cores that training would gain if the script ran nothing alongside it. Other programs
        compete for what would become free."""
        taken = self.of_script / max(1e-9, self.of_script + self.others)
        wins = self.training / max(1e-9, self.training + self.others)
        return wins * min(self.of_script, self.lacked * taken)

    @property
    def others_share(self) -> float:
        """The part of step time that other programs cost: what the training thread lost itself, or
        more where its threads lack cores."""
        taken = self.others / max(1e-9, self.of_script + self.others)
        of_threads = self.share_of(min(self.others, self.lacked * taken))
        of_thread = min(0.95, self.thread_lacked * taken) if self.others >= LEAST_OTHERS else 0.0
        return max(of_threads, of_thread)

    def share_of(self, lost: float) -> float:
        """The part of step time that missing this number of cores costs."""
        return self.computing_ratio * lost / max(1e-9, self.training + lost)


def core_shares(training: Training, rank: int) -> CoreShares | None:
    """None where it was not recorded."""
    step = _steps(training, rank)
    total_ns = float(step["dur_ns"].sum())
    trained, lacked = _of_training(training, rank, step)
    if trained is None or lacked is None or not total_ns:
        return None
    alongside = {r: _cores(training, rank, ON_CORE_OF.format(r), step) or 0.0 for r in ALONGSIDE}
    busy = _busy(training, rank, step)
    return CoreShares(
        rank, trained, lacked, alongside, max(0.0, busy - _of_job(training, rank)),
        1 - float(step["data_ns"].sum()) / total_ns,
        _cores(training, rank, NO_CORE_COUNTER, step) or 0.0,
    )  # fmt: skip


def _of_training(
    training: Training, rank: int, step: dict[str, Any]
) -> tuple[float | None, float | None]:
    """Cores that training had, and those that it lacked. All its threads are looked at now and
    then; in a short run the process as a whole and its training thread say more."""
    trained = _cores(training, rank, ON_CORE_OF.format(TRAINING_THREADS), step)
    lacked = _cores(training, rank, NO_CORE_OF.format(TRAINING_THREADS), step)
    if trained is not None and lacked is not None:
        return trained, lacked
    trained = _cores(training, rank, "process_cpu_ns_total", step)
    return trained, _cores(training, rank, NO_CORE_COUNTER, step)


def _steps(training: Training, rank: int) -> dict[str, Any]:
    mine = training.steps["rank"] == rank
    return {name: column[mine] for name, column in training.steps.items()}


def _of_job(training: Training, rank: int) -> float:
    """Cores that this job keeps busy on the host of a rank: other ranks there belong to it."""
    hosts = {entry.rank: entry.host for entry in training.run.manifest.ranks}
    names = ("process_cpu_ns_total", ON_CORE_OF.format(CHILD_PROCESSES))
    return sum(
        _cores(training, other, name, _steps(training, other)) or 0.0
        for other in training.ranks if hosts.get(other) == hosts.get(rank)
        for name in names
    )  # fmt: skip


def _busy(training: Training, rank: int, step: dict[str, Any]) -> float:
    """Cores of the machine that were busy while the steps ran."""
    moments, milli = training.counter("cores_busy_milli", rank)
    # A sample is about the time since the one before it.
    inside = (moments >= step["ts_ns"].min()) & (
        moments <= (step["ts_ns"] + step["dur_ns"]).max() + 1_000_000_000
    )
    return float(milli[inside].mean()) / 1000 if inside.any() else 0.0


def _cores(training: Training, rank: int, name: str, step: dict[str, Any]) -> float | None:
    """How much a counter of nanoseconds grows per nanosecond in these steps; None if unknown."""
    moments, values = training.counter(name, rank)
    if len(moments) < 2:
        return None
    begins, ends = step["ts_ns"].astype(float), (step["ts_ns"] + step["dur_ns"]).astype(float)
    known = (begins >= moments[0]) & (ends <= moments[-1])  # beyond, nothing was recorded
    passed_ns = float((ends - begins)[known].sum())
    if not passed_ns:
        return None
    begun, ended = (np.interp(at[known], moments, values) for at in (begins, ends))
    return float((ended - begun).sum()) / passed_ns
