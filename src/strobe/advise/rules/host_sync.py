"""The host waits for the device inside steps, and the device runs out of work.

## What it is
The host launches work ahead of the device. Some calls wait until the device has finished all of it:
`loss.item()`, `print(loss)`, `tensor.cpu()`, `nonzero()`, `if (x > 0).any()`,
`torch.cuda.synchronize()`, and copies from or to memory that is not pinned. While the host waits,
it launches nothing. When the device is done, it is idle until the host has launched again.

## How it is judged
Strobe counts synchronizing calls (`cudaStreamSynchronize`, ...), and calls that copy from or to
pageable memory of the host. Without them the host runs ahead, and a step lasts as long as the
slower of the two needs: the host needs the step without its waits, the device needs its work and
the gaps that are its own. The cost is what the step takes longer now. A wait costs nothing if the
device is busy meanwhile and has enough work afterwards. A finding needs 5% of step time.

## How to fix
Keep losses and metrics on the device (`total += loss.detach()`) and read them every hundred steps.
Log from a copy made with `non_blocking=True`. Load batches with `pin_memory=True` and move them
with `.to(device, non_blocking=True)`. Replace `nonzero` and boolean indexing by `torch.where`.
"""

from typing import Any

from strobe.advise.evidence.device_model import (
    HOST_WAITS_IN_STEPS,
    DeviceTime,
    device_times,
    no_device,
)
from strobe.advise.evidence.event_origin import Origin, origins
from strobe.advise.finding import Clear, Evidence, Finding, Verdict
from strobe.advise.fixes import fix
from strobe.advise.thresholds import SMALLEST_SHARE
from strobe.advise.training import Training
from strobe.frameworks import Framework
from strobe.messages import Message, message
from strobe.units import percent

NAME = "host-sync"


# The longest waits, which have nearly all of the time: only their places are looked up.
_MOST_WAITS = 500
# From this part of the waiting on, one place counts as the only one.
_ONE_PLACE_RATIO = 0.95


def check(training: Training) -> Verdict:
    times = device_times(training)
    if not times:
        return no_device(training)
    total_ns = sum(time.total_ns for time in times)
    cost_ns = sum(cost(time) for time in times)
    share = cost_ns / max(1, total_ns)
    waited = sum(time.host_wait_ns for time in times) / max(1, total_ns)
    if share < SMALLEST_SHARE:
        values = {"waited": percent(waited), "share": percent(share)}
        return Clear(message("host-sync.small", **values))
    places = _places(training)
    worst, waits = places[0]
    part = sum(wait["dur_ns"] for wait in waits) / max(1, sum(
        wait["dur_ns"] for _, of_place in places for wait in of_place))  # fmt: skip
    return Finding(
        title=message("host-sync.title", share=percent(share)),
        why=_why(waited, worst, part),
        share=share,
        expected_speedup=total_ns / (total_ns - cost_ns),
        fixes=_fixes(training.framework, worst, waits),
        evidence=(Evidence("events", tuple(waits[:10])),),
        where=worst.where,
        is_certain=sum(time.steps for time in times) > len(times),
    )


def _why(waited: float, place: Origin, part: float) -> Message:
    """`part` of the waiting is at this place."""
    if place == Origin():
        return message("host-sync.why", waited=percent(waited))
    if part > _ONE_PLACE_RATIO:
        return message("host-sync.why-place", waited=percent(waited), place=place)
    return message("host-sync.why-part", waited=percent(waited), part=percent(part), place=place)


def cost(time: DeviceTime) -> int:
    """What the steps take longer because the host waits for the device."""
    return time.total_ns - time.without_host_waits_ns()


def _places(training: Training) -> list[tuple[Origin, list[dict[str, Any]]]]:
    """The waits by their place, the place with the most time first."""
    waits = training.rows(f"""
        SELECT id, rank, step, ts_ns, end_ns - ts_ns AS dur_ns, name, direction
        FROM ({HOST_WAITS_IN_STEPS}) ORDER BY dur_ns DESC, id LIMIT {_MOST_WAITS}
    """)
    known = origins(training, [wait["id"] for wait in waits])
    grouped: dict[Origin, list[dict[str, Any]]] = {}
    for wait in waits:
        grouped.setdefault(known.get(wait["id"], Origin()), []).append(wait)
    return sorted(grouped.items(), key=lambda place: -sum(w["dur_ns"] for w in place[1]))


def _fixes(framework: Framework, place: Origin, waits: list[dict[str, Any]]) -> tuple[str, ...]:
    line = str(place.line) if place.line else None
    if waits[0]["direction"] == "host to device":
        return (fix("copy-from-pinned", framework, line), message("host-sync.prefetch-batch"))
    return (fix("read-values-rarely", framework, line), fix("select-on-device", framework))
