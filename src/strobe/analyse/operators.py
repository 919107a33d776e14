"""Which operators cost most: for each shape, module and direction?

Totals and self times are those of torch.profiler's key_averages: the total of a name that
calls itself counts the inner call again; self time is the length less that of direct children.
"""

from typing import Any

import duckdb

from strobe.analyse.devices import prepare_devices
from strobe.analyse.recorded import prepare
from strobe.analyse.select import declared
from strobe.model.schema import Column, Table
from strobe.store.run import Run

NAME = "operators"

RESULT = Table(
    NAME,
    "Which operators cost most: for each shape, module and direction?",
    (
        Column("rank", "i64", "Rank of the process."),
        Column("name", "str", "Name of the operator: aten::mm."),
        Column("type", "str", "The name without its library: mm."),
        Column("scope", "str", "Full path of the module it worked for.", nullable=True),
        Column("direction", "str", "forward, backward, or else the phase it ran in: update, gap."),
        Column("calls", "i64", "How often it ran."),
        Column("total_ns", "i64", "Time from its start to its end, summed over the calls."),
        Column("self_ns", "i64", "Time in itself: total less what ran inside it."),
        Column("mean_ns", "i64", "Total for each call, rounded."),
        Column("min_ns", "i64", "Shortest call."),
        Column("max_ns", "i64", "Longest call."),
        Column("share", "f64", "Its self time as part of all operators' self time on the rank."),
        Column("cumulative_share", "f64", "Share of this and all operators with more self time."),
        Column("input_shapes", "str", "Shapes of the inputs, as JSON.", nullable=True),
        Column("input_dtypes", "str", "Types of the inputs, as JSON.", nullable=True),
        Column("output_shapes", "str", "Shapes of the outputs, as JSON.", nullable=True),
        Column("flops", "i64", "Floating-point operations of all calls.", nullable=True),
        Column("flops_per_s", "f64", "Floating-point operations a second of total time.", True),
        Column("bytes", "i64", "Bytes touched by all calls.", nullable=True),
        Column("bytes_per_s", "f64", "Bytes touched a second of total time.", nullable=True),
        Column("forward_name", "str", "Backward: the forward operator it belongs to.", True),
        Column("device", "str", "Where it ran what it launched itself: cuda:0.", nullable=True),
        Column("device_ns", "i64", "Time that took there, summed over the calls.", nullable=True),
    ),
)

TYPE = r"regexp_replace(name, '^([A-Za-z0-9_]+::)+', '')"

# Autograd links the outermost operator of a backward node; what runs inside inherits the nearest.
_FORWARD_NAMES = """
    SELECT id, arg_min(forward_name, depth) AS forward_name FROM (
        WITH RECURSIVE linked(id, forward_name, depth) AS (
            SELECT l.to_id, f.name, 0 FROM links l JOIN events f ON f.id = l.from_id
            WHERE l.kind = 'forward_backward'
            UNION ALL
            SELECT o.id, linked.forward_name, linked.depth + 1
            FROM op_times o JOIN linked ON linked.id = o.parent_id
        )
        SELECT * FROM linked
    ) GROUP BY id
"""

_LAUNCHED = """
    SELECT operator_id AS id, min(device) AS device, sum(dur_ns) AS device_ns
    FROM device_work WHERE operator_id IS NOT NULL GROUP BY operator_id
"""


def _sql(source: str) -> str:
    return f"""
    WITH grouped AS (
        SELECT rank, name, {TYPE} AS type, scope,
               direction, input_shapes, input_dtypes,
               count(*) AS calls, sum(dur_ns) AS total_ns, sum(self_ns) AS self_ns,
               round(avg(dur_ns)) AS mean_ns, min(dur_ns) AS min_ns, max(dur_ns) AS max_ns,
               min(output_shapes) AS output_shapes, sum(flops) AS flops, sum(bytes) AS bytes,
               1e9 * sum(flops) / nullif(sum(dur_ns) FILTER (flops IS NOT NULL), 0) AS flops_per_s,
               1e9 * sum(bytes) / nullif(sum(dur_ns) FILTER (bytes IS NOT NULL), 0) AS bytes_per_s,
               min(forward_name) FILTER (is_backward) AS forward_name,
               min(device) AS device, sum(device_ns) AS device_ns
        FROM {source} LEFT JOIN ({_FORWARD_NAMES}) USING (id) LEFT JOIN ({_LAUNCHED}) USING (id)
        GROUP BY rank, name, scope, direction, input_shapes, input_dtypes
    )
    SELECT *, {shares("name, scope, direction, input_shapes, input_dtypes")} FROM grouped
    """


def shares(tie_break: str) -> str:
    """SQL columns share and cumulative_share of self_ns within a rank."""
    return f"""
        coalesce(self_ns / nullif(sum(self_ns) OVER (PARTITION BY rank), 0), 0) AS share,
        coalesce(sum(self_ns) OVER (
            PARTITION BY rank ORDER BY self_ns DESC, {tie_break} ROWS UNBOUNDED PRECEDING
        ) / nullif(sum(self_ns) OVER (PARTITION BY rank), 0), 0) AS cumulative_share
    """


def run(run: Run, *, all_steps: bool = False, **options: Any) -> duckdb.DuckDBPyRelation:
    """Of steps recorded in full, or with `all_steps` of every operator recorded."""
    prepare(run)
    prepare_devices(run)
    query = _sql("op_times" if all_steps else "recorded_ops")
    order = "self_ns DESC, rank, name, scope, direction, input_shapes, input_dtypes"
    return declared(run.connection, RESULT, query, order, **options)
