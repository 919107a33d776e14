"""Collectives that run while nothing is computed.

## What it is
Ranks exchange gradients (or parameters, or activations) with collectives. Behind computation they
cost little; in the open the whole training waits for the network.

## How it is judged
On devices: time in which a collective runs and no kernel computes. On the host (gloo, MPI): the
part of a step that exchanges gradients after the backward pass has ended, with what lies between
the exchanges. With several ranks only what all of them spend is counted, since the rest is waiting
for the slowest: that is `slow-rank`. The gain is that of the best of three ways out: behind the
backward pass, in one call instead of many (each costs its latency), less often.

Something of it is in every data-parallel training, because the last gradients can hide behind
nothing: so less than a tenth of step time is no finding, nor less than a fifth where collectives
share the processor with computation.

## How to fix
Let the exchange begin while the backward pass runs: DistributedDataParallel does, a loop over
`dist.all_reduce(p.grad)` after it does not. Send less: gradients in half precision
(`ddp_bf16_compress_hook`), or accumulated over several batches (`with model.no_sync():`). Compute
more between exchanges: a larger batch for each rank. Send at once: larger buckets
(`bucket_cap_mb=100`) instead of many small tensors.
"""

from typing import Any

import numpy as np

from strobe.advise.evidence.device_model import DeviceTime, device_times
from strobe.advise.evidence.gradient_exchange import Exchange, typical_exchange
from strobe.advise.finding import CannotTell, Clear, Evidence, Finding, Verdict
from strobe.advise.fixes import fix
from strobe.advise.training import Training
from strobe.analyse.tables.steps import communication, overlap
from strobe.units import percent

NAME = "exposed-communication"

# The last gradients of a step can hide behind nothing: this much is ordinary.
WORTH_TELLING_RATIO = 0.1
# On the host, collectives and computation take turns on the same cores: twice as much is ordinary.
WORTH_TELLING_ON_HOST_RATIO = 0.2


# Of communication that already overlaps computation, half is what sending half as much leaves.
SENT_HALF_RATIO = 0.5
# Communication that overlaps computation by this much was begun before the computation's end.
OVERLAPS_RATIO = 0.1


def check(training: Training) -> Verdict:
    times = device_times(training)
    calls = _calls(training)
    if times and any(call["device"] != "cpu" for call in calls):
        return _on_devices(training, times, calls)
    exchange = typical_exchange(training)
    if exchange and all(call["device"] == "cpu" for call in calls):
        return _on_host(training, exchange)
    if calls:
        return CannotTell(
            "collectives were recorded, but no computation that they could hide behind",
            "record kernels and operators beside them",
        )
    return Clear("no collective ran")


def _on_devices(
    training: Training, times: list[DeviceTime], calls: list[dict[str, Any]]
) -> Verdict:
    total_ns = sum(time.total_ns for time in times)
    waits = _waited(calls)
    exposed_ns = {time: _own_part(time, waits) for time in times}
    seen = sum(exposed_ns.values()) / max(1, total_ns)
    least_ns = sum(time.without_device_work_ns(exposed_ns[time]) for time in times)
    share = 1 - least_ns / max(1, total_ns)
    if share < WORTH_TELLING_RATIO:
        return Clear(f"exposed communication is {percent(seen)} of step time, and costs "
                     f"{percent(share)}")  # fmt: skip
    overlaps = _overlaps(training)
    without_ns = sum(
        time.without_device_work_ns(_gain(exposed_ns[time], time.compute_ns, overlaps))
        for time in times
    )
    with_waits = "" if waits else ", waiting for other ranks included"
    return Finding(
        title=f"collectives run {percent(seen)} of step time while nothing computes"
        f"{with_waits}, most of it {calls[0]['operation']}",
        share=share,
        expected_speedup=total_ns / max(1, without_ns),
        fixes=_fixes(training, calls[0]["operation"], overlaps),
        evidence=(Evidence(communication.NAME, tuple(calls[:10])),),
        is_certain=bool(waits),
    )


def _gain(exposed_ns: float, behind_ns: float, overlaps: bool) -> float:
    """What of it can go: hidden behind the backward pass, or by sending half as much."""
    half_ns = SENT_HALF_RATIO * exposed_ns
    return half_ns if overlaps else max(half_ns, min(exposed_ns, behind_ns))


