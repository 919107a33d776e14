"""More threads compute than there are cores for them.

## What it is
torch splits an operator among threads and waits for the last of them. With more threads than cores
they take turns: each is stopped in the middle of its share while all others wait for it. It comes
of `torch.set_num_threads` or `OMP_NUM_THREADS` set for another machine, of a container that may
use fewer cores than the machine has, or of several ranks on one machine that each take all its
cores.

## How it is judged
The threads that torch may use, of all ranks on a machine, are compared with the cores they may
use. One and a half times as many, with the cores kept busy and threads that are stopped against
their will more than 50 times a second each core, is the fault. It costs the time in which the
training thread is ready to run and threads of its own process use the cores. Where that was not
recorded, it is a rough guess by the number of threads for each core.

## How to fix
`torch.set_num_threads(n)` or `OMP_NUM_THREADS=n`, with n the cores divided by the ranks that share
them.
"""

from collections import defaultdict
from typing import NamedTuple

import numpy as np

from strobe.advise.finding import CannotTell, Clear, Evidence, Finding, Verdict
from strobe.advise.training import Training
from strobe.units import count, percent

NAME = "thread-oversubscription"

# Up to this many threads for a core, waiting for the last is hidden in the noise.
OVERSUBSCRIBED_RATIO = 1.5
# Cores less busy than this, by whomever, have room for the threads there are.
BUSY_RATIO = 0.7
# Stopped so often a second for each core, threads compete; others on the machine alone make less.
FORCED_SWITCHES_HZ = 50
# What part of a step it costs where the waiting for a core is not recorded, by threads for each
# core: (threads for a core, share of the step).
COSTS = ((1.5, 0.1), (2.0, 0.2), (4.0, 0.35), (8.0, 0.5))


# Measured with an MLP and two convolutional networks, 4 to 24 threads on 2 cores: the gain is 0.8
# to 1.3 times what the waiting for a core predicts; once 3 times, with 24 threads.
LEAST_RATIO, MOST_RATIO = 0.8, 1.3
# More is not believed.
MOST_SHARE = 0.95


class Machine(NamedTuple):
    host: str
    ranks: int
    threads: int  # that torch may use, all ranks together
    cores: float  # that they may use
    busy_cores: float  # by whomever
    forced_hz: float  # all ranks together


def check(training: Training) -> Verdict:
    found = machines(training)
    if not found and training.frameworks and "torch" not in training.frameworks:
        return CannotTell(
            "how many threads compute is known of torch alone",
            "if several processes share the machine, give each its own cores: taskset -c 0-3",
        )
    if not found:
        return CannotTell(
            "how many threads torch may use was not recorded",
            "record it again with this version: strobe run train.py",
        )
    worst = max(found, key=lambda one: one.threads / one.cores)
    ratio = worst.threads / worst.cores
    told = f"{worst.threads} threads for {worst.cores:g} cores"
    if ratio < OVERSUBSCRIBED_RATIO:
        return Clear(told)
    if worst.busy_cores < BUSY_RATIO * worst.cores:
        return Clear(f"{told}, but only {worst.busy_cores:.1f} of them are busy")
    if worst.forced_hz < FORCED_SWITCHES_HZ * worst.cores:
        return Clear(f"{told}, but they are seldom stopped: {worst.forced_hz:.0f} times a second")
    share = _waiting_share(training) or _share(ratio)
    each = max(1, int(worst.cores) // worst.ranks)
    of_ranks = f" of {worst.ranks} ranks" if worst.ranks > 1 else ""
    return Finding(
        title=f"{told}{of_ranks} on {worst.host}: they are stopped "
        f"{count(round(worst.forced_hz))} times a second, about {percent(share)} of step time",
        share=share,
        expected_speedup=1 / (1 - share),
        speedup_range=(max(1.0, LEAST_RATIO / (1 - share)), MOST_RATIO / (1 - share)),
        fixes=(
            f"torch.set_num_threads({each}) before the training loop",
            f"or OMP_NUM_THREADS={each} in the environment",
        ),
        evidence=(Evidence("counters", tuple(_rows(training))),),
        is_certain=False,
    )


def _waiting_share(training: Training) -> float:
    """Of step time, in which training waits for a core that no other process uses."""
    waiting_ns = float(training.no_core_ns.sum())
    for rank in training.ranks:
        mine = training.steps["rank"] == rank
        begins = training.steps["ts_ns"][mine]
        ends = begins + training.steps["dur_ns"][mine]
        waiting_ns -= float(training.others_between(rank, begins, ends).sum())
    return min(MOST_SHARE, max(0.0, waiting_ns) / max(1, training.total_ns))


def _share(ratio: float) -> float:
    """Between the points guessed, and beyond them, on straight lines."""
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
            host or "this machine",
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
