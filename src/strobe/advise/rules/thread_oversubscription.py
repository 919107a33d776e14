"""PyTorch computes with more threads than there are cores for them.

## What it is
PyTorch splits an operator among threads and waits for the last of them. If there are more threads
than cores, the threads take turns, and one that is preempted in the middle of its part makes all
others wait. Common reasons are `torch.set_num_threads` or `OMP_NUM_THREADS` set for another
machine, a container that may use fewer cores than the machine has, or several ranks on one machine
that each use all of its cores.

## How it is judged
The number of threads that PyTorch may use, in all ranks on a machine, is compared with the cores
that they may use. A finding needs at least 1.5 threads per core, busy cores, and threads that the
operating system preempts more than 50 times per second and core. The cost is the time in which the
training thread is ready to run while threads of its own process use the cores. If that was not
recorded, the cost is a rough guess from the number of threads per core.

## How to fix
Call `torch.set_num_threads(n)` or set `OMP_NUM_THREADS=n`, where n is the number of cores divided
by the number of ranks that share them.
"""

from collections import defaultdict
from typing import NamedTuple

import numpy as np

from strobe.advise.evidence.core_shares import available, average
from strobe.advise.finding import CannotTell, Clear, Evidence, Finding, Verdict
from strobe.advise.fixes import fix
from strobe.advise.thresholds import MOST_ESTIMATED, speedup
from strobe.advise.training import Training
from strobe.messages import Message, message
from strobe.units import count, percent

NAME = "thread-oversubscription"

# With fewer threads per core, waiting for the last thread is lost in the noise.
OVERSUBSCRIBED_RATIO = 1.5
# Cores that are less busy than this have room for all threads.
BUSY_RATIO = 0.7
# Threads that are preempted this often per second and core compete with each other. Other programs
# on the machine alone cause less.
FORCED_SWITCHES_HZ = 50
# The cost if waiting for a core was not recorded: (threads per core, share of step time).
COSTS = ((1.5, 0.1), (2.0, 0.2), (4.0, 0.35), (8.0, 0.5))
# Measured with an MLP and two convolutional networks, 4 to 24 threads on 2 cores: the gain is 0.8
# to 1.3 times what the waiting for a core predicts. Once, with 24 threads, it was 3 times.
LEAST_RATIO, MOST_RATIO = 0.8, 1.3


class Machine(NamedTuple):
    host: str
    ranks: int
    threads: int  # that the framework may use, in all ranks
    cores: float  # that they may use
    busy_cores: float  # used by any process
    forced_hz: float  # preemptions per second, in all ranks


