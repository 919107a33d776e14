"""How long host and device need for a step, and how long it would take without a stall.

A step lasts as long as the slower of the two needs. The device needs the time that it works, and
the gaps that are its own: the next work was launched, but did not run yet. The host needs the step
without its waits for the device. Without a stall of one, the step takes what the other needs, if
that is more.
"""

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from strobe.advise.finding import CannotTell, Clear, Verdict
from strobe.advise.training import Training
from strobe.analyse.devices import prepare_devices
from strobe.analyse.intervals import covered, hidden
from strobe.analyse.tables.devices import device_time
from strobe.messages import message

# If the device waits for launches less than this, the host keeps ahead of it. What the host needs
# is then unknown, and does not limit the step.
HOST_KEEPS_AHEAD_RATIO = 0.05


@dataclass(frozen=True)
class DeviceTime:
    """Of one device of one rank, summed over the steps judged; the parts add up to the total."""

    rank: int
    device: str
    steps: int
    total_ns: int
    compute_ns: int
    communication_ns: int  # while nothing computed
    memory_ns: int  # copies and fills, while neither of the above ran
    late_ns: int  # idle because the host has launched nothing
    own_ns: int  # idle although work has been launched, or its launch is unknown
    unknown_ns: int  # of own_ns, the part before work whose launch is unknown
    data_ns: int  # of late_ns, the part in which the training loop waits for data
    host_wait_ns: int  # the host waits for the device, idle or not

    @property
    def device_needs_ns(self) -> int:
        return self.total_ns - self.late_ns

    @property
    def host_needs_ns(self) -> int:
        if self.late_ns < HOST_KEEPS_AHEAD_RATIO * self.total_ns:
            return 0
        return self.total_ns - self.host_wait_ns

    def without_host_waits_ns(self) -> int:
        """The length of the steps if the host never waits for the device: as long as the slower of
        the two needs."""
        return max(self.total_ns - self.host_wait_ns, self.device_needs_ns)

    def without_device_work_ns(self, removed_ns: float) -> float:
        """The length of the steps if the device has this much less to do, or overlaps it."""
        return min(self.total_ns, max(self.host_needs_ns, self.total_ns - removed_ns))


# Several rules need it.
_CACHE: WeakKeyDictionary[Training, list[DeviceTime]] = WeakKeyDictionary()


def device_times(training: Training) -> list[DeviceTime]:
    """Of every device that computes in a step judged."""
    if training not in _CACHE:
        _CACHE[training] = _device_times(training)
    return _CACHE[training]


def _device_times(training: Training) -> list[DeviceTime]:
    chosen = _chosen_steps(training)
    if not chosen:
        return []
    run = training.run
    names = ("rank", "device", "step", "ts_ns", "end_ns")
    if not run.has("device_steps"):
        run.keep("device_steps", {name: np.array([row[name] for row in chosen]) for name in names})
    own = _own_gaps(training)
    data = _idle_in_data(training)
    waits = dict(run.sql(covered(HOST_WAITS_IN_STEPS, "rank")).fetchall())
    sums: dict[tuple[int, str], dict[str, int]] = {}
    for row in chosen:
        of_device = sums.setdefault((row["rank"], row["device"]), dict.fromkeys(_SUMMED, 0))
        for name in _SUMMED:
            of_device[name] += row[name]
    return [
        _device_time(
            key, of_device, own.get(key, (0, 0)), data.get(key, 0), int(waits.get(key[0], 0))
        )
        for key, of_device in sorted(sums.items())
    ]


_SUMMED = ("steps", "dur_ns", "compute_ns", "communication_ns", "memory_ns", "idle_ns")


def _device_time(
    key: tuple[int, str], sums: dict[str, int], own: tuple[int, int], data_ns: int, wait_ns: int
) -> DeviceTime:
    own_ns = min(own[0], sums["idle_ns"])
    late_ns = sums["idle_ns"] - own_ns
    return DeviceTime(
        rank=key[0],
        device=key[1],
        steps=sums["steps"],
        total_ns=sums["dur_ns"],
        compute_ns=sums["compute_ns"],
        communication_ns=sums["communication_ns"],
        memory_ns=sums["memory_ns"],
        late_ns=late_ns,
        own_ns=own_ns,
        unknown_ns=min(own[1], own_ns),
        data_ns=min(data_ns, late_ns),
        host_wait_ns=min(wait_ns, sums["dur_ns"]),
    )


