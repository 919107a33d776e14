"""How did the parts of a step develop over the run, in few enough rows to draw?

One row per step; for a long run, per rank and several consecutive steps: their means, and the
longest of them.
"""

from typing import Any

import duckdb

from strobe.analyse.select import declared
from strobe.analyse.stretches import stretch
from strobe.analyse.tables.steps import steps
from strobe.model.schema import PHASES, Column, Table
from strobe.store.run import Run

NAME = "step-history"

_PARTS = tuple(f"{part}_ns" for part in (*PHASES, "data"))

RESULT = Table(
    NAME,
    "How did the parts of a step develop over the run, in few enough rows to draw?",
    (
        Column("rank", "i64", "Rank of the process."),
        Column("step", "i64", "First step of the row."),
        Column("last_step", "i64", "Last step of the row; the first, if the row is one step."),
        Column("ts_ns", "i64", "Start of the first step, in nanoseconds since the run began."),
        Column("dur_ns", "i64", "Mean duration of the row's steps."),
        Column("longest_ns", "i64", "Duration of the longest step."),
        Column("longest_step", "i64", "Number of that step."),
        *(Column(name, "i64", f"{name[:-3]} per step, mean of the row.") for name in _PARTS),
        Column("outliers", "i64", "Number of steps much longer than the rank's median step."),
        Column("slowed", "i64", "Number of steps slowed down by full recording."),
    ),
)

_SQL = f"""
    SELECT rank, min(step) AS step, max(step) AS last_step, min(ts_ns) AS ts_ns,
           round(avg(dur_ns)) AS dur_ns, max(dur_ns) AS longest_ns,
           arg_max(step, (dur_ns, -step)) AS longest_step,
           {", ".join(f"round(avg({name})) AS {name}" for name in _PARTS)},
           count(*) FILTER (is_outlier AND NOT is_slowed) AS outliers,
           count(*) FILTER (is_slowed) AS slowed
    FROM (
        SELECT *, min(step) OVER mine AS first_step, max(step) OVER mine AS final_step
        FROM step_times WINDOW mine AS (PARTITION BY rank)
    )
    GROUP BY rank, {stretch("step", "first_step", "final_step")}
"""


def run(run: Run, **options: Any) -> duckdb.DuckDBPyRelation:
    steps.prepare(run)
    return declared(run.connection, RESULT, _SQL, "rank, step", **options)
