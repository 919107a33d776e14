"""Copies between host and device that the device waits for.

## What it is
Batches go from the host's memory to the device's. From ordinary (pageable) memory the driver copies
twice and at a fraction of the speed, and nothing overlaps; from pinned memory the device fetches
them by itself while it computes on the batch before.

## How it is judged
Time in which a copy from or to the host runs and nothing computes or communicates, in the steps
judged. Without it, the step is as long as host and rest of the device need.

## How to fix
`DataLoader(..., pin_memory=True)` and `batch.to(device, non_blocking=True)`. Copy the next batch on
a stream of its own while this one is computed. Send less: uint8 images that are converted on the
device, token numbers instead of one-hot rows.
"""

from typing import Any

from strobe.advise.evidence.device_model import device_times, no_device
from strobe.advise.evidence.event_origin import Origin, origins
from strobe.advise.finding import Clear, Evidence, Finding, Verdict
from strobe.advise.fixes import fix
from strobe.advise.training import Training
from strobe.analyse.intervals import hidden
from strobe.units import percent, rate, size

NAME = "slow-transfer"

# Below this share the gain is lost in run-to-run noise.
WORTH_TELLING_RATIO = 0.05

_OTHER_WORK = """
    SELECT rank, device, ts_ns, end_ns FROM device_work WHERE part IN ('compute', 'communication')
"""
_COPIES = """
    SELECT w.rank, w.device, w.id, w.launcher_id, s.step, w.ts_ns, w.end_ns, w.dur_ns, w.name,
           a.direction, a.host_memory, a.bytes
    FROM device_work w JOIN kernel_args a ON a.event_id = w.id
    ASOF JOIN device_steps s ON s.rank = w.rank AND s.device = w.device AND s.ts_ns <= w.ts_ns
    WHERE w.ts_ns < s.end_ns AND a.direction IN ('host to device', 'device to host')
"""


def check(training: Training) -> Verdict:
    times = device_times(training)
    if not times:
        return no_device(training)
    copies = training.rows(f"""
        SELECT id, rank, device, step, ts_ns, dur_ns, name, direction, host_memory, bytes,
               launcher_id, dur_ns - hidden_ns AS exposed_ns
        FROM ({hidden(_COPIES, _OTHER_WORK, "rank, device")}) ORDER BY exposed_ns DESC, id
    """)
    total_ns = sum(time.total_ns for time in times)
    exposed: dict[tuple[int, str], int] = {}
    for copy in copies:
        key = (copy["rank"], copy["device"])
        exposed[key] = exposed.get(key, 0) + copy["exposed_ns"]
    without_ns = sum(
        time.without_device_work_ns(min(exposed.get((time.rank, time.device), 0), time.memory_ns))
        for time in times
    )
    share = 1 - without_ns / max(1, total_ns)
    seen = sum(exposed.values()) / max(1, total_ns)
    if share < WORTH_TELLING_RATIO:
        return Clear(f"{len(copies)} copies between host and device hold it up {percent(seen)} of "
                     "step time")  # fmt: skip
    return _finding(training, copies, share, total_ns / max(1, without_ns))


def _finding(
    training: Training, copies: list[dict[str, Any]], share: float, speedup: float
) -> Finding:
    worst = copies[0]
    alike = [copy for copy in copies if copy["direction"] == worst["direction"]]
    is_pageable = worst["host_memory"] == "pageable"
    moved = sum(copy["bytes"] or 0 for copy in alike)
    speed = moved / max(1, sum(copy["dur_ns"] for copy in alike)) * 1e9
    origin = origins(training, [worst["launcher_id"]] if worst["launcher_id"] else [])
    place = next(iter(origin.values()), Origin())
    kind = "pageable" if is_pageable else worst["host_memory"] or ""
    how_fast = f" ({size(moved)} at {rate(speed, 'B/s')})" if moved else ""
    return Finding(
        title=f"copies {worst['direction']} from {kind} memory hold the device up "
        f"{percent(share)} of step time{how_fast}".replace("  ", " "),
        share=share,
        expected_speedup=speedup,
        fixes=_fixes(training.framework, worst["direction"], is_pageable, place),
        evidence=(Evidence("events", tuple(copies[:10])),),
        where=place.where,
    )


def _fixes(framework: str, direction: str, is_pageable: bool, place: Origin) -> tuple[str, ...]:
    at = f" at {place.line}" if place.line else ""
    if direction == "device to host":
        return (fix("copy-to-host", framework, at),)
    ahead = f"copy the next batch on a stream of its own while this one is computed{at}"
    less = "send less: uint8 instead of float32, converted on the device"
    return (fix("copy-from-pinned", framework, at), ahead, less) if is_pageable else (ahead, less)
