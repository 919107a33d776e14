"""The device waits for the host, because it finishes kernels faster than the host launches them.

## What it is
The host launches every kernel. If Python, the framework and the driver take longer to launch a
kernel than the kernel runs, the device is idle between kernels, and a faster device does not help.
Such training is launch-bound. One Python thread launches all work of a process. Other Python
threads cannot help it, and delay it while they hold the global interpreter lock (GIL).

## How it is judged
A gap on the device is launch-bound if the work that ends it was launched after the gap had begun.
Time in which the training loop waits for data belongs to `data-starvation`. Time that is saved if
the host no longer waits for the device belongs to `host-sync`. The rest is the cost. It is an
estimate, because recording call stacks slows the host down. A finding needs 10% of step time.

## How to fix
Give each launch more to do: use a larger batch. Launch less: `torch.compile(model)`, CUDA graphs
(`mode="reduce-overhead"`), a fused optimizer (`fused=True`), operators that do more. Take Python
out of the loop: logging, checks, loops over tensors. Move background work in Python (a thread that
makes batches or writes logs) into a process of its own, and use one process for each device.
"""

import re
from typing import Any

from strobe.advise.evidence.device_model import DEVICE_GAPS, DeviceTime, device_times, no_device
from strobe.advise.evidence.event_origin import Origin, origins
from strobe.advise.finding import CannotTell, Clear, Evidence, Finding, Verdict
from strobe.advise.fixes import fix
from strobe.advise.rules import host_sync
from strobe.advise.thresholds import MOST_SPEEDUP_OF_DEVICE, speedup
from strobe.advise.training import Training
from strobe.analyse.intervals import hidden
from strobe.frameworks import Framework
from strobe.messages import Message, message
from strobe.units import count, duration, percent

NAME = "device-idle"

# A training that launches its work piece by piece is normally idle this much.
SMALLEST_SHARE = 0.1

# A call into the runtime that takes this part of the idle time is its cause.
ONE_CALL_RATIO = 0.5

# Calls into a device's driver. The names of a framework's own layers mean nothing to a user.
_DRIVER = re.compile(r"(cuda|cu|hip|acl|aclrt|AscendCL@acl|musa)[A-Z]\w*")

# If this part of the idle time is before work whose launch is unknown, its cause is unknown too.
MOST_UNKNOWN_RATIO = 0.5


def check(training: Training) -> Verdict:
    times = device_times(training)
    if not times:
        return no_device(training)
    total_ns = sum(time.total_ns for time in times)
    idle = sum(time.late_ns + time.own_ns for time in times) / max(1, total_ns)
    unknown = sum(time.unknown_ns for time in times) / max(1, total_ns)
    if unknown > max(SMALLEST_SHARE, MOST_UNKNOWN_RATIO * idle):
        return CannotTell(
            message("device-idle.launches-unknown", idle=percent(idle)),
            message("device-idle.record-host"),
        )
    cost_ns = sum(cost(time) for time in times)
    share = cost_ns / max(1, total_ns)
    if share < SMALLEST_SHARE:
        return Clear(message("device-idle.small", idle=percent(idle), share=percent(share)))
    steps = sum(time.steps for time in times)
    work = _work_in_steps(training)
    if work < training.framework.fewest_kernels * steps:
        return CannotTell(_little_work(work, steps), message("device-idle.record-whole-steps"))
    return _finding(training, times, share, work / steps)


_IN_PHASES = {
    "gap": message("device-idle.in-gap"),
    "forward": message("device-idle.in-forward"),
    "backward": message("device-idle.in-backward"),
    "all_reduce": message("device-idle.in-exchange"),
    "update": message("device-idle.in-update"),
    "rest": message("device-idle.in-rest"),
}


def cost(time: DeviceTime) -> int:
    """Purely launch-bound idle time, without waiting for data and host synchronization."""
    return max(0, time.late_ns - time.data_ns - host_sync.cost(time))


def _finding(
    training: Training, times: list[DeviceTime], share: float, work_per_step: float
) -> Finding:
    phases = _phases(training)
    gaps = _longest_gaps(training)
    call = _busiest_call(training, sum(time.late_ns for time in times))
    # A gap between steps ends with the first launch after it, which is not its cause.
    is_between = bool(phases) and phases[0][0] == "gap"
    origin = Origin() if is_between else _common_origin(training, gaps)
    step_ns = sum(time.total_ns for time in times) / sum(time.steps for time in times)
    return Finding(
        title=_title(times, share, _mostly(phases[0][0] if phases else None, call)),
        why=_why(work_per_step, step_ns / work_per_step),
        share=share,
        expected_speedup=min(MOST_SPEEDUP_OF_DEVICE, speedup(share)),
        fixes=_fixes(training.framework, phases[0][0] if phases else "", call),
        evidence=(Evidence("events", tuple(gaps[:10])),),
        where=origin.where,
        is_certain=False,
    )


