"""Why was each stream idle: did it wait for the host, for the next kernel, or for something else?

A gap between two pieces of work belongs to the one that ends it. It is host wait if that work was
launched only after the gap had begun: the host was too slow. Otherwise the work was already queued,
and the gap is kernel wait if it is shorter than 30 µs (the device's own overhead between kernels),
or other wait: for another stream, or for memory. A row without a stream is the device: gaps in
which none of its streams worked.
"""

from typing import Any

import duckdb

from strobe.analyse.devices import prepare_devices
from strobe.analyse.select import declared
from strobe.model.schema import Column, Table
from strobe.store.run import Run

NAME = "idle"

# As in HolisticTraceAnalysis, whose limit is 30 in the trace's own unit, microseconds.
KERNEL_WAIT_NS = 30_000

RESULT = Table(
    NAME,
    "Why was each stream idle: did it wait for the host, for the next kernel, or for something "
    "else?",
    (
        Column("rank", "i64", "Rank of the process."),
        Column("device", "str", "cuda:0, npu:0, ..."),
        Column("stream", "str", "Name of the stream; null for the device.", nullable=True),
        Column("stream_id", "i64", "Number of the stream.", nullable=True),
        Column("dur_ns", "i64", "From its first work to its last."),
        Column("busy_ns", "i64", "Time in which something ran."),
        Column("idle_ns", "i64", "Time in which nothing ran; the sum of the three parts below."),
        Column("host_wait_ns", "i64", "Gaps whose next work was launched after the gap had begun."),
        Column("kernel_wait_ns", "i64", "Short gaps whose next work was launched before."),
        Column("other_ns", "i64", "Long gaps whose next work was launched before."),
        Column("idle_share", "f64", "idle_ns divided by dur_ns."),
        Column("host_wait_share", "f64", "host_wait_ns divided by idle_ns."),
        Column("gaps", "i64", "Number of gaps."),
        Column("longest_ns", "i64", "Longest gap."),
    ),
)


def _gaps(by: str) -> str:
    """Work ordered by start, each with the furthest end before it: between the two is a gap."""
    return f"""
        SELECT *, greatest(0, ts_ns - coalesce(reach_ns, ts_ns)) AS gap_ns FROM (
            SELECT rank, device, track_id, window_number, ts_ns, end_ns, launch_ts_ns,
                   max(end_ns) OVER (
                       PARTITION BY {by}, window_number ORDER BY ts_ns, end_ns, id
                       ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
                   ) AS reach_ns
            FROM device_work
        )
    """


def _sums(by: str) -> str:
    return f"""
        SELECT {by}, sum(dur_ns) AS dur_ns, sum(idle_ns) AS idle_ns,
               sum(host_wait_ns) AS host_wait_ns, sum(kernel_wait_ns) AS kernel_wait_ns,
               sum(gaps) AS gaps, max(longest_ns) AS longest_ns
        FROM (
            SELECT {by}, max(end_ns) - min(ts_ns) AS dur_ns, sum(gap_ns) AS idle_ns,
                   coalesce(sum(gap_ns) FILTER (is_host_wait), 0) AS host_wait_ns,
                   coalesce(sum(gap_ns) FILTER (
                       NOT is_host_wait AND gap_ns < {KERNEL_WAIT_NS}), 0) AS kernel_wait_ns,
                   count(*) FILTER (gap_ns > 0) AS gaps, max(gap_ns) AS longest_ns
            FROM (SELECT *, coalesce(launch_ts_ns > reach_ns, false) AS is_host_wait
                  FROM ({_gaps(by)}))
            GROUP BY {by}, window_number
        ) GROUP BY {by}
    """


_SQL = f"""
    WITH rows AS (
        SELECT NULL AS stream, NULL AS stream_id, * FROM ({_sums("rank, device")})
        UNION ALL
        SELECT t.name, t.thread, t.rank, t.device, s.* EXCLUDE track_id
        FROM ({_sums("track_id")}) s JOIN tracks t ON t.id = s.track_id
    )
    SELECT *, dur_ns - idle_ns AS busy_ns, idle_ns - host_wait_ns - kernel_wait_ns AS other_ns,
           coalesce(idle_ns / nullif(dur_ns, 0), 0) AS idle_share,
           coalesce(host_wait_ns / nullif(idle_ns, 0), 0) AS host_wait_share
    FROM rows
"""


def run(run: Run, **options: Any) -> duckdb.DuckDBPyRelation:
    prepare_devices(run)
    order = "rank, device, stream IS NOT NULL, stream_id, stream"
    return declared(run.connection, RESULT, _SQL, order, **options)
