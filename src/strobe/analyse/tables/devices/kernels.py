"""Which kernels cost most on each device, and which operator launches them?

Kernels, collectives, copies and fills by name. The operator is the innermost one around the launch,
and the scope is its module; if several operators launch the same kernel, it is the one with most of
its time.
"""

from typing import Any

import duckdb

from strobe.analyse.devices import prepare_devices
from strobe.analyse.select import declared
from strobe.model.schema import Column, Table
from strobe.store.run import Run

NAME = "kernels"

RESULT = Table(
    NAME,
    "Which kernels cost most on each device, and which operator launches them?",
    (
        Column("rank", "i64", "Rank of the process."),
        Column("device", "str", "cuda:0, npu:0, ..."),
        Column("name", "str", "Name of the kernel."),
        Column("kind", "str", "kernel, collective, memcpy or memset."),
        Column("calls", "i64", "Number of calls."),
        Column("total_ns", "i64", "Total time over all calls."),
        Column("mean_ns", "i64", "Mean time per call, rounded."),
        Column("min_ns", "i64", "Shortest call."),
        Column("max_ns", "i64", "Longest call."),
        Column("deviation_ns", "i64", "Standard deviation of the calls, rounded.", True),
        Column("share", "f64", "Its share of the time of all kernels on the device."),
        Column("cumulative_share", "f64", "Share of this kernel and all with more time."),
        Column("operator", "str", "Operator that launched most of its time.", nullable=True),
        Column("operators", "i64", "Number of different operators that launched it."),
        Column("scope", "str", "Module with most of its time.", nullable=True),
    ),
)


def _sql(source: str) -> str:
    return f"""
    WITH of_launch AS (
        SELECT rank, device, name, kind, operator, scope, sum(dur_ns) AS part_ns
        FROM {source} GROUP BY ALL
    ),
    launched AS (
        SELECT rank, device, name, kind, count(DISTINCT operator) AS operators,
               arg_max(operator, part_ns) AS operator, arg_max(scope, part_ns) AS scope
        FROM of_launch GROUP BY ALL
    ),
    grouped AS (
        SELECT rank, device, name, kind, count(*) AS calls, sum(dur_ns) AS total_ns,
               round(avg(dur_ns)) AS mean_ns, min(dur_ns) AS min_ns, max(dur_ns) AS max_ns,
               round(stddev_samp(dur_ns)) AS deviation_ns
        FROM {source} GROUP BY ALL
    )
    SELECT *,
           coalesce(total_ns / nullif(sum(total_ns) OVER device, 0), 0) AS share,
           coalesce(sum(total_ns) OVER (
               PARTITION BY rank, device ORDER BY total_ns DESC, name, kind ROWS UNBOUNDED PRECEDING
           ) / nullif(sum(total_ns) OVER device, 0), 0) AS cumulative_share
    FROM grouped JOIN launched USING (rank, device, name, kind)
    WINDOW device AS (PARTITION BY rank, device)
    """


def run(run: Run, *, all_steps: bool = False, **options: Any) -> duckdb.DuckDBPyRelation:
    """Of steps recorded in full, or with `all_steps` of every kernel recorded."""
    prepare_devices(run)
    query = _sql("device_work" if all_steps else "recorded_device_work")
    return declared(run.connection, RESULT, query, "total_ns DESC, rank, device, name", **options)
