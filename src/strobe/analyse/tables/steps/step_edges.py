"""Which operator begins the forward pass, and which ends the backward pass?

For each step recorded in full, the outermost operator that starts first in its forward pass, and
the one that ends last in its backward pass. FP_POINT and BP_POINT override them.
"""

from typing import Any

import duckdb

from strobe.analyse import recorded
from strobe.analyse.select import declared
from strobe.model.schema import Column, Table
from strobe.store.run import Run

NAME = "step-edges"

RESULT = Table(
    NAME,
    "Which operator begins the forward pass, and which ends the backward pass?",
    (
        Column("rank", "i64", "Rank of the process."),
        Column("edge", "str", "forward begins, or backward ends."),
        Column("name", "str", "Name of the operator."),
        Column("scope", "str", "Full path of the module it worked for.", nullable=True),
        Column("steps", "i64", "Number of steps in which it was this operator."),
        Column("share", "f64", "Their share of the steps in which it is known."),
        Column("step", "i64", "First of these steps."),
        Column("ts_ns", "i64", "When the operator began in that step."),
        Column("event_id", "i64", "The operator in that step; joins events.id."),
    ),
)

_SQL = f"""
    WITH passes AS (
        SELECT rank, step, min(ts_ns) FILTER (name = 'forward') AS forward_ns,
               max(end_ns) FILTER (name = 'backward') AS backward_ns
        FROM outline WHERE kind = 'phase' AND name IN ('forward', 'backward')
            AND {recorded.in_recorded_steps("rank", "step")}
        GROUP BY rank, step
    ),
    operators AS (
        SELECT t.rank, e.step, e.ts_ns, e.dur_ns, p.forward_ns, p.backward_ns,
               {{'name': e.name, 'scope': e.scope, 'ts_ns': e.ts_ns, 'id': e.id}} AS operator
        FROM events e JOIN tracks t ON t.id = e.track_id
        JOIN passes p ON p.rank = t.rank AND p.step = e.step
        WHERE e.kind = 'op'
    ),
    edges AS (
        SELECT rank, step, 'forward begins' AS edge,
               arg_min(operator, (ts_ns, -dur_ns, operator.id)) AS operator
        FROM operators WHERE ts_ns >= forward_ns GROUP BY rank, step
        UNION ALL
        SELECT rank, step, 'backward ends',
               arg_max(operator, (ts_ns + dur_ns, dur_ns, -operator.id))
        FROM operators WHERE ts_ns + dur_ns <= backward_ns GROUP BY rank, step
    )
    SELECT rank, edge, operator.name AS name, operator.scope AS scope, count(*) AS steps,
           count(*) / sum(count(*)) OVER (PARTITION BY rank, edge) AS share, min(step) AS step,
           arg_min(operator.ts_ns, step) AS ts_ns, arg_min(operator.id, step) AS event_id
    FROM edges GROUP BY rank, edge, operator.name, operator.scope
"""


def run(run: Run, **options: Any) -> duckdb.DuckDBPyRelation:
    recorded.prepare_outline(run)
    order = "rank, edge = 'backward ends', steps DESC, name"
    return declared(run.connection, RESULT, _SQL, order, **options)
