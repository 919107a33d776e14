"""What the script runs alongside training takes the cores that training computes with.

## What it is
Threads and processes of the script prepare batches, decode, augment or write logs in the
background. Training never waits for them, so their work seems free. But its operators share the
cores with them, and each takes longer than it would alone.

## How it is judged
The kernel counts for every thread how long it had a core, and how long it was ready to run without
one. Training has its own thread and those of its framework; alongside it are the threads of an
input pipeline, other threads started in Python, and child processes. The cores that training lacked
are attributed to them and to other programs in proportion to what each computed; at most what they
used counts as lost, and other programs compete for what would become free. Training that had enough
cores is clear, however busy they were. The table `core-users` shows who used them. Programs outside
this job are reported by `busy-machine`.

## How to fix
Do less in the pipeline: do work that is the same in every epoch once before training, vectorize it,
use operations that need no Python. Cache results in memory or on disk. Or give the job more cores.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from strobe.advise.data.loader import Loader, loaders
from strobe.advise.data.queue_pipeline import busiest
from strobe.advise.evidence.core_shares import CoreShares, core_shares
from strobe.advise.finding import CannotTell, Clear, Evidence, Finding, Verdict
from strobe.advise.training import Training
from strobe.analyse.tables.steps import core_users
from strobe.model.journal import CHILD_PROCESSES, DATA_THREADS, PYTHON_THREADS, STARTED_PROCESS
from strobe.units import percent

NAME = "crowded-cores"

# It is an estimate: less may be noise.
WORTH_TELLING_RATIO = 0.1
# MindData's source that calls Python for every row: GeneratorDataset, NumpySlicesDataset.
_SOURCE_IN_PYTHON = "Generator"
# So little is in the background of any process.
LEAST_CORES = 0.15


class _Blamed(NamedTuple):
    who: str
    where: str | None
    makes_rows: bool = False  # a source in Python that gives single rows


def check(training: Training) -> Verdict:
    if training.has_devices or _may_use_devices(training):
        return CannotTell(
            "a device computes, not the cores",
            "whether it waits for the host is told by device-idle and host-gap",
        )
    found = [shares for rank in training.ranks if (shares := core_shares(training, rank))]
    if not found:
        return CannotTell(
            "the use of the cores was not recorded",
            "record for at least a few seconds on Linux: strobe run train.py",
        )
    worst = max(found, key=_share)
    share, cores = _share(worst), worst.of_script
    if share < WORTH_TELLING_RATIO or cores < LEAST_CORES:
        return Clear(f"the script keeps {cores:.1f} cores busy alongside training, which costs "
                     f"{percent(share)} of it")  # fmt: skip
    greatest = max(worst.alongside, key=lambda role: worst.alongside[role])
    blamed = _BLAMED[greatest](training, worst.rank)
    at = f" at {blamed.where}" if blamed.where else ""
    return Finding(
        title=f"{blamed.who}{at} use {cores:.1f} cores that training needs, which costs about "
        f"{percent(share)} of its time",
        share=share,
        expected_speedup=1 / (1 - share),
        fixes=_fixes(blamed, at),
        evidence=(Evidence(core_users.NAME, tuple(_users(training, worst.rank))),),
        where=blamed.where,
        is_certain=False,
    )


def _fixes(blamed: _Blamed, at: str) -> tuple[str, ...]:
    general = (
        f"Do less{at}: less often, once instead of in every epoch, and vectorized",
        "Cache the results in memory or on disk instead of computing them in every epoch",
        "Give the job more cores",
    )
    if not blamed.makes_rows:
        return general
    whole = (
        f"Let the source give whole batches instead of single rows{at}: arrays of shape (batches, "
        "batch size, ...), or a __getitem__ that returns a batch, without .batch()"
    )
    return whole, *general


def _share(shares: CoreShares) -> float:
    return shares.share_of(shares.lost_to_script)


def _may_use_devices(training: Training) -> bool:
    """Without operators it is not known where they ran."""
    devices = {device for rank in training.run.manifest.ranks for device in rank.devices}
    return bool(devices - {"cpu"}) and not training.has_operators


def _users(training: Training, rank: int) -> Iterator[dict[str, Any]]:
    relation = core_users.run(training.run)
    rows = (dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall())
    return (row for row in rows if row["rank"] == rank)


def _pipeline(training: Training, rank: int) -> _Blamed:
    """Threads of MindData: the operation that computes most."""
    loader = _loader(training, rank)
    found = busiest(training, loader) if loader is not None else None
    if found is None:
        return _Blamed("Threads of the input pipeline", _place(loader))
    who = f"Threads of the input pipeline, mostly {found.operation},"
    return _Blamed(who, found.where, found.operation.startswith(_SOURCE_IN_PYTHON))


def _python(training: Training, rank: int) -> _Blamed:
    """Threads that the script has started: the line at which they were seen most often."""
    return _Blamed("Background threads", _seen_most(training, rank, "thread "))


def _children(training: Training, rank: int) -> _Blamed:
    """Processes; of those of torch's data loaders it was seen what they do."""
    seen, loader = _seen_most(training, rank, "data worker "), _loader(training, rank)
    if loader is not None:
        return _Blamed("Data workers", seen or _place(loader))
    started = training.place(STARTED_PROCESS, rank=rank)
    return _Blamed("Processes that the script started", str(started) if started else None)


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
