"""The device waits for the host: it finishes its work faster than the host launches more.

## What it is
Every kernel is launched by the host. If Python, the framework and the driver take longer to
launch a kernel than the kernel runs, the device idles between kernels, however fast it is.
One Python thread launches all work of a process: other Python threads cannot help it, and delay it
while they hold the global interpreter lock (GIL).

## How it is judged
A device idles for want of launches where the work that ends the gap was launched after the gap had
begun. Time in which the training loop waited for data is `data-starvation`, and what goes away
when the host no longer waits for the device is `host-sync`; what remains is the cost. Where call
stacks are recorded the host is slower than it is without, and so the cost is an estimate.

## How to fix
Give the device more to do at once: a larger batch. Launch less: `torch.compile(model)`, CUDA graphs
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
from strobe.advise.framework import JAX
from strobe.advise.rules import host_sync
from strobe.advise.training import Training
from strobe.analyse.intervals import hidden
from strobe.units import count, duration, percent

NAME = "device-idle"

# A tenth of idling is what a training that launches its work one by one ordinarily has.
WORTH_TELLING_RATIO = 0.1

# A step with less work than this on its device is no training step recorded whole.
LEAST_WORK_PER_STEP = 10

# A device that idles nearly always could be a hundred times as fast; no fix has ever given that.
MOST_BELIEVED = 10.0

# A call into the runtime that holds this part of the idle time is its cause.
ONE_CALL_RATIO = 0.5

# Calls into a device's driver; what frameworks call their own layers says nothing to a user.
_DRIVER = re.compile(r"(cuda|cu|hip|acl|aclrt|AscendCL@acl|musa)[A-Z]\w*")

# Above this part of idling before work whose launch is unknown, its cause is too.
MOST_UNKNOWN_RATIO = 0.5


def check(training: Training) -> Verdict:
    times = device_times(training)
    if not times:
        return no_device(training)
    total_ns = sum(time.total_ns for time in times)
    idle = sum(time.late_ns + time.own_ns for time in times) / max(1, total_ns)
    unknown = sum(time.unknown_ns for time in times) / max(1, total_ns)
    if unknown > max(WORTH_TELLING_RATIO, MOST_UNKNOWN_RATIO * idle):
        return CannotTell(
            f"the device idles {percent(idle)} of step time, but when its work was launched was "
            "not recorded",
            "record the host beside the device",
        )
    cost_ns = sum(cost(time) for time in times)
    share = cost_ns / max(1, total_ns)
    if share < WORTH_TELLING_RATIO:
        return Clear(f"the device idles {percent(idle)} of step time, {percent(share)} for want "
                     "of launches and no other reason")  # fmt: skip
    steps = sum(time.steps for time in times)
    work = _work_in_steps(training)
    # A compiled program does a step in a few pieces of work.
    least = 1 if training.framework == JAX else LEAST_WORK_PER_STEP
    if work < least * steps:
        return CannotTell(
            f"only {work} pieces of work were recorded on devices, in {steps} steps",
            "record whole steps with their kernels",
        )
    return _finding(training, times, share, work / steps)


# As a sentence calls them.
_PHASES = {
    "all_reduce": "exchange of gradients",
    "gap": "gap between steps",
    "rest": "rest of the step",
}


def cost(time: DeviceTime) -> int:
    """Idle for want of launches, less what waiting for data and for the device explains."""
    return max(0, time.late_ns - time.data_ns - host_sync.cost(time))


def _finding(
    training: Training, times: list[DeviceTime], share: float, work_per_step: float
) -> Finding:
    phases = _phases(training)
    gaps = _longest_gaps(training)
    call = _busiest_call(training, sum(time.late_ns for time in times))
    # What ends a gap between steps is the first launch after it, which is no cause of it.
    is_between = bool(phases) and phases[0][0] == "gap"
    origin = Origin() if is_between else _common_origin(training, gaps)
    device = times[0].device if len({time.device for time in times}) == 1 else "the device"
    step_ns = sum(time.total_ns for time in times) / sum(time.steps for time in times)
    mostly = f", most of it in the {_PHASES.get(phases[0][0], phases[0][0])}" if phases else ""
    mostly = f", most of it inside {call}" if call else mostly
    return Finding(
        title=f"{device} waits for the host {percent(share)} of step time{mostly}",
        why=f"Each step launches {count(round(work_per_step))} pieces of work, one every "
        f"{duration(step_ns / work_per_step)}.",
        share=share,
        expected_speedup=min(MOST_BELIEVED, 1 / max(0.01, 1 - share)),
        fixes=_fixes(training.framework, phases[0][0] if phases else "", call),
        evidence=(Evidence("events", tuple(gaps[:10])),),
        where=origin.where,
        is_certain=False,
    )


def _fixes(framework: str, phase: str, call: str | None) -> tuple[str, ...]:
    launch_less = (
        fix("launch-graphs", framework),
        "a larger batch: the same launches do more work",
    )
    if call and ("Free" in call or "Malloc" in call):
        return (fix("keep-device-memory", framework),)
    if phase == "update":
        return (fix("fuse-update", framework), *launch_less)
    if phase == "gap":
        return ("do less between steps, or on another thread: preprocessing, logging",
                *launch_less)  # fmt: skip
    return launch_less


_WORK = "SELECT rank, device, ts_ns, end_ns FROM device_work"
_LATE_GAPS = f"SELECT * FROM ({DEVICE_GAPS}) WHERE launch_ts_ns > ts_ns"


def _work_in_steps(training: Training) -> int:
    ((count,),) = training.run.sql("""
        SELECT count(*) FROM device_work w ASOF JOIN device_steps s
            ON s.rank = w.rank AND s.device = w.device AND s.ts_ns <= w.ts_ns
        WHERE w.ts_ns < s.end_ns
    """).fetchall()
    return int(count)


def _phases(training: Training) -> list[tuple[str, int]]:
    """The phases of steps by the time in them that the device idled, longest first."""
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
    """The call into the device's runtime that most of the idle time passes in, if one does."""
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
    """Where most of the time of the longest gaps ends."""
    known = origins(training, {gap["id"] for gap in gaps if gap["id"] is not None})
    sums: dict[str | None, int] = {}
    for gap in gaps:
        where = known.get(gap["id"], Origin()).where
        sums[where] = sums.get(where, 0) + gap["dur_ns"]
    best = max(sums, key=lambda where: sums[where]) if sums else None
    return next((origin for origin in known.values() if origin.where == best), Origin())
