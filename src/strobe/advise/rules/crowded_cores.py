"""Background work of the script uses the cores that training needs.

## What it is
Threads and processes of the script prepare batches, decode, augment or write logs in the
background. Training never waits for them, so their work seems free. But the operators of training
share the cores with them, so each operator takes longer than it would alone.

## How it is judged
For every thread, the kernel counts how long it ran on a core and how long it was ready to run
without one. Training consists of its own thread and those of its framework. The background work is
the threads of an input pipeline, other threads started in Python, and child processes. The cores
that training was missing are attributed to the background work and to other programs in proportion
to what each used. At most what the background work used counts as lost, and other programs compete
for the cores that would become free. If training had enough cores, this is clear, however busy the
cores were. The table `core-users` shows what used them. Programs outside this job are reported by
`busy-machine`.

## How to fix
Do less in the background: vectorize it, use operations that need no Python, and do work that is the
same in every epoch once before training. Cache results in memory or on disk, or give the job more
cores. If a MindSpore source in Python returns single rows, let it return whole batches: arrays of
shape (batches, batch size, ...), or a `__getitem__` that returns a batch, without `.batch()`.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from strobe.advise.data.loader import Loader, loaders
from strobe.advise.data.queue_pipeline import busiest
from strobe.advise.evidence.core_shares import CoreShares, average, core_shares
from strobe.advise.finding import CannotTell, Clear, Evidence, Finding, Verdict
from strobe.advise.fixes import at_line
from strobe.advise.thresholds import MOST_MEASURED, SMALLEST_SHARE_OF_CORES, speedup
from strobe.advise.training import Training
from strobe.analyse.tables.steps import core_users
from strobe.frameworks import of_all
from strobe.messages import Message, message
from strobe.model.journal import CHILD_PROCESSES, DATA_THREADS, PYTHON_THREADS, STARTED_PROCESS
from strobe.units import percent

NAME = "crowded-cores"

_SOURCES_IN_PYTHON = of_all(lambda framework: framework.python_source)
# Any process uses up to this many cores in the background.
FEWEST_CORES = 0.15


class _Work(NamedTuple):
    """The background work that uses the most cores."""

    who: Message
    why: Message
    where: str | None
    makes_rows: bool = False  # a source in Python that returns single rows


def check(training: Training) -> Verdict:
    if training.has_devices or _may_use_devices(training):
        return CannotTell(
            message("crowded-cores.on-device"), message("core-shares.see-device-rules")
        )
    found = [shares for rank in training.ranks if (shares := core_shares(training, rank))]
    if not found:
        return CannotTell(message("core-shares.not-recorded"), message("core-shares.record"))
    worst = max(found, key=_share)
    share = _share(worst)
    values = {"cores": average(worst.of_script), "share": percent(share)}
    if share < SMALLEST_SHARE_OF_CORES or worst.of_script < FEWEST_CORES:
        return Clear(message("crowded-cores.small", **values))
    largest = max(worst.background, key=lambda role: worst.background[role])
    work = _WORK[largest](training, worst)
    return Finding(
        title=message("crowded-cores.title", who=work.who, **values),
        why=work.why,
        share=share,
        expected_speedup=speedup(share, MOST_MEASURED),
        fixes=_fixes(work),
        evidence=(Evidence(core_users.NAME, tuple(_users(training, worst.rank))),),
        where=work.where,
        is_certain=False,
    )


def _fixes(work: _Work) -> tuple[Message, ...]:
    at = at_line(work.where)
    general = (
        message("crowded-cores.do-less", at=at),
        message("crowded-cores.cache"),
        message("crowded-cores.more-cores"),
    )
    if not work.makes_rows:
        return general
    return message("crowded-cores.whole-batches", at=at), *general


def _share(shares: CoreShares) -> float:
    return shares.share_of(shares.lost_to_script)


def _may_use_devices(training: Training) -> bool:
    """Whether a rank has a device, and no operators show where they ran."""
    devices = {device for rank in training.run.manifest.ranks for device in rank.devices}
    return bool(devices - {"cpu"}) and not training.has_operators


def _users(training: Training, rank: int) -> Iterator[dict[str, Any]]:
    relation = core_users.run(training.run)
    rows = (dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall())
    return (row for row in rows if row["rank"] == rank)


def _pipeline(training: Training, shares: CoreShares) -> _Work:
    """Threads of a data pipeline, with the operation that computes most."""
    loader = _loader(training, shares.rank)
    who = message("crowded-cores.pipeline")
    found = busiest(training, loader) if loader is not None else None
    if found is None:
        return _of_loader(who, shares, loader)
    why = message(
        "crowded-cores.busiest-operation",
        measured=shares.measured,
        operation=found.operation,
        at=at_line(found.where),
    )
    return _Work(who, why, found.where, found.operation.startswith(_SOURCES_IN_PYTHON))


def _python(training: Training, shares: CoreShares) -> _Work:
    """Threads that the script started, with the line at which they were sampled most often."""
    line = _most_sampled(training, shares.rank, "thread ")
    return _sampled(message("crowded-cores.threads"), shares, line)


def _children(training: Training, shares: CoreShares) -> _Work:
    """Child processes. The workers of data loaders were sampled."""
    loader = _loader(training, shares.rank)
    if loader is None:
        return _started(training, shares)
    who = message("crowded-cores.workers")
    line = _most_sampled(training, shares.rank, "data worker ")
    return _sampled(who, shares, line) if line else _of_loader(who, shares, loader)


def _sampled(who: Message, shares: CoreShares, line: str | None) -> _Work:
    measured = shares.measured
    why = message("crowded-cores.sampled-at", measured=measured, line=line) if line else measured
    return _Work(who, why, line)


def _of_loader(who: Message, shares: CoreShares, loader: Loader | None) -> _Work:
    line = str(loader.line) if loader is not None and loader.line else None
    measured = shares.measured
    why = message("crowded-cores.loader-at", measured=measured, line=line) if line else measured
    return _Work(who, why, line)


def _started(training: Training, shares: CoreShares) -> _Work:
    place = training.place(STARTED_PROCESS, rank=shares.rank)
    line = str(place) if place else None
    measured = shares.measured
    why = message("crowded-cores.started-at", measured=measured, line=line) if line else measured
    return _Work(message("crowded-cores.processes"), why, line)


def _most_sampled(training: Training, rank: int, threads: str) -> str | None:
    """The user's line at which threads with this prefix of their names were sampled most often."""
    rows = training.rows(
        """
        SELECT place FROM samples
        WHERE rank = $rank AND starts_with(thread, $threads) AND place IS NOT NULL
        GROUP BY place ORDER BY count(*) DESC, place LIMIT 1
        """,
        {"rank": rank, "threads": threads},
    )
    return str(rows[0]["place"]) if rows else None


_WORK = {DATA_THREADS: _pipeline, PYTHON_THREADS: _python, CHILD_PROCESSES: _children}


def _loader(training: Training, rank: int) -> Loader | None:
    return next((loader for loader in loaders(training) if loader.rank == rank), None)
