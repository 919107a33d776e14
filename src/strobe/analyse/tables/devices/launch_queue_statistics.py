"""How far was the host ahead of each stream?

From the first launch on a stream to the start of its last work. If a queue is often empty, the
device waits for the host; if it is full, the host waits for the device.
"""

from typing import Any

import duckdb

from strobe.analyse.devices import prepare_devices
from strobe.analyse.select import declared
from strobe.analyse.tables.devices import launch_queue
from strobe.model.schema import Column, Table
from strobe.store.run import Run

NAME = "launch-queue-statistics"

# CUDA queues about 1,024 launches per stream; beyond that the next launch blocks.
FULL_LENGTH = 1000

RESULT = Table(
    NAME,
    "How far was the host ahead of each stream?",
    (
        Column("rank", "i64", "Rank of the process."),
        Column("device", "str", "cuda:0, npu:0, ..."),
        Column("stream", "str", "Name of the stream."),
        Column("stream_id", "i64", "Number of the stream.", nullable=True),
        Column("launches", "i64", "Launches on the stream."),
        Column("mean_length", "f64", "Mean number of outstanding launches over time."),
        Column("median_length", "f64", "Median of the lengths after each change."),
        Column("max_length", "i64", "Maximum number of outstanding launches."),
        Column("dur_ns", "i64", "From the first launch to the last start."),
        Column("empty_ns", "i64", "Time with nothing outstanding."),
        Column("full_ns", "i64", f"Time with {FULL_LENGTH:,} or more outstanding."),
        Column("empty_share", "f64", "empty_ns divided by dur_ns."),
    ),
)

_SQL = f"""
    SELECT *, coalesce(empty_ns / nullif(dur_ns, 0), 0) AS empty_share FROM (
        SELECT rank, device, stream, stream_id, count(*) FILTER (change = 1) AS launches,
               coalesce(sum(length * dur_ns) / nullif(sum(dur_ns), 0), 0) AS mean_length,
               median(length) AS median_length, max(length) AS max_length,
               coalesce(sum(dur_ns), 0) AS dur_ns,
               coalesce(sum(dur_ns) FILTER (length <= 0), 0) AS empty_ns,
               coalesce(sum(dur_ns) FILTER (length >= {FULL_LENGTH}), 0) AS full_ns
        FROM ({launch_queue.SQL}) GROUP BY rank, device, track_id, stream, stream_id
    )
"""


def run(run: Run, **options: Any) -> duckdb.DuckDBPyRelation:
    prepare_devices(run)
    return declared(run.connection, RESULT, _SQL, "rank, device, stream_id, stream", **options)
