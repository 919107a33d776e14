"""Collectives run while nothing computes.

## What it is
Ranks exchange gradients (or parameters, or activations) with collectives. Communication that
overlaps computation costs little. While exposed communication runs, nothing computes, and the whole
training waits for the network.

## How it is judged
On devices, communication is exposed while a collective runs and no kernel computes. On the host
(gloo, MPI), it is the part of a step that exchanges gradients after the backward pass, with the
time between the exchanges. With several ranks, only what all of them spend is counted, because the
rest is waiting for the slowest rank, which `slow-rank` reports. The predicted gain is that of the
best of three fixes: overlap the exchange with the backward pass, exchange everything in one call
(each call has its latency), or exchange less often.

Every data-parallel training has some exposed communication, because nothing can overlap the last
gradients. A finding needs a tenth of step time, or a fifth where collectives share the processor
with computation.

## How to fix
Start the exchange while the backward pass runs. DistributedDataParallel does that; a loop over
`dist.all_reduce(p.grad)` after the backward pass does not. Send less: gradients in half precision
(`ddp_bf16_compress_hook`), or accumulated over several batches (`with model.no_sync():`). Compute
more between exchanges: a larger batch for each rank. Send in fewer calls: larger buckets
(`bucket_cap_mb=100`) instead of many small tensors.
"""

from typing import Any

import numpy as np

from strobe.advise.evidence.device_model import DeviceTime, device_times
from strobe.advise.evidence.gradient_exchange import Exchange, typical_exchange
from strobe.advise.finding import CannotTell, Clear, Evidence, Finding, Verdict
from strobe.advise.fixes import fix
from strobe.advise.thresholds import MOST_MEASURED, speedup
from strobe.advise.training import Training
from strobe.analyse.tables.steps import communication, overlap
from strobe.messages import Message, message
from strobe.units import count, percent

NAME = "exposed-communication"

# Nothing can overlap the last gradients of a step, so this much is normal.
SMALLEST_SHARE = 0.1
# On the host, collectives and computation share the same cores, so twice as much is normal.
SMALLEST_SHARE_ON_HOST = 0.2
# Sending half as much saves half of the time.
HALF_SENT_RATIO = 0.5
# If this part of communication overlaps computation, it starts before the backward pass ends.
OVERLAPPED_RATIO = 0.1


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
            message("exposed-communication.no-computation"),
            message("exposed-communication.record-computation"),
        )
    return Clear(message("exposed-communication.none"))


def _on_devices(
    training: Training, times: list[DeviceTime], calls: list[dict[str, Any]]
) -> Verdict:
    total_ns = sum(time.total_ns for time in times)
    waits = _wait_ratios(calls)
    exposed_ns = {time: _without_waits(time, waits) for time in times}
    exposed = sum(exposed_ns.values()) / max(1, total_ns)
    least_ns = sum(time.without_device_work_ns(exposed_ns[time]) for time in times)
    share = 1 - least_ns / max(1, total_ns)
    if share < SMALLEST_SHARE:
        values = {"exposed": percent(exposed), "share": percent(share)}
        return Clear(message("exposed-communication.small-on-device", **values))
    overlaps = _overlaps(training)
    without_ns = sum(
        time.without_device_work_ns(_gain(exposed_ns[time], time.compute_ns, overlaps))
        for time in times
    )
    why = "exposed-communication.why-on-device" if waits else "exposed-communication.why-with-waits"
    return Finding(
        title=message("exposed-communication.title-on-device", exposed=percent(exposed)),
        why=message(why, operation=calls[0]["operation"]),
        share=share,
        expected_speedup=total_ns / max(1, without_ns),
        fixes=_fixes(training, calls[0]["operation"], overlaps),
        evidence=(Evidence(communication.NAME, tuple(calls[:10])),),
        is_certain=bool(waits),
    )


def _gain(exposed_ns: float, compute_ns: float, overlaps: bool) -> float:
    """What is saved by overlapping computation, or by sending half as much."""
    half_ns = HALF_SENT_RATIO * exposed_ns
    return half_ns if overlaps else max(half_ns, min(exposed_ns, compute_ns))


def _overlaps(training: Training) -> bool:
    rows = overlap.run(training.run).fetchall()
    share = overlap.RESULT.column_names.index("overlapped_share")
    return any(row[share] >= OVERLAPPED_RATIO for row in rows)


