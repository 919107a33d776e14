"""How a step exchanges gradients on the host: how often, for how long, and the time between."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from strobe.advise.training import Training
from strobe.analyse.tables.steps import communication

# A collective of up to this size takes as long as an empty one: its data takes microseconds.
SMALL_BYTES = 65_536

# Phases that belong to the exchange if they are between two calls: dividing by the number of ranks,
# starting the next call.
_BETWEEN = ("update", "rest")

# This many steps are enough to find a typical one.
_MOST_STEPS = 20_000


@dataclass(frozen=True)
class Exchange:
    """Of a typical step, without waiting for other ranks; times in nanoseconds."""

    exposed_ns: float  # from the first to the last exchange of each sequence
    between_ns: float  # of that, the time between the exchanges
    calls: float
    sequences: float  # of exchanges with no forward or backward pass between them
    latency_ns: float  # of a call that sends very little


def typical_exchange(training: Training) -> Exchange | None:
    """None if no step exchanges gradients."""
    if not training.steps["all_reduce_ns"].any():
        return None
    by_step: dict[int, list[tuple[float, float, int, int]]] = {}
    lengths: list[int] = []
    for step, phases in _steps(training):
        exposed, between, calls, sequences = _of_step(phases)
        by_step.setdefault(step, []).append((exposed, between, calls, sequences))
        lengths += [ns for name, ns in phases if name == "all_reduce"]
    # The rank that spends least does not wait for others.
    least = [min(ranks) for ranks in by_step.values()]
    if not lengths or not any(row[0] for row in least):
        return None
    exposed, between, calls, sequences = np.median(np.array(least, dtype=float), axis=0).tolist()
    return Exchange(exposed, between, calls, sequences, _latency(training, lengths))


def _latency(training: Training, lengths: list[int]) -> float:
    """The mean small call on the rank that waits least, or else a short call of any size."""
    found = communication.run(training.run)
    calls = [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]
    small: dict[int, list[int]] = {}
    for call in calls:
        if call["size_bytes"] and call["size_bytes"] <= SMALL_BYTES:
            total = small.setdefault(call["rank"], [0, 0])
            total[0] += call["total_ns"]
            total[1] += call["calls"]
    means = [ns / count for ns, count in small.values()]
    return min(means) if means else float(np.quantile(lengths, 0.25))


def _steps(training: Training) -> Iterator[tuple[int, list[tuple[str, int]]]]:
    """The phases of each step judged, in order; of very many steps, every nth."""
    apart = 1 + len(np.unique(training.steps["step"])) // _MOST_STEPS
    rows = training.run.sql(f"""
        SELECT rank, step, list((name, dur_ns) ORDER BY ts_ns, dur_ns) FROM outline
        WHERE kind = 'phase' AND step % {apart} = 0 GROUP BY rank, step ORDER BY rank, step
    """).fetchall()
    for rank, step, phases in rows:
        if training.judges(rank, step):
            yield step, phases


def _of_step(phases: list[tuple[str, int]]) -> tuple[float, float, int, int]:
    exposed = between = waiting = 0
    calls = sequences = 0
    is_open = False
    for name, ns in phases:
        if name == "all_reduce":
            exposed += ns + (waiting if is_open else 0)
            between += waiting if is_open else 0
            sequences += not is_open
            calls += 1
            is_open, waiting = True, 0
        elif name in _BETWEEN:
            waiting += ns
        else:
            is_open, waiting = False, 0
    return exposed, between, calls, sequences