def check(training: Training) -> Verdict:
    found = machines(training)
    if not found and not training.may_have(lambda framework: framework.counts_threads):
        return CannotTell(
            message("thread-oversubscription.only-torch"),
            message("thread-oversubscription.own-cores"),
        )
    if not found:
        return CannotTell(
            message("thread-oversubscription.not-recorded"),
            message("thread-oversubscription.record"),
        )
    worst = max(found, key=lambda one: one.threads / one.cores)
    ratio = worst.threads / worst.cores
    if clear := _harmless(worst, ratio):
        return Clear(clear)
    share = _waiting_share(training) or _guessed_share(ratio)
    each = count(max(1, int(worst.cores) // worst.ranks))
    return Finding(
        title=message(
            "thread-oversubscription.title",
            threads=count(worst.threads),
            cores=available(worst.cores),
            share=percent(share),
        ),
        why=_why(worst),
        share=share,
        expected_speedup=speedup(share),
        speedup_range=(max(1.0, LEAST_RATIO / (1 - share)), MOST_RATIO / (1 - share)),
        fixes=(
            fix("set-threads", training.framework, threads=each),
            message("thread-oversubscription.set-variable", threads=each),
        ),
        evidence=(Evidence("counters", tuple(_rows(training))),),
        is_certain=False,
    )


def _harmless(machine: Machine, ratio: float) -> Message | None:
    """Why the threads of this machine do not compete for cores; None if they do."""
    threads, cores = threads_text(machine.threads), available(machine.cores)
    if ratio < OVERSUBSCRIBED_RATIO:
        return message("thread-oversubscription.fits", threads=threads, cores=cores)
    if machine.busy_cores < BUSY_RATIO * machine.cores:
        busy = average(machine.busy_cores)
        return message("thread-oversubscription.not-busy", threads=threads, cores=cores, busy=busy)
    if machine.forced_hz < FORCED_SWITCHES_HZ * machine.cores:
        return message(
            "thread-oversubscription.rarely-preempted",
            threads=threads,
            cores=cores,
            times=count(round(machine.forced_hz)),
        )
    return None


def _why(machine: Machine) -> Message:
    values = {"host": machine.host, "times": count(round(machine.forced_hz))}
    if machine.ranks == 1:
        return message("thread-oversubscription.why", **values)
    ranks = count(machine.ranks)
    return message("thread-oversubscription.why-of-ranks", ranks=ranks, **values)


def threads_text(number: int) -> Message:
    """1 thread; 8 threads."""
    if number == 1:
        return message("thread-oversubscription.one-thread")
    return message("thread-oversubscription.threads", count=count(number))


def _waiting_share(training: Training) -> float:
    """The share of step time in which training waits for a core that no other process uses."""
    waiting_ns = float(training.no_core_ns.sum())
    for rank in training.ranks:
        mine = training.steps["rank"] == rank
        begins = training.steps["ts_ns"][mine]
        ends = begins + training.steps["dur_ns"][mine]
        waiting_ns -= float(training.others_between(rank, begins, ends).sum())
    return min(MOST_ESTIMATED, max(0.0, waiting_ns) / max(1, training.total_ns))


def _guessed_share(ratio: float) -> float:
    """Interpolated between the points of COSTS, and constant beyond them."""
    at = [threads for threads, _ in COSTS]
    costs = [share for _, share in COSTS]
    return float(np.interp(ratio, at, costs))


def machines(training: Training) -> list[Machine]:
    rows = training.rows("""
        SELECT c.rank,
               max(value) FILTER (name = 'intra_op_threads') AS threads,
               max(value) FILTER (name = 'cores_usable_milli') / 1000 AS cores,
               avg(value) FILTER (name = 'cores_busy_milli') / 1000 AS busy_cores,
               max(value) FILTER (name = 'process_cpu_ns_total')
                   - min(value) FILTER (name = 'process_cpu_ns_total') AS cpu_ns,
               max(value) FILTER (name = 'context_switches_forced_total')
                   - min(value) FILTER (name = 'context_switches_forced_total') AS forced,
               max(ts_ns) FILTER (name = 'process_cpu_ns_total')
                   - min(ts_ns) FILTER (name = 'process_cpu_ns_total') AS dur_ns
        FROM counters c GROUP BY c.rank
    """)
    hosts = {rank.rank: rank.host for rank in training.run.manifest.ranks}
    by_host = defaultdict(list)
    for row in rows:
        if row["threads"] and row["cores"] and row["dur_ns"]:
            by_host[hosts.get(row["rank"], "")].append(row)
    return [
        Machine(
            host or message("thread-oversubscription.this-machine"),
            len(mine),
            int(sum(row["threads"] for row in mine)),
            max(row["cores"] for row in mine),
            max(
                max(row["busy_cores"] or 0 for row in mine),
                sum(row["cpu_ns"] / row["dur_ns"] for row in mine),
            ),
            sum((row["forced"] or 0) / row["dur_ns"] * 1e9 for row in mine),
        )
        for host, mine in by_host.items()
    ]


def _rows(training: Training) -> list[dict[str, object]]:
    return training.rows("""
        SELECT rank, name, max(value) AS value FROM counters
        WHERE name IN ('intra_op_threads', 'cores_usable_milli', 'context_switches_forced_total')
        GROUP BY ALL ORDER BY rank, name
    """)
