"""Which single calls of operators cost most, on the device and on the host?

One row per call. Its device time is that of the kernels, copies and collectives it launched itself,
including waits before them; if several devices work at once, that of the slowest. Its host time is
its self time, including waits for a device. Totals include the operators inside it. FLOPs are those
of the operator that did most of the work: aten::convolution delegates to the
aten::cudnn_convolution inside it. A call that several threads share is one call.
"""

from typing import Any

import duckdb

from strobe.analyse.operator_work import prepare_work
from strobe.analyse.recorded import prepare
from strobe.analyse.select import declared
from strobe.analyse.tables.operators.operators import TYPE
from strobe.model.schema import Column, Table
from strobe.store.run import Run

NAME = "operator-calls"

RESULT = Table(
    NAME,
    "Which single calls of operators cost most, on the device and on the host?",
    (
        Column("rank", "i64", "Rank of the process."),
        Column("name", "str", "Name of the operator: aten::mm, or its name in its graph: fc.ADD."),
        Column("type", "str", "Name without the library: mm."),
        Column("device_ns", "i64", "Device time of what it launched itself.", True),
        Column("host_ns", "i64", "Self time on the host, including waits for a device."),
        Column("flops", "i64", "Floating-point operations.", nullable=True),
        Column("bytes", "i64", "Bytes of inputs and known outputs.", nullable=True),
        Column("input_shapes", "str", "Shapes of the inputs, as JSON.", nullable=True),
        Column("output_shapes", "str", "Shapes of the outputs, as JSON.", nullable=True),
        Column("input_dtypes", "str", "Types of the inputs, as JSON.", nullable=True),
        Column("scope", "str", "Full path of the module it worked for.", nullable=True),
        Column("step", "i64", "The step it began in.", nullable=True),
        Column(
            "device_wait_ns", "i64", "Part of device_ns before its first kernel could start.", True
        ),
        Column("host_wait_ns", "i64", "Part of host_ns spent waiting for a device or for inputs."),
        Column("device_total_ns", "i64", "Device time of everything that ran in it.", True),
        Column("host_total_ns", "i64", "Time from start to end on the host."),
        Column("event_id", "i64", "Its event; joins events.id."),
        Column("call", "i64", "Its number in the source.", nullable=True),
    ),
)

# A launch outside of every operator has Python frames around it: no need to search further up.
_CLIMB_LIMIT = 16

_SQL = f"""
    WITH RECURSIVE launched AS MATERIALIZED (
        SELECT e.launcher_id, t.device, sum(e.dur_ns) AS ns,
               coalesce(sum(e.dur_ns) FILTER (e.kind = 'sync'), 0) AS wait_ns
        FROM events e JOIN tracks t ON t.id = e.track_id
        WHERE e.launcher_id IS NOT NULL AND t.device NOT IN ('cpu', 'steps')
          AND e.kind <> 'annotation'
        GROUP BY e.launcher_id, t.device
    ),
    launchers AS MATERIALIZED (
        SELECT e.id, e.kind, e.parent_id, e.track_id, e.ts_ns FROM events e
        WHERE e.id IN (SELECT launcher_id FROM launched)
    ),
    climb(launcher_id, id, kind, parent_id, depth) AS (
        SELECT id, id, kind, parent_id, 0 FROM launchers
        UNION ALL
        SELECT c.launcher_id, e.id, e.kind, e.parent_id, c.depth + 1
        FROM climb c JOIN events e ON e.id = c.parent_id
        WHERE c.kind <> 'op' AND c.depth < {_CLIMB_LIMIT}
    ),
    devices AS (
        SELECT id, max(ns) AS device_ns, max(wait_ns) AS device_wait_ns, sum(ns) AS own_ns FROM (
            SELECT coalesce(m.into_id, c.id) AS id, l.device, sum(l.ns) AS ns,
                   sum(l.wait_ns) AS wait_ns
            FROM launched l JOIN climb c ON c.launcher_id = l.launcher_id AND c.kind = 'op'
            LEFT JOIN merged_ops m ON m.id = c.id
            GROUP BY ALL
        ) GROUP BY id
    ),
    -- What was launched on a thread up to a moment: two of them tell what was within an operator.
    sums AS (
        SELECT track_id, ts_ns, max(up_to_ns) AS up_to_ns FROM (
            SELECT s.track_id, s.ts_ns,
                   sum(l.ns) OVER (PARTITION BY s.track_id ORDER BY s.ts_ns) AS up_to_ns
            FROM launched l JOIN launchers s ON s.id = l.launcher_id
        ) GROUP BY track_id, ts_ns
    ),
    waits AS (
        SELECT parent_id AS id, sum(dur_ns) AS wait_ns FROM events
        WHERE kind = 'sync' AND parent_id IS NOT NULL GROUP BY parent_id
    ),
    calls AS (
        SELECT o.rank, coalesce(a.node, o.name) AS name, {TYPE.replace("name", "o.name")} AS type,
               CASE WHEN h.flops IS NOT NULL AND h.device_total_ns > 0
                    THEN coalesce(d.device_ns, 0) ELSE d.device_ns END AS device_ns,
               d.device_wait_ns, o.self_ns + coalesce(w.wait_ns, 0) AS host_ns,
               coalesce(w.wait_ns, 0) AS host_wait_ns, o.dur_ns AS host_total_ns,
               coalesce(ended.up_to_ns, 0) - coalesce(began.up_to_ns, 0) AS within_ns,
               CASE WHEN a.call IS NULL AND within_ns > coalesce(d.own_ns, 0) THEN within_ns
                    ELSE d.device_ns END AS device_total_ns,
               h.flops, o.bytes, o.input_shapes, o.output_shapes, o.input_dtypes, o.scope, o.step,
               o.id AS event_id, a.call, t.process
        FROM {{source}} o JOIN tracks t ON t.id = o.track_id
        LEFT JOIN op_args a ON a.event_id = o.id
        LEFT JOIN devices d ON d.id = o.id
        LEFT JOIN waits w ON w.id = o.id
        LEFT JOIN op_work h ON h.id = o.id
        ASOF LEFT JOIN sums began ON began.track_id = o.track_id AND began.ts_ns < o.ts_ns
        ASOF LEFT JOIN sums ended
            ON ended.track_id = o.track_id AND ended.ts_ns < o.ts_ns + o.dur_ns
    )
    SELECT * FROM calls WHERE call IS NULL
    UNION ALL BY NAME
    SELECT rank, call, process, name, type, max(device_ns) AS device_ns,
           max(device_wait_ns) AS device_wait_ns, max(host_ns) AS host_ns,
           max(host_wait_ns) AS host_wait_ns, max(host_total_ns) AS host_total_ns,
           max(device_total_ns) AS device_total_ns, any_value(flops) AS flops,
           any_value(bytes) AS bytes,
           any_value(input_shapes) AS input_shapes,
           any_value(output_shapes) AS output_shapes, any_value(input_dtypes) AS input_dtypes,
           any_value(scope) AS scope, min(step) AS step, min(event_id) AS event_id
    FROM calls WHERE call IS NOT NULL GROUP BY rank, call, process, name, type
"""


def run(run: Run, *, all_steps: bool = False, **options: Any) -> duckdb.DuckDBPyRelation:
    """Of steps recorded in full, or with `all_steps` of every operator recorded."""
    prepare(run)
    prepare_work(run)
    query = _SQL.format(source="op_times" if all_steps else "recorded_ops")
    order = "device_ns DESC NULLS LAST, host_ns DESC, event_id"
    return declared(run.connection, RESULT, query, order, **options)
