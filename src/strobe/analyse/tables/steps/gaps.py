"""When did a step run no operator, and what ran before and after?

In steps recorded in full, on the training thread (the one with most operator time) and the threads
that ran backward operators for it. If call stacks were not recorded (--with-stack), the line of
user code is the one that the training thread's samples in the gap show, if there are any.
"""

from typing import Any

import duckdb

from strobe.analyse.recorded import WORK_KINDS, prepare
from strobe.analyse.select import declared
from strobe.model.schema import COMPILED_PROGRAMS, Column, Table
from strobe.store.run import Run

NAME = "gaps"

# A shorter gap is the ordinary cost of a Python call between two operators.
SHORTEST_NS = 10_000

# How many Python frames to show, innermost first.
FRAMES = 4

RESULT = Table(
    NAME,
    "When did a step run no operator, and what ran before and after?",
    (
        Column("rank", "i64", "Rank of the process."),
        Column("step", "i64", "The step that contains it."),
        Column("ts_ns", "i64", "Start, in nanoseconds since the run began."),
        Column("dur_ns", "i64", "Length."),
        Column("phase", "str", "The phase of the step that contains most of it.", nullable=True),
        Column("before", "str", "Operator that ended before it.", nullable=True),
        Column("after", "str", "Operator that began after it.", nullable=True),
        Column("scope_before", "str", "Module of the operator before.", nullable=True),
        Column("scope_after", "str", "Module of the operator after.", nullable=True),
        Column(
            "python",
            "str",
            "Python functions running during it, innermost first; or the sampled user line.",
            nullable=True,
        ),
    ),
)

_SQL = f"""
    WITH RECURSIVE busiest AS (
        SELECT rank, arg_max(track_id, self_ns) AS track_id
        FROM (SELECT rank, track_id, sum(self_ns) AS self_ns FROM op_times GROUP BY ALL)
        GROUP BY rank
    ),
    threads AS (
        SELECT rank, track_id FROM busiest
        UNION SELECT rank, track_id FROM op_times WHERE is_backward
        UNION SELECT rank, id FROM tracks WHERE name = '{COMPILED_PROGRAMS}'
    ),
    work AS (
        SELECT th.rank, e.ts_ns, e.ts_ns + e.dur_ns AS end_ns, e.id
        FROM events e JOIN threads th USING (track_id) LEFT JOIN events p ON p.id = e.parent_id
        WHERE e.kind IN {WORK_KINDS} AND (p.kind IS NULL OR p.kind NOT IN {WORK_KINDS})
    ),
    -- The edges of steps count as work of no length, so that no gap reaches across one.
    edged AS (
        SELECT * FROM work
        UNION ALL SELECT rank, ts_ns, ts_ns, NULL FROM recorded_steps
        UNION ALL SELECT rank, end_ns, end_ns, NULL FROM recorded_steps
    ),
    idle AS (
        SELECT rank, max(end_ns) OVER earlier AS ts_ns, ts_ns AS end_ns,
               last_value(id IGNORE NULLS) OVER earlier AS before_id,
               first_value(id IGNORE NULLS) OVER later AS after_id
        FROM edged WINDOW
            earlier AS (PARTITION BY rank ORDER BY ts_ns, end_ns
                        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),
            later AS (PARTITION BY rank ORDER BY ts_ns, end_ns
                      ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)
    ),
    gaps AS (
        SELECT i.*, s.step, i.end_ns - i.ts_ns AS dur_ns
        FROM (SELECT * FROM idle WHERE end_ns - ts_ns >= {{shortest}}) i
        ASOF JOIN recorded_steps s ON s.rank = i.rank AND s.ts_ns <= i.ts_ns
        WHERE i.end_ns <= s.end_ns
    ),
    phases AS (
        SELECT g.rank, g.ts_ns,
               arg_max(e.name, least(g.end_ns, e.ts_ns + e.dur_ns) - greatest(g.ts_ns, e.ts_ns))
                   AS phase
        FROM gaps g
        JOIN tracks t ON t.rank = g.rank
        JOIN events e ON e.track_id = t.id AND e.step = g.step AND e.kind = 'phase'
         AND e.ts_ns < g.end_ns AND e.ts_ns + e.dur_ns > g.ts_ns
        GROUP BY ALL
    ),
    -- Whatever runs through a gap is the last function begun before it, or lies around that one.
    python AS (SELECT * FROM events WHERE kind = 'python'),
    climb(rank, ts_ns, end_ns, parent_id, names) AS (
        SELECT g.rank, g.ts_ns, g.end_ns, p.parent_id,
               CASE WHEN p.ts_ns + p.dur_ns >= g.end_ns THEN [p.name] ELSE [] END
        FROM gaps g JOIN busiest b USING (rank)
        ASOF JOIN python p ON p.track_id = b.track_id AND p.ts_ns <= g.ts_ns
        UNION ALL
        SELECT c.rank, c.ts_ns, c.end_ns, e.parent_id,
               CASE WHEN e.kind = 'python' AND e.ts_ns + e.dur_ns >= c.end_ns
                    THEN list_append(c.names, e.name) ELSE c.names END
        FROM climb c JOIN events e ON e.id = c.parent_id
        WHERE len(c.names) < {FRAMES}
    ),
    frames AS (SELECT rank, ts_ns, arg_max(names, len(names)) AS names FROM climb GROUP BY ALL),
    -- A sample stands for the time since the one before it.
    looks AS (
        SELECT rank, ts_ns, concat_ws(' ', place, function) AS line, place IS NOT NULL AS is_placed,
               coalesce(ts_ns - lag(ts_ns) OVER (PARTITION BY rank ORDER BY ts_ns), 0) AS dur_ns
        FROM samples WHERE thread = 'training'
    ),
    lines AS (
        SELECT g.rank, g.ts_ns, l.line, sum(least(l.dur_ns, l.ts_ns - g.ts_ns)) AS dur_ns
        FROM looks l ASOF JOIN gaps g ON g.rank = l.rank AND g.ts_ns <= l.ts_ns
        WHERE l.ts_ns < g.end_ns AND l.is_placed
        GROUP BY ALL
    ),
    seen AS (SELECT rank, ts_ns, arg_max(line, (dur_ns, line)) AS line FROM lines GROUP BY ALL)
    SELECT g.*, phase, before.name AS before, after.name AS after,
           before.scope AS scope_before, after.scope AS scope_after,
           coalesce(nullif(array_to_string(names, ' < '), ''), seen.line) AS python
    FROM gaps g LEFT JOIN phases USING (rank, ts_ns) LEFT JOIN frames USING (rank, ts_ns)
    LEFT JOIN seen USING (rank, ts_ns)
    LEFT JOIN events before ON before.id = g.before_id
    LEFT JOIN events after ON after.id = g.after_id
"""


def run(run: Run, *, min_ns: int | None = None, **options: Any) -> duckdb.DuckDBPyRelation:
    """Gaps of at least `min_ns` (default: 10 µs), longest first."""
    prepare(run)
    shortest = max(1, SHORTEST_NS if min_ns is None else min_ns)
    query = _SQL.format(shortest=shortest)
    return declared(run.connection, RESULT, query, "dur_ns DESC, rank, ts_ns", **options)
