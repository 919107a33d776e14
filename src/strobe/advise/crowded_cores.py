"""What runs beside training takes the cores that it computes with.

## What it is
Threads and processes of the script make batches ahead, decode, augment, write logs. Training never
waits for them, so its data seems to come for free. But its operators share the cores with them, and
each takes longer than it would alone.

## How it is judged
The kernel counts of every thread how long it had a core, and how long it was ready to run without
one. Training has its own thread and those of its framework; beside it are the threads of an input
pipeline, others that were started in Python, and the processes below this one. What training's
threads lacked is laid to those beside it and to other programs on the machine by what each of them
computed, and at most as much as those beside it had counts as lost. A training that had cores
enough is clear, however busy they were. The table `core-users` shows who had them.

## How to fix
Do less in the pipeline: once, before training, what is the same in every epoch; on whole arrays
instead of single values; with operations that need no Python. Keep what was made in memory or on
disk. Or give the job more cores.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from strobe.advise.finding import CannotTell, Clear, Evidence, Finding, Verdict
from strobe.advise.loader import Loader, loaders
from strobe.advise.queue_pipeline import busiest
from strobe.advise.training import Training
from strobe.analyse import core_users
from strobe.model.journal import (
    CHILD_PROCESSES,
    DATA_THREADS,
    NO_CORE_OF,
    ON_CORE_OF,
    PYTHON_THREADS,
    STARTED_PROCESS,
    TRAINING_THREADS,
)

NAME = "crowded-cores"

# It is an estimate: what it says of less may be noise.
WORTH_TELLING_RATIO = 0.1
_BESIDE = (DATA_THREADS, PYTHON_THREADS, CHILD_PROCESSES)


@dataclass(frozen=True)
class _Crowd:
    """Of a rank: who had how many cores while steps were judged, on average."""

    rank: int
    trained: float
    lacked: float  # that training's threads were ready for
    beside: dict[str, float]
    others: float  # other programs
    computing_ratio: float  # of step time, that is not spent waiting for data

    @property
    def lost(self) -> float:
        """Cores that training would have, were nothing beside it."""
        beside = sum(self.beside.values())
        theirs = beside / max(1e-9, beside + self.others)
        return min(beside, self.lacked * theirs)

    @property
    def share(self) -> float:
        """Of step time: training computes as much in less of it."""
        return self.computing_ratio * self.lost / max(1e-9, self.trained + self.lost)

    @property
    def greatest(self) -> str:
        return max(self.beside, key=lambda role: self.beside[role])


class _Blamed(NamedTuple):
    who: str
    where: str | None


def check(training: Training) -> Verdict:
    if training.has_devices or _may_use_devices(training):
        return CannotTell(
            "a device computes, not the cores",
            "whether it waits for the host is told by device-idle and host-gap",
        )
    crowds = [found for rank in training.ranks if (found := _crowd(training, rank)) is not None]
    if not crowds:
        return CannotTell(
            "who had the cores was not recorded",
            "record longer, on Linux, with this version: strobe run train.py",
        )
    worst = max(crowds, key=lambda crowd: crowd.share)
    beside = sum(worst.beside.values())
    if worst.share < WORTH_TELLING_RATIO:
        return Clear(
            f"{beside:.1f} cores are busy beside training, which costs {worst.share:.1%} of it"
        )
    blamed = _BLAMED[worst.greatest](training, worst.rank)
    at = f" at {blamed.where}" if blamed.where else ""
    return Finding(
        title=f"{blamed.who}{at} keep {beside:.1f} cores busy that training computes with, about "
        f"{worst.share:.0%} of its time",
        share=worst.share,
        expected_speedup=1 / (1 - worst.share),
        fixes=(
            f"do less{at}: less often, once what is the same in every epoch, and on whole "
            "arrays instead of single values",
            "store what was made, in memory or on disk, instead of making it again in every epoch",
            "or give the job more cores",
        ),
        evidence=(Evidence(core_users.NAME, tuple(_users(training, worst.rank))),),
        where=blamed.where,
        is_certain=False,
    )


def _may_use_devices(training: Training) -> bool:
    """Without operators it is not known where they ran."""
    devices = {device for rank in training.run.manifest.ranks for device in rank.devices}
    return bool(devices - {"cpu"}) and not training.has_operators


def _crowd(training: Training, rank: int) -> _Crowd | None:
    mine = training.steps["rank"] == rank
    step = {name: column[mine] for name, column in training.steps.items()}
    total_ns = float(step["dur_ns"].sum())
    trained = _cores(training, rank, ON_CORE_OF.format(TRAINING_THREADS), step)
    lacked = _cores(training, rank, NO_CORE_OF.format(TRAINING_THREADS), step)
    if trained is None or lacked is None or not total_ns:
        return None
    beside = {r: _cores(training, rank, ON_CORE_OF.format(r), step) or 0.0 for r in _BESIDE}
    _, busy_milli = training.counter("cores_busy_milli", rank)
    busy = float(busy_milli.mean()) / 1000 if len(busy_milli) else 0.0
    return _Crowd(
        rank, trained, lacked, beside, max(0.0, busy - trained - sum(beside.values())),
        1 - float(step["data_ns"].sum()) / total_ns,
    )  # fmt: skip


def _cores(training: Training, rank: int, name: str, step: dict[str, Any]) -> float | None:
    """How much a counter of nanoseconds grows a nanosecond in these steps; None if unknown."""
    moments, values = training.counter(name, rank)
    if len(moments) < 2:
        return None
    begins, ends = step["ts_ns"].astype(float), (step["ts_ns"] + step["dur_ns"]).astype(float)
    known = (begins >= moments[0]) & (ends <= moments[-1])  # beyond, nothing is told
    passed_ns = float((ends - begins)[known].sum())
    if not passed_ns:
        return None
    begun, ended = (np.interp(at[known], moments, values) for at in (begins, ends))
    return float((ended - begun).sum()) / passed_ns


def _users(training: Training, rank: int) -> Iterator[dict[str, Any]]:
    relation = core_users.run(training.run)
    rows = (dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall())
    return (row for row in rows if row["rank"] == rank)


def _pipeline(training: Training, rank: int) -> _Blamed:
    """Threads of MindData: the operation that computes most."""
    loader = _loader(training, rank)
    found = busiest(training, loader) if loader is not None else None
    if found is None:
        return _Blamed("threads of the input pipeline", _place(loader))
    return _Blamed(f"threads of the input pipeline, most of them {found.operation},", found.where)


def _python(training: Training, rank: int) -> _Blamed:
    """Threads that the script has started: the line at which they were seen most often."""
    return _Blamed("threads beside training", _seen_most(training, rank, "thread "))


def _children(training: Training, rank: int) -> _Blamed:
    """Processes; of those of torch's data loaders it was seen what they do."""
    seen, loader = _seen_most(training, rank, "data worker "), _loader(training, rank)
    if loader is not None:
        return _Blamed("data workers", seen or _place(loader))
    started = training.place(STARTED_PROCESS, rank=rank)
    return _Blamed("processes that the script has started", str(started) if started else None)


def _seen_most(training: Training, rank: int, threads: str) -> str | None:
    """The line of the user's at which threads were seen whose names begin so."""
    rows = training.rows(
        """
        SELECT place FROM samples
        WHERE rank = $rank AND starts_with(thread, $threads) AND place IS NOT NULL
        GROUP BY place ORDER BY count(*) DESC, place LIMIT 1
        """,
        {"rank": rank, "threads": threads},
    )
    return str(rows[0]["place"]) if rows else None


_BLAMED = {DATA_THREADS: _pipeline, PYTHON_THREADS: _python, CHILD_PROCESSES: _children}


def _loader(training: Training, rank: int) -> Loader | None:
    return next((loader for loader in loaders(training) if loader.rank == rank), None)


def _place(loader: Loader | None) -> str | None:
    return str(loader.line) if loader is not None and loader.line else None