def _without_waits(time: DeviceTime, waits: dict[int, float]) -> int:
    """Exposed time without waiting for slower ranks."""
    return round(time.communication_ns * (1 - waits.get(time.rank, 0.0)))


def _wait_ratios(calls: list[dict[str, Any]]) -> dict[int, float]:
    """By rank: the part of its collectives that is waiting for slower ranks; empty if unknown."""
    sums: dict[int, tuple[int, int]] = {}
    for call in calls:
        if call["wait_ns"] is not None:
            total, wait = sums.get(call["rank"], (0, 0))
            sums[call["rank"]] = (total + call["total_ns"], wait + call["wait_ns"])
    return {rank: wait / total for rank, (total, wait) in sums.items() if total}


def _calls(training: Training) -> list[dict[str, Any]]:
    """Collectives by operation, group and size; the most exposed first."""
    relation = communication.run(training.run, order_by="exposed_ns")
    return [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]


def _on_host(training: Training, exchange: Exchange) -> Verdict:
    share = min(MOST_MEASURED, exchange.exposed_ns / max(1.0, training.typical_ns))
    if share < SMALLEST_SHARE_ON_HOST:
        return Clear(message("exposed-communication.small-on-host", share=percent(share)))
    steps = training.rows(
        "SELECT rank, step, dur_ns, backward_ns, all_reduce_ns FROM step_times "
        "ORDER BY all_reduce_ns DESC LIMIT 10"
    )
    gains_ns = _gains(training, exchange)
    best = max(gains_ns, key=lambda name: gains_ns[name])
    saved = min(gains_ns[best], exchange.exposed_ns) / max(1.0, training.typical_ns)
    place = training.place("backward")
    fixes = {name: fix(name, training.framework) for name in gains_ns}
    return Finding(
        title=message("exposed-communication.title-on-host", share=percent(share)),
        why=_why_on_host(exchange),
        share=share,
        expected_speedup=speedup(saved, MOST_MEASURED),
        fixes=(fixes[best], *(text for name, text in fixes.items() if name != best)),
        evidence=(Evidence("steps", tuple(steps)),),
        where=str(place) if place else None,
        is_certain=False,
    )


def _why_on_host(exchange: Exchange) -> Message:
    if exchange.calls > 1:
        return message("exposed-communication.why-exchanges", count=count(round(exchange.calls)))
    return message("exposed-communication.why-one-exchange")


def _gains(training: Training, exchange: Exchange) -> dict[str, float]:
    """What each fix saves of a typical step, in nanoseconds."""
    in_sequence = exchange.calls / exchange.sequences
    saved_calls = exchange.calls - exchange.sequences
    backward_ns = float(np.median(training.steps["backward_ns"]))
    at_once_ns = saved_calls * exchange.latency_ns + exchange.between_ns * (1 - 1 / in_sequence)
    less_often_ns = exchange.exposed_ns * max(HALF_SENT_RATIO, 1 - 1 / exchange.sequences)
    if _is_wrapped(training):
        return {"exchange-less-often": less_often_ns}
    overlapped_ns = 0.0 if _overlaps(training) else min(exchange.exposed_ns, backward_ns)
    return {
        "overlap-exchange": overlapped_ns,
        "exchange-at-once": at_once_ns,
        "exchange-less-often": less_often_ns,
    }


def _is_wrapped(training: Training) -> bool:
    """Whether a wrapper of the framework exchanges the gradients. It already overlaps computation
    and sends many gradients in one call."""
    return any(rank.parallel.get("wrappers") for rank in training.run.manifest.ranks)


def _fixes(training: Training, operation: str, overlaps: bool) -> tuple[str, ...]:
    if operation in ("send", "recv", "send_recv"):
        return (message("exposed-communication.more-micro-batches"),)
    if operation == "all_to_all":
        return (
            message("exposed-communication.send-next-batch"),
            message("exposed-communication.send-half-precision"),
        )
    less = tuple(
        fix(name, training.framework) for name in ("exchange-less-often", "exchange-smaller")
    )
    return (
        less
        if overlaps or _is_wrapped(training)
        else (fix("overlap-exchange", training.framework), *less)
    )
