"""When did an operator or kernel run, and how long did its calls take?

One row per call. If there are more calls than a picture could show, one row per stretch of time,
with its longest call and the number of calls. The calls are those that the tables operators and
kernels count. Without a name, the operator that cost most is shown.
"""

from typing import Any

import duckdb

from strobe.analyse.recorded import (
    WORK_KINDS,
    in_recorded_steps,
    prepare_outline,
    prepare_self_times,
)
from strobe.analyse.select import declared, is_like, is_within, quoted
from strobe.analyse.stretches import stretch
from strobe.analyse.tables.operators import operator_types
from strobe.model.schema import Column, Table
from strobe.store.run import Run

NAME = "call-history"

RESULT = Table(
    NAME,
    "When did an operator or kernel run, and how long did its calls take?",
    (
        Column("rank", "i64", "Rank of the process."),
        Column("name", "str", "Name of the operator or kernel: aten::mm."),
        Column("device", "str", "cpu, cuda:0, ..."),
        Column("ts_ns", "i64", "Start of the longest call in the stretch of time."),
        Column("dur_ns", "i64", "Duration of that call."),
        Column("step", "i64", "The step it began in.", nullable=True),
        Column("scope", "str", "Full path of the module it worked for.", nullable=True),
        Column("calls", "i64", "Number of calls in the stretch."),
        Column("total_ns", "i64", "Total time of these calls."),
        Column("min_ns", "i64", "Duration of the shortest call."),
        Column("event_id", "i64", "The longest call; joins events.id."),
        Column("track_id", "i64", "The track it ran on; joins tracks.id."),
    ),
)


def _sql(operator: str, scope: str | None, all_steps: bool) -> str:
    wanted = f"e.name = {quoted(operator)} AND e.kind IN {WORK_KINDS}"
    wanted += " AND e.id NOT IN (SELECT id FROM merged_ops)"
    if not all_steps:
        # Device work belongs to the step that launched it.
        wanted += f" AND {in_recorded_steps('t.rank', 'coalesce(l.step, e.step)')}"
    if scope:
        wanted += f" AND {is_within('e.scope', quoted(scope))}"
    return f"""
    WITH calls AS (
        SELECT t.rank, t.device, e.id, e.track_id, e.ts_ns, e.dur_ns, e.step, e.scope,
               min(e.ts_ns) OVER () AS first_ns, max(e.ts_ns) OVER () AS last_ns
        FROM events e JOIN tracks t ON t.id = e.track_id
        LEFT JOIN events l ON l.id = e.launcher_id WHERE {wanted}
    )
    SELECT rank, {quoted(operator)} AS name, device, count(*) AS calls, sum(dur_ns) AS total_ns,
           min(dur_ns) AS min_ns, max(dur_ns) AS dur_ns, arg_max(ts_ns, (dur_ns, -id)) AS ts_ns,
           arg_max_null(step, (dur_ns, -id)) AS step, arg_max_null(scope, (dur_ns, -id)) AS scope,
           arg_max(id, (dur_ns, -id)) AS event_id, arg_max(track_id, (dur_ns, -id)) AS track_id
    FROM calls GROUP BY rank, device, {stretch("ts_ns", "first_ns", "last_ns")}
    """


def run(
    run: Run, *, name: str | None = None, scope: str | None = None, all_steps: bool = False,
    **options: Any,
) -> duckdb.DuckDBPyRelation:  # fmt: skip
    """Of the operator or kernel with this or the most similar name, in this module and those
    inside.

    In steps recorded in full, or with `all_steps` in every one.
    """
    prepare_outline(run)
    prepare_self_times(run)
    query = _sql(_chosen(run, name), scope, all_steps)
    return declared(run.connection, RESULT, query, "ts_ns, rank, device", **options)


def _chosen(run: Run, name: str | None) -> str:
    if name is None:
        rows = operator_types.run(run, top=1).project("name").fetchall()
        return rows[0][0] if rows else ""
    if run.sql(f"SELECT 1 FROM events WHERE name = {quoted(name)} LIMIT 1").fetchall():
        return name
    names = f"SELECT name, sum(dur_ns) AS ns FROM events WHERE kind IN {WORK_KINDS} GROUP BY name"
    alike = f"SELECT name FROM ({names}) WHERE {is_like('name', name)} ORDER BY ns DESC, name"
    rows = run.sql(f"{alike} LIMIT 1").fetchall()
    return rows[0][0] if rows else name