def _chosen_steps(training: Training) -> list[dict[str, Any]]:
    """Steps in which a device computes: those judged, or all if it computes in none of them. Full
    recording slows down the others."""
    prepare_devices(training.run)
    relation = device_time.run(training.run)
    rows = [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]
    computing = [
        {**row, "steps": 1, "end_ns": row["ts_ns"] + row["dur_ns"]}
        for row in rows
        if row["step"] is not None and row["compute_ns"] > 0
    ]
    judged = [row for row in computing if training.judges(row["rank"], row["step"])]
    return judged or computing


# Gaps of whole devices, each with the work that ends it, and the step in which it begins.
DEVICE_GAPS = """
    SELECT g.*, s.step, least(g.end_ns, s.end_ns) - g.ts_ns AS gap_ns FROM (
        SELECT rank, device, id AS work_id, launcher_id, operator, name, scope, launch_ts_ns,
               reach_ns AS ts_ns, ts_ns AS end_ns
        FROM (
            SELECT *, max(end_ns) OVER (
                PARTITION BY rank, device, window_number ORDER BY ts_ns, end_ns, id
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ) AS reach_ns
            FROM device_work
        ) WHERE ts_ns > reach_ns
    ) g
    ASOF JOIN device_steps s ON s.rank = g.rank AND s.device = g.device AND s.ts_ns <= g.ts_ns
    WHERE g.ts_ns < s.end_ns
"""

# Where the host waits for a device: synchronizing calls, and copies from or to pageable memory,
# whose calls return only after the device has reached them.
HOST_WAITS = """
    SELECT t.rank, e.id, e.ts_ns, e.ts_ns + e.dur_ns AS end_ns, e.dur_ns, e.name, NULL AS direction
    FROM events e JOIN tracks t ON t.id = e.track_id
    WHERE e.kind = 'sync' AND t.device = 'cpu' AND t.rank IN (SELECT rank FROM device_work)
    UNION ALL
    SELECT w.rank, w.launcher_id, w.launch_ts_ns, w.launch_ts_ns + w.launch_dur_ns,
           w.launch_dur_ns, w.launch, a.direction
    FROM device_work w JOIN kernel_args a ON a.event_id = w.id
    WHERE w.kind = 'memcpy' AND a.host_memory = 'pageable' AND w.launch_ts_ns IS NOT NULL
"""
HOST_WAITS_IN_STEPS = f"""
    SELECT w.rank, w.id, w.name, w.direction, s.step, w.ts_ns, least(w.end_ns, s.end_ns) AS end_ns
    FROM ({HOST_WAITS}) w
    ASOF JOIN (SELECT DISTINCT rank, step, ts_ns, end_ns FROM device_steps) s
        ON s.rank = w.rank AND s.ts_ns <= w.ts_ns
    WHERE w.ts_ns < s.end_ns
"""


def _own_gaps(training: Training) -> dict[tuple[int, str], tuple[int, int]]:
    """By rank and device: idle time although work has or may have been launched, and the part of it
    where the launch is unknown."""
    rows = training.run.sql(f"""
        SELECT rank, device, sum(gap_ns)::BIGINT,
               coalesce(sum(gap_ns) FILTER (launch_ts_ns IS NULL), 0)::BIGINT
        FROM ({DEVICE_GAPS}) WHERE coalesce(launch_ts_ns <= ts_ns, true) GROUP BY rank, device
    """).fetchall()
    return {(rank, device): (own, unknown) for rank, device, own, unknown in rows}


def _idle_in_data(training: Training) -> dict[tuple[int, str], int]:
    """By rank and device: time in which the loop waits for data and the device is idle."""
    waits = """
        SELECT s.rank, s.device, greatest(o.ts_ns, s.ts_ns) AS ts_ns,
               least(o.end_ns, s.end_ns) AS end_ns
        FROM outline o JOIN device_steps s ON s.rank = o.rank AND s.step = o.step
        WHERE o.kind = 'data' AND o.ts_ns < s.end_ns AND o.end_ns > s.ts_ns
    """
    work = "SELECT rank, device, ts_ns, end_ns FROM device_work"
    rows = training.run.sql(f"""
        SELECT rank, device, sum(end_ns - ts_ns - hidden_ns)::BIGINT
        FROM ({hidden(waits, work, "rank, device")}) GROUP BY rank, device
    """).fetchall()
    return {(rank, device): idle for rank, device, idle in rows}


def no_device(training: Training) -> Verdict:
    """The answer of a rule about devices if no device work was recorded in a step."""
    devices = [device for rank in training.run.manifest.ranks for device in rank.devices]
    if training.has_devices or any(device.split()[0] != "cpu" for device in devices if device):
        return CannotTell(message("devices.not-recorded"), message("devices.record-window"))
    return Clear(message("devices.host-only"))
