"""The host waits for the device inside steps, so that the device runs dry.

## What it is
The host launches work ahead of the device. Some calls make it wait until the device has finished
everything: `loss.item()`, `print(loss)`, `tensor.cpu()`, `nonzero()`, `if (x > 0).any()`,
`torch.cuda.synchronize()`, and copies from or to memory that is not pinned. While it waits it
launches nothing; when the device is done, it idles until the host has launched again.

## How it is judged
Waits are calls that say so (`cudaStreamSynchronize`, ...), and the calls that copy from or to
pageable memory of the host. Without them the host runs ahead and a step lasts as long as the
slower of the two needs: the host its step less the waits, the device its work and the gaps that
are its own. The difference to what the step takes now is the cost. A wait during which the device
is busy, and after which it does not starve, costs nothing.

## How to fix
Keep losses and metrics on the device (`total += loss.detach()`) and read them every hundred steps;
log from a copy made with `non_blocking=True`. Load batches with `pin_memory=True` and move them
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
from strobe.advise.training import Training
from strobe.units import percent

NAME = "host-sync"

# Below this share the gain is lost in run-to-run noise.
WORTH_TELLING_RATIO = 0.05

# Waits whose place is looked up, longest first: they hold nearly all of the time.
_LOOKED_AT = 500


def check(training: Training) -> Verdict:
    times = device_times(training)
    if not times:
        return no_device(training)
    total_ns = sum(time.total_ns for time in times)
    cost_ns = sum(cost(time) for time in times)
    share = cost_ns / max(1, total_ns)
    waited = sum(time.host_wait_ns for time in times) / max(1, total_ns)
    if share < WORTH_TELLING_RATIO:
        return Clear(f"the host waits for the device {percent(waited)} of step time, which costs "
                     f"{percent(share)}")  # fmt: skip
    places = _places(training)
    worst, waits = places[0]
    part = sum(wait["dur_ns"] for wait in waits) / max(1, sum(
        wait["dur_ns"] for _, of_place in places for wait in of_place))  # fmt: skip
    return Finding(
        title=f"the host waits for the device {percent(waited)} of step time{_at(worst, part)}; "
        f"without that, steps would be {percent(share)} shorter",
        share=share,
        expected_speedup=total_ns / (total_ns - cost_ns),
        fixes=_fixes(training.framework, worst, waits),
        evidence=(Evidence("events", tuple(waits[:10])),),
        where=worst.where,
        is_certain=sum(time.steps for time in times) > len(times),
    )


def _at(place: Origin, part: float) -> str:
    if place == Origin():
        return ""
    return f" at {place}" if part > 0.95 else f", {percent(part)} of it at {place}"


def cost(time: DeviceTime) -> int:
    return time.total_ns - time.without_host_waits_ns()


def _places(training: Training) -> list[tuple[Origin, list[dict[str, Any]]]]:
    """Waits by the place they come from, the place with most time first."""
    waits = training.rows(f"""
        SELECT id, rank, step, ts_ns, end_ns - ts_ns AS dur_ns, name, direction
        FROM ({HOST_WAITS_IN_STEPS}) ORDER BY dur_ns DESC, id LIMIT {_LOOKED_AT}
    """)
    known = origins(training, [wait["id"] for wait in waits])
    grouped: dict[Origin, list[dict[str, Any]]] = {}
    for wait in waits:
        grouped.setdefault(known.get(wait["id"], Origin()), []).append(wait)
    return sorted(grouped.items(), key=lambda place: -sum(w["dur_ns"] for w in place[1]))


def _fixes(framework: str, place: Origin, waits: list[dict[str, Any]]) -> tuple[str, ...]:
    at = f" at {place.line}" if place.line else ""
    if waits[0]["direction"] == "host to device":
        return (
            fix("copy-from-pinned", framework, at),
            "or prefetch the next batch to the device on a stream of its own",
        )
    return (fix("read-values-rarely", framework, at), fix("select-on-device", framework))