def _little_work(work: int, steps: int) -> Message:
    return message(
        "device-idle.little-work",
        work=message("device-idle.one-work") if work == 1
        else message("device-idle.work", count=count(work)),
        steps=message("device-idle.one-step") if steps == 1
        else message("device-idle.steps", count=count(steps)),
    )  # fmt: skip


def _mostly(phase: str | None, call: str | None) -> Message | None:
    """Where most of the idle time is."""
    if call:
        return message("device-idle.inside-call", call=call)
    if phase is None:
        return None
    return _IN_PHASES.get(phase) or message("device-idle.in-phase", phase=phase)


def _title(times: list[DeviceTime], share: float, where: Message | None) -> Message:
    devices = {time.device for time in times}
    if len(devices) == 1:
        id = "device-idle.title-mostly" if where else "device-idle.title"
    else:
        id = "device-idle.title-devices-mostly" if where else "device-idle.title-devices"
    return message(id, device=min(devices), share=percent(share), where=where or "")


def _why(work_per_step: float, interval_ns: float) -> Message:
    interval = duration(interval_ns)
    if round(work_per_step) == 1:
        return message("device-idle.why-one", interval=interval)
    return message("device-idle.why", count=count(round(work_per_step)), interval=interval)


def _fixes(framework: Framework, phase: str, call: str | None) -> tuple[str, ...]:
    launch_less = (fix("launch-graphs", framework), message("device-idle.larger-batch"))
    if call and ("Free" in call or "Malloc" in call):
        return (fix("keep-device-memory", framework),)
    if phase == "update":
        return (fix("fuse-update", framework), *launch_less)
    if phase == "gap":
        return (message("device-idle.do-less-between-steps"), *launch_less)
    return launch_less


_WORK = "SELECT rank, device, ts_ns, end_ns FROM device_work"
_LATE_GAPS = f"SELECT * FROM ({DEVICE_GAPS}) WHERE launch_ts_ns > ts_ns"


def _work_in_steps(training: Training) -> int:
    ((number,),) = training.run.sql("""
        SELECT count(*) FROM device_work w ASOF JOIN device_steps s
            ON s.rank = w.rank AND s.device = w.device AND s.ts_ns <= w.ts_ns
        WHERE w.ts_ns < s.end_ns
    """).fetchall()
    return int(number)


def _phases(training: Training) -> list[tuple[str, int]]:
    """The phases of steps with the idle time of the device in them, the longest first."""
    phases = """
        SELECT s.rank, s.device, o.name, o.ts_ns, o.end_ns
        FROM outline o JOIN device_steps s ON s.rank = o.rank AND s.step = o.step
        WHERE o.kind = 'phase'
    """
    return training.run.sql(f"""
        SELECT name, sum(end_ns - ts_ns - hidden_ns)::BIGINT AS idle_ns
        FROM ({hidden(phases, _WORK, "rank, device")}) GROUP BY name ORDER BY idle_ns DESC, name
    """).fetchall()


def _busiest_call(training: Training, late_ns: int) -> str | None:
    """The call into the device's driver that takes most of the idle time, if there is one."""
    calls = """
        SELECT s.rank, s.device, e.name, greatest(e.ts_ns, s.ts_ns) AS ts_ns,
               least(e.ts_ns + e.dur_ns, s.end_ns) AS end_ns
        FROM events e JOIN tracks t ON t.id = e.track_id
        JOIN device_steps s ON s.rank = t.rank AND s.step = e.step
        WHERE e.kind = 'runtime' AND t.device = 'cpu' AND e.ts_ns < s.end_ns
    """
    found = training.run.sql(f"""
        SELECT name, sum(end_ns - ts_ns - hidden_ns) AS idle_ns
        FROM ({hidden(calls, _WORK, "rank, device")}) GROUP BY name ORDER BY idle_ns DESC LIMIT 1
    """).fetchall()
    is_most = bool(found) and found[0][1] > ONE_CALL_RATIO * late_ns
    return found[0][0] if is_most and _DRIVER.match(found[0][0]) else None


def _longest_gaps(training: Training) -> list[dict[str, Any]]:
    return training.rows(f"""
        SELECT launcher_id AS id, rank, step, ts_ns, gap_ns AS dur_ns, operator, name
        FROM ({_LATE_GAPS}) ORDER BY gap_ns DESC, work_id LIMIT 100
    """)


def _common_origin(training: Training, gaps: list[dict[str, Any]]) -> Origin:
    """The place that ends the longest gaps, by their time."""
    known = origins(training, {gap["id"] for gap in gaps if gap["id"] is not None})
    sums: dict[str | None, int] = {}
    for gap in gaps:
        where = known.get(gap["id"], Origin()).where
        sums[where] = sums.get(where, 0) + gap["dur_ns"]
    best = max(sums, key=lambda where: sums[where]) if sums else None
    return next((origin for origin in known.values() if origin.where == best), Origin())
