"""Which kinds of operator cost most, over all shapes and modules?

As torch.profiler's key_averages: the total of a name that calls itself counts the inner call again.
"""

from typing import Any

import duckdb

from strobe.analyse.operators import TYPE, shares
from strobe.analyse.recorded import prepare_sums
from strobe.analyse.select import declared
from strobe.model.schema import Column, Table
from strobe.store.run import Run

NAME = "operator-types"

RESULT = Table(
    NAME,
    "Which kinds of operator cost most, over all shapes and modules?",
    (
        Column("rank", "i64", "Rank of the process."),
        Column("name", "str", "Name of the operator: aten::mm."),
        Column("type", "str", "The name without its library: mm."),
        Column("calls", "i64", "How often it ran."),
        Column("total_ns", "i64", "Time from start to end, summed over the calls, inner ones too."),
        Column("self_ns", "i64", "Time in itself: total less what ran inside it."),
        Column("mean_ns", "i64", "Total for each call, rounded."),
        Column("share", "f64", "Its self time as part of all operators' self time on the rank."),
        Column("cumulative_share", "f64", "Share of this and all types with more self time."),
        Column("flops", "i64", "Floating-point operations of all calls.", nullable=True),
    ),
)


def run(run: Run, *, all_steps: bool = False, **options: Any) -> duckdb.DuckDBPyRelation:
    """Of steps recorded in full, or with `all_steps` of every operator recorded."""
    prepare_sums(run)
    query = f"""
        WITH grouped AS (
            SELECT rank, name, {TYPE} AS type, sum(calls) AS calls, sum(total_ns) AS total_ns,
                   sum(self_ns) AS self_ns, round(sum(total_ns) / sum(calls)) AS mean_ns,
                   sum(flops) AS flops
            FROM op_sums {"" if all_steps else "WHERE is_recorded"} GROUP BY rank, name
        )
        SELECT *, {shares("name")} FROM grouped
    """
    return declared(run.connection, RESULT, query, "self_ns DESC, rank, name", **options)