def _overlaps(training: Training) -> bool:
    rows = overlap.run(training.run).fetchall()
    share = overlap.RESULT.column_names.index("overlapped_share")
    return any(row[share] >= OVERLAPS_RATIO for row in rows)


def _own_part(time: DeviceTime, waits: dict[int, float]) -> int:
    """Exposed time, less the part of it that other ranks' lateness explains."""
    return round(time.communication_ns * (1 - waits.get(time.rank, 0.0)))


def _waited(calls: list[dict[str, Any]]) -> dict[int, float]:
    """By rank: which part of its collectives is waiting for slower ranks; empty if unknown."""
    sums: dict[int, tuple[int, int]] = {}
    for call in calls:
        if call["wait_ns"] is not None:
            total, wait = sums.get(call["rank"], (0, 0))
            sums[call["rank"]] = (total + call["total_ns"], wait + call["wait_ns"])
    return {rank: wait / total for rank, (total, wait) in sums.items() if total}


def _calls(training: Training) -> list[dict[str, Any]]:
    """Collectives by operation, group and size; those with most time in the open first."""
    relation = communication.run(training.run, order_by="exposed_ns")
    return [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]


def _on_host(training: Training, exchange: Exchange) -> Verdict:
    share = min(0.99, exchange.exposed_ns / max(1.0, training.typical_ns))
    if share < WORTH_TELLING_ON_HOST_RATIO:
        return Clear(f"exchanging gradients outlasts the backward pass by {percent(share)} of "
                     "step time")  # fmt: skip
    steps = training.rows(
        "SELECT rank, step, dur_ns, backward_ns, all_reduce_ns FROM step_times "
        "ORDER BY all_reduce_ns DESC LIMIT 10"
    )
    gains_ns = _gains(training, exchange)
    best = max(gains_ns, key=lambda way: gains_ns[way])
    saved = min(gains_ns[best], exchange.exposed_ns) / max(1.0, training.typical_ns)
    place = training.place("backward")
    often = f", {exchange.calls:,.0f} times a step," if exchange.calls > 1 else ""
    ways = {way: fix(_WAYS[way], training.framework) for way in gains_ns}
    return Finding(
        title=f"exchanging gradients{often} takes {percent(share)} of step time while nothing "
        "computes",
        share=share,
        expected_speedup=1 / (1 - min(0.99, saved)),
        fixes=(ways[best], *(fix for way, fix in ways.items() if way != best)),
        evidence=(Evidence("steps", tuple(steps)),),
        where=str(place) if place else None,
        is_certain=False,
    )


def _gains(training: Training, exchange: Exchange) -> dict[str, float]:
    """What each way out saves of a typical step, in nanoseconds."""
    in_sequence = exchange.calls / exchange.sequences
    saved_calls = exchange.calls - exchange.sequences
    backward_ns = float(np.median(training.steps["backward_ns"]))
    hides_ns = 0.0 if _overlaps(training) else min(exchange.exposed_ns, backward_ns)
    less_often = exchange.exposed_ns * max(SENT_HALF_RATIO, 1 - 1 / exchange.sequences)
    if _is_wrapped(training):
        return {"less often": less_often}
    return {
        "overlap": hides_ns,
        "at once": saved_calls * exchange.latency_ns + exchange.between_ns * (1 - 1 / in_sequence),
        "less often": less_often,
    }


def _is_wrapped(training: Training) -> bool:
    """Whether a wrapper of the framework exchanges gradients: it overlaps them and puts them
    together as well as it can."""
    return any(rank.parallel.get("wrappers") for rank in training.run.manifest.ranks)


_WAYS = {
    "overlap": "overlap-exchange",
    "at once": "exchange-at-once",
    "less often": "exchange-less-often",
}


def _fixes(training: Training, operation: str, overlaps: bool) -> tuple[str, ...]:
    if operation in ("send", "recv", "send_recv"):
        return ("more micro-batches for each step: the stages of the pipeline wait less",)
    if operation == "all_to_all":
        return ("send the tokens or embeddings of the next batch while this one is computed",
                "send less: half precision")  # fmt: skip
    less = tuple(
        fix(name, training.framework) for name in ("exchange-less-often", "exchange-smaller")
    )
    return (
        less
        if overlaps or _is_wrapped(training)
        else (fix("overlap-exchange", training.framework), *less)
    )
