"""How much was copied and filled, from where to where, and how fast?

Bandwidth is bytes over the time of the copy. Pageable host memory goes through a buffer of the
driver, which is slow and blocks the host; pinned memory does not.
"""

from typing import Any

import duckdb

from strobe.analyse.devices import prepare_devices
from strobe.analyse.intervals import hidden
from strobe.analyse.select import declared
from strobe.analyse.tables.steps.overlap import COMPUTATION
from strobe.model.schema import Column, Table
from strobe.store.run import Run

NAME = "copies"

RESULT = Table(
    NAME,
    "How much was copied and filled, from where to where, and how fast?",
    (
        Column("rank", "i64", "Rank of the process."),
        Column("device", "str", "cuda:0, npu:0, ..."),
        Column("kind", "str", "memcpy, or memset for fills."),
        Column("direction", "str", "host to device, device to host, ...", nullable=True),
        Column("host_memory", "str", "pageable or pinned, for copies from or to the host.", True),
        Column("calls", "i64", "Number of calls."),
        Column("bytes", "i64", "Total bytes.", nullable=True),
        Column("mean_bytes", "i64", "Mean bytes per call.", nullable=True),
        Column("total_ns", "i64", "Total time."),
        Column("mean_ns", "i64", "Mean time per call."),
        Column("exposed_ns", "i64", "Time of the calls during which nothing computed."),
        Column("bytes_per_s", "f64", "Bytes of all calls divided by their time.", nullable=True),
        Column("min_bytes_per_s", "f64", "Bandwidth of the slowest call.", nullable=True),
        Column("median_bytes_per_s", "f64", "Bandwidth of the median call.", nullable=True),
        Column(
            "mean_bytes_per_s", "f64", "Mean bandwidth of the calls, not weighted by size.", True
        ),
        Column("max_bytes_per_s", "f64", "Bandwidth of the fastest call.", nullable=True),
    ),
)


def _sql(source: str) -> str:
    work = f"SELECT rank, device, id, kind, ts_ns, end_ns, dur_ns FROM {source}"
    return f"""
    SELECT rank, device, kind, direction, host_memory, count(*) AS calls, sum(bytes) AS bytes,
           round(avg(bytes)) AS mean_bytes, sum(dur_ns) AS total_ns,
           round(avg(dur_ns)) AS mean_ns, sum(dur_ns - hidden_ns) AS exposed_ns,
           1e9 * sum(bytes) / nullif(sum(dur_ns) FILTER (bytes IS NOT NULL), 0) AS bytes_per_s,
           min(rate) AS min_bytes_per_s, median(rate) AS median_bytes_per_s,
           avg(rate) AS mean_bytes_per_s, max(rate) AS max_bytes_per_s
    FROM (
        SELECT w.*, a.direction, a.host_memory, a.bytes, 1e9 * a.bytes / nullif(dur_ns, 0) AS rate
        FROM ({hidden(f"{work} WHERE part = 'memory'", COMPUTATION, "rank, device")}) w
        LEFT JOIN kernel_args a ON a.event_id = w.id
    ) GROUP BY rank, device, kind, direction, host_memory
    """


def run(run: Run, *, all_steps: bool = False, **options: Any) -> duckdb.DuckDBPyRelation:
    """Of steps recorded in full, or with `all_steps` of every copy recorded."""
    prepare_devices(run)
    query = _sql("device_work" if all_steps else "recorded_device_work")
    order = "rank, device, total_ns DESC, kind, direction, host_memory"
    return declared(run.connection, RESULT, query, order, **options)
