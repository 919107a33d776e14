"""The device waits for copies between host and device.

## What it is
Batches are copied from the host's memory to the device's. From ordinary (pageable) memory, the
driver copies twice and at a fraction of the speed, and nothing overlaps. From pinned memory, the
device fetches a batch by itself while it computes on the batch before.

## How it is judged
Strobe measures the time, in the steps judged, in which a copy from or to the host runs and the
device neither computes nor communicates. Without that time, a step is as long as the slower of the
host and the rest of the device's work. A finding needs 5% of step time.

## How to fix
Set `DataLoader(..., pin_memory=True)` and call `batch.to(device, non_blocking=True)`. Copy the next
batch on a separate stream while this one is computed. Send less: uint8 images that are converted on
the device, token numbers instead of one-hot rows.
"""

from typing import Any

from strobe.advise.evidence.device_model import device_times, no_device
from strobe.advise.evidence.event_origin import Origin, origins
from strobe.advise.finding import Clear, Evidence, Finding, Verdict
from strobe.advise.fixes import at_line, fix
from strobe.advise.thresholds import SMALLEST_SHARE
from strobe.advise.training import Training
from strobe.analyse.intervals import hidden
from strobe.frameworks import Framework
from strobe.messages import Message, message
from strobe.units import count, percent, rate, size

NAME = "slow-transfer"


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
    if share < SMALLEST_SHARE:
        return _clear(len(copies), sum(exposed.values()) / max(1, total_ns), share)
    return _finding(training, copies, share, total_ns / max(1, without_ns))


def _clear(copies: int, exposed: float, share: float) -> Clear:
    values = {"exposed": percent(exposed), "share": percent(share)}
    if copies == 0:
        return Clear(message("slow-transfer.no-copies"))
    if copies == 1:
        return Clear(message("slow-transfer.one-copy", **values))
    return Clear(message("slow-transfer.small", count=count(copies), **values))


_MEMORY = {
    "pageable": message("slow-transfer.pageable-memory"),
    "pinned": message("slow-transfer.pinned-memory"),
}


def _finding(
    training: Training, copies: list[dict[str, Any]], share: float, speedup: float
) -> Finding:
    worst = copies[0]
    is_pageable = worst["host_memory"] == "pageable"
    memory = _MEMORY.get(worst["host_memory"]) or message("slow-transfer.host-memory")
    is_to_host = worst["direction"] == "device to host"
    title = "slow-transfer.title-to-host" if is_to_host else "slow-transfer.title-to-device"
    origin = origins(training, [worst["launcher_id"]] if worst["launcher_id"] else [])
    place = next(iter(origin.values()), Origin())
    return Finding(
        title=message(title, share=percent(share), memory=memory),
        why=_why([copy for copy in copies if copy["direction"] == worst["direction"]]),
        share=share,
        expected_speedup=speedup,
        fixes=_fixes(training.framework, is_to_host, is_pageable, place),
        evidence=(Evidence("events", tuple(copies[:10])),),
        where=place.where,
    )


def _why(copies: list[dict[str, Any]]) -> Message:
    moved = sum(copy["bytes"] or 0 for copy in copies)
    if not moved:
        return message("slow-transfer.why")
    speed = moved / max(1, sum(copy["dur_ns"] for copy in copies)) * 1e9
    return message("slow-transfer.why-speed", size=size(moved), speed=rate(speed, "B/s"))


def _fixes(
    framework: Framework, is_to_host: bool, is_pageable: bool, place: Origin
) -> tuple[str, ...]:
    line = str(place.line) if place.line else None
    if is_to_host:
        return (fix("copy-to-host", framework, line),)
    ahead = message("slow-transfer.copy-ahead", at=at_line(line))
    less = message("slow-transfer.send-less")
    return (fix("copy-from-pinned", framework, line), ahead, less) if is_pageable else (ahead, less)
