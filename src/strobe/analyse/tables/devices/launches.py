"""How long does work wait between its launch and its start, and is it worth launching?

By kernel and launching call. Delay is the time from the start of the call to the start of the
kernel; queued is the part of it after the call has returned. A kernel that runs shorter than the
call that launched it cannot keep the device busy. The call is that of the runtime, or the operator
if the trace has no runtime calls. A call that launches several kernels at once (a graph) is divided
among them evenly.
"""

from typing import Any

import duckdb

from strobe.analyse.devices import prepare_devices
from strobe.analyse.select import declared
from strobe.analyse.tables.devices import launch_queue
from strobe.model.schema import Column, Table
from strobe.store.run import Run

NAME = "launches"

RESULT = Table(
    NAME,
    "How long does work wait between its launch and its start, and is it worth launching?",
    (
        Column("rank", "i64", "Rank of the process."),
        Column("device", "str", "cuda:0, npu:0, ..."),
        Column("name", "str", "Name of the kernel, copy or fill."),
        Column("kind", "str", "kernel, collective, memcpy or memset."),
        Column("launch", "str", "The call that launched it: cudaLaunchKernel, ..."),
        Column("calls", "i64", "Number of launches by this call."),
        Column("total_ns", "i64", "Total time it ran."),
        Column("mean_ns", "i64", "Mean time it ran."),
        Column("launch_ns", "i64", "Total time of the launching calls."),
        Column("launch_mean_ns", "i64", "Mean time of the launching call."),
        Column(
            "delay_mean_ns",
            "i64",
            "Mean time from the start of the call to the start of the kernel.",
        ),
        Column("delay_median_ns", "i64", "Median of that delay."),
        Column("delay_max_ns", "i64", "Maximum of that delay."),
        Column("queued_ns", "i64", "Total time from the end of the call to the start, at least 0."),
        Column("short_calls", "i64", "Number of times it ran shorter than its launching call."),
        Column(
            "mean_length",
            "f64",
            "Mean number of outstanding launches on its stream, itself included.",
        ),
        Column("max_length", "i64", "Maximum of that number."),
    ),
)


def _sql(source: str) -> str:
    return f"""
    SELECT rank, device, name, kind, launch, count(*) AS calls, sum(dur_ns) AS total_ns,
           round(avg(dur_ns)) AS mean_ns, round(sum(launch_share_ns)) AS launch_ns,
           round(avg(launch_share_ns)) AS launch_mean_ns,
           round(avg(ts_ns - launch_ts_ns)) AS delay_mean_ns,
           round(median(ts_ns - launch_ts_ns)) AS delay_median_ns,
           max(ts_ns - launch_ts_ns) AS delay_max_ns,
           sum(greatest(0, ts_ns - launch_ts_ns - launch_dur_ns)) AS queued_ns,
           count(*) FILTER (dur_ns < launch_share_ns) AS short_calls,
           avg(length) AS mean_length, max(length) AS max_length
    FROM {source} w
    JOIN (SELECT event_id, length FROM ({launch_queue.SQL}) WHERE change = 1) q
        ON q.event_id = w.id
    GROUP BY rank, device, name, kind, launch
    """


def run(run: Run, *, all_steps: bool = False, **options: Any) -> duckdb.DuckDBPyRelation:
    """Of steps recorded in full, or with `all_steps` of every launch recorded."""
    prepare_devices(run)
    query = _sql("device_work" if all_steps else "recorded_device_work")
    order = "launch_ns DESC, rank, device, name, launch"
    return declared(run.connection, RESULT, query, order, **options)
