"""How much memory is left in use when a step ends, and does it grow from step to step?

For each device whose allocations were recorded, in the recorded steps. Device `process` is the
private memory of the whole process, in all steps in which it was measured.
"""

from typing import Any

import duckdb

from strobe.analyse.recorded import in_recorded_steps
from strobe.analyse.select import declared
from strobe.analyse.tables.memory.memory_curve import PROCESS, VALUES
from strobe.analyse.tables.steps import steps
from strobe.model.schema import Column, Table
from strobe.store.run import Run

NAME = "memory-steps"

RESULT = Table(
    NAME,
    "How much memory is left in use when a step ends, and does it grow from step to step?",
    (
        Column("rank", "i64", "Rank of the process."),
        Column("device", "str", f"cpu, cuda:0, ...; {PROCESS}: of the whole process."),
        Column("step", "i64", "Number of the step, counted from 1."),
        Column("ts_ns", "i64", "When the step ended."),
        Column("end_bytes", "i64", "Bytes in use then."),
        Column("peak_bytes", "i64", "Most bytes in use during the step."),
        Column("growth_bytes", "i64", "Growth since the end of the previous step, if known.", True),
    ),
)

# A value is valid until the next one: a step's peak is its highest, or the one that it began with.
_SQL = f"""
    WITH memory_values AS MATERIALIZED ({VALUES}),
    devices AS (
        SELECT rank, device, min(ts_ns) AS first_ns, max(ts_ns) AS last_ns
        FROM memory_values GROUP BY rank, device
    ),
    of_steps AS (
        SELECT d.rank, d.device, s.step, s.ts_ns, s.ts_ns + s.dur_ns AS end_ns
        FROM step_times s JOIN devices d ON d.rank = s.rank
        WHERE s.ts_ns + s.dur_ns >= d.first_ns AND s.ts_ns <= d.last_ns
          AND (d.device = '{PROCESS}' OR {in_recorded_steps("s.rank", "s.step")})
    ),
    within AS (
        SELECT o.rank, o.device, o.step, max(v.live_bytes) AS high_bytes
        FROM memory_values v
        ASOF JOIN of_steps o ON o.rank = v.rank AND o.device = v.device AND o.ts_ns <= v.ts_ns
        WHERE v.ts_ns <= o.end_ns GROUP BY ALL
    ),
    ends AS (
        SELECT o.*, v.live_bytes AS end_bytes, b.live_bytes AS begin_bytes
        FROM of_steps o
        ASOF JOIN memory_values v
            ON v.rank = o.rank AND v.device = o.device AND v.ts_ns <= o.end_ns
        ASOF LEFT JOIN memory_values b
            ON b.rank = o.rank AND b.device = o.device AND b.ts_ns <= o.ts_ns
    )
    SELECT e.rank, e.device, e.step, e.end_ns AS ts_ns, e.end_bytes,
           greatest(e.end_bytes, coalesce(w.high_bytes, 0), coalesce(e.begin_bytes, 0))
               AS peak_bytes,
           CASE WHEN lag(e.step) OVER mine = e.step - 1
                THEN e.end_bytes - lag(e.end_bytes) OVER mine END AS growth_bytes
    FROM ends e LEFT JOIN within w USING (rank, device, step)
    WINDOW mine AS (PARTITION BY e.rank, e.device ORDER BY e.step)
"""


def run(run: Run, **options: Any) -> duckdb.DuckDBPyRelation:
    steps.prepare(run)
    return declared(run.connection, RESULT, _SQL, "rank, device, step", **options)
