"""Which kinds of operator cost most, over all shapes and modules?

Ranked by device time where the rank has a device, otherwise by self time on the host. Calls, totals
and self times are those of torch.profiler's key_averages.
"""

from typing import Any

import duckdb

from strobe.analyse.operator_work import prepare_work
from strobe.analyse.recorded import prepare_sums
from strobe.analyse.select import declared
from strobe.analyse.tables.operators.operators import ORDER, SHARE_DOC, TYPE, shares
from strobe.model.schema import Column, Table
from strobe.store.run import Run

NAME = "operator-types"

RESULT = Table(
    NAME,
    "Which kinds of operator cost most, over all shapes and modules?",
    (
        Column("rank", "i64", "Rank of the process."),
        Column("name", "str", "Name of the operator: aten::mm."),
        Column("type", "str", "Name without the library: mm."),
        Column("calls", "i64", "Number of calls."),
        Column("device_ns", "i64", "Device time of the kernels it launched itself.", True),
        Column("total_ns", "i64", "Total host time from start to end."),
        Column("self_ns", "i64", "Self time on the host: total minus what ran inside it."),
        Column("mean_ns", "i64", "Mean host time per call, rounded."),
        Column("share", "f64", SHARE_DOC),
        Column("cumulative_share", "f64", "Share of this type and all that cost more."),
        Column("flops", "i64", "Floating-point operations of all calls.", nullable=True),
    ),
)


def run(run: Run, *, all_steps: bool = False, **options: Any) -> duckdb.DuckDBPyRelation:
    """Of steps recorded in full, or with `all_steps` of every operator recorded."""
    prepare_sums(run)
    prepare_work(run)
    chosen = "" if all_steps else "WHERE is_recorded"
    query = f"""
        WITH host AS (
            SELECT rank, name, {TYPE} AS type, sum(calls) AS calls, sum(total_ns) AS total_ns,
                   sum(self_ns) AS self_ns, round(sum(total_ns) / sum(calls)) AS mean_ns
            FROM op_sums {chosen} GROUP BY rank, name
        ),
        work AS (
            SELECT rank, name, sum(device_ns) AS work_ns FROM device_sums {chosen} GROUP BY ALL
        ),
        flops AS (SELECT rank, name, sum(flops) AS flops FROM op_work {chosen} GROUP BY ALL),
        grouped AS (
            SELECT h.*, coalesce(w.work_ns, 0) AS work_ns, f.flops,
                   d.{"all_ns" if all_steps else "recorded_ns"} AS whole_ns
            FROM host h LEFT JOIN work w USING (rank, name) LEFT JOIN flops f USING (rank, name)
            LEFT JOIN device_wholes d USING (rank)
        )
        SELECT *, {shares("name")} FROM grouped
    """
    return declared(run.connection, RESULT, query, ORDER, **options)
