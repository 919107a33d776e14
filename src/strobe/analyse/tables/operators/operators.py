"""Which operators cost most: for each shape, module and direction?

Time is device time where the rank has a device: rows are ranked by it, shares are of all work on
the rank's devices, rates are over the time of the kernels. Without a device it is self time on the
host. Calls, totals and self times are those of torch.profiler's key_averages.
"""

from typing import Any

import duckdb

from strobe.analyse.operator_work import prepare_work
from strobe.analyse.recorded import prepare
from strobe.analyse.select import declared
from strobe.model.schema import Column, Table
from strobe.store.run import Run

NAME = "operators"

SHARE_DOC = "Share of all device time of the rank, or of all self time if it has no device."

RESULT = Table(
    NAME,
    "Which operators cost most: for each shape, module and direction?",
    (
        Column("rank", "i64", "Rank of the process."),
        Column("name", "str", "Name of the operator: aten::mm."),
        Column("type", "str", "Name without the library: mm."),
        Column("scope", "str", "Full path of the module it worked for.", nullable=True),
        Column(
            "direction", "str", "forward, backward, or otherwise the phase it ran in: update, gap."
        ),
        Column("calls", "i64", "Number of calls."),
        Column("device", "str", "Device that ran what it launched: cuda:0.", nullable=True),
        Column("device_ns", "i64", "Device time of the kernels it launched itself.", True),
        Column("total_ns", "i64", "Total host time from start to end."),
        Column("self_ns", "i64", "Self time on the host: total minus what ran inside it."),
        Column("mean_ns", "i64", "Mean host time per call, rounded."),
        Column("min_ns", "i64", "Shortest call on the host."),
        Column("max_ns", "i64", "Longest call on the host."),
        Column("share", "f64", SHARE_DOC),
        Column("cumulative_share", "f64", "Share of this operator and all that cost more."),
        Column("input_shapes", "str", "Shapes of the inputs, as JSON.", nullable=True),
        Column("input_dtypes", "str", "Types of the inputs, as JSON.", nullable=True),
        Column("output_shapes", "str", "Shapes of the outputs, as JSON.", nullable=True),
        Column("flops", "i64", "Floating-point operations of all calls.", nullable=True),
        Column(
            "flops_per_s",
            "f64",
            "FLOPs per second of kernel time, otherwise of the call's time.",
            True,
        ),
        Column("bytes", "i64", "Bytes read and written by all calls.", nullable=True),
        Column(
            "bytes_per_s",
            "f64",
            "Bytes per second of kernel time, otherwise of the call's time.",
            True,
        ),
        Column("forward_name", "str", "For backward: the forward operator it belongs to.", True),
        Column("device_total_ns", "i64", "Device time including the operators inside it.", True),
    ),
)

TYPE = r"regexp_replace(name, '^([A-Za-z0-9_]+::)+', '')"

# Autograd links the outermost operator of a backward node; what runs inside inherits the nearest.
_FORWARD_NAMES = """
    SELECT id, arg_min(forward_name, depth) AS forward_name FROM (
        WITH RECURSIVE linked(id, forward_name, depth) AS (
            SELECT coalesce(m.into_id, l.to_id), f.name, 0
            FROM links l JOIN events f ON f.id = l.from_id
            LEFT JOIN merged_ops m ON m.id = l.to_id
            WHERE l.kind = 'forward_backward'
            UNION ALL
            SELECT o.id, linked.forward_name, linked.depth + 1
            FROM op_times o JOIN linked ON linked.id = o.parent_id
        )
        SELECT * FROM linked
    ) GROUP BY id
"""

_WORK = """
    SELECT w.id, w.device_total_ns, w.device_ns, w.flops AS work_flops, d.device
    FROM op_work w LEFT JOIN (
        SELECT coalesce(m.into_id, operator_id) AS id, min(device) AS device
        FROM device_work LEFT JOIN merged_ops m ON m.id = operator_id GROUP BY ALL
    ) d USING (id)
"""


def _rate(work: str) -> str:
    """SQL: the rate per second, over device time where the rank has a device."""
    kernels = f"sum(device_total_ns) FILTER ({work} IS NOT NULL)"
    calls = f"sum(dur_ns) FILTER ({work} IS NOT NULL)"
    time = f"CASE WHEN any_value(whole_ns) IS NULL THEN {calls} ELSE {kernels} END"
    return f"1e9 * sum({work}) / nullif({time}, 0)"


def _sql(source: str, whole: str) -> str:
    return f"""
    WITH calls AS (
        SELECT o.* EXCLUDE flops, w.* EXCLUDE id, work_flops AS flops, d.{whole} AS whole_ns
        FROM {source} o LEFT JOIN ({_WORK}) w ON w.id = o.id LEFT JOIN device_wholes d USING (rank)
    ),
    grouped AS (
        SELECT rank, name, {TYPE} AS type, scope,
               direction, input_shapes, input_dtypes, any_value(whole_ns) AS whole_ns,
               count(*) AS calls, sum(dur_ns) AS total_ns, sum(self_ns) AS self_ns,
               round(avg(dur_ns)) AS mean_ns, min(dur_ns) AS min_ns, max(dur_ns) AS max_ns,
               min(output_shapes) AS output_shapes, sum(flops) AS flops, sum(bytes) AS bytes,
               {_rate("flops")} AS flops_per_s, {_rate("bytes")} AS bytes_per_s,
               min(forward_name) FILTER (is_backward) AS forward_name,
               min(device) AS device, coalesce(sum(device_ns), 0) AS work_ns,
               coalesce(sum(device_total_ns), 0) AS work_total_ns
        FROM calls LEFT JOIN ({_FORWARD_NAMES}) USING (id)
        GROUP BY rank, name, scope, direction, input_shapes, input_dtypes
    )
    SELECT *, CASE WHEN whole_ns IS NOT NULL THEN work_total_ns END AS device_total_ns,
           {shares("name, scope, direction, input_shapes, input_dtypes")} FROM grouped
    """


def shares(tie_break: str) -> str:
    """SQL columns device_ns, share and cumulative_share of self_ns, work_ns and whole_ns.

    `whole_ns` is all device time of the rank; null where none can be attributed.
    """
    time = "CASE WHEN whole_ns IS NULL THEN self_ns ELSE work_ns END"
    whole = "nullif(coalesce(whole_ns, sum(self_ns) OVER (PARTITION BY rank)), 0)"
    return f"""
        CASE WHEN whole_ns IS NOT NULL THEN work_ns END AS device_ns,
        coalesce({time} / {whole}, 0) AS share,
        coalesce(sum({time}) OVER (
            PARTITION BY rank ORDER BY {time} DESC, self_ns DESC, {tie_break}
            ROWS UNBOUNDED PRECEDING
        ) / {whole}, 0) AS cumulative_share
    """


ORDER = "device_ns DESC NULLS LAST, self_ns DESC, rank, name"


def run(run: Run, *, all_steps: bool = False, **options: Any) -> duckdb.DuckDBPyRelation:
    """Of steps recorded in full, or with `all_steps` of every operator recorded."""
    prepare(run)
    prepare_work(run)
    query = _sql("op_times", "all_ns") if all_steps else _sql("recorded_ops", "recorded_ns")
    order = f"{ORDER}, scope, direction, input_shapes, input_dtypes"
    return declared(run.connection, RESULT, query, order, **options)
