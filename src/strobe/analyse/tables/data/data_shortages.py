"""How many steps were starved of data, and by which stage of the pipeline?

Counted steps of `data-steps`, grouped by the loader that they waited for longest and the slowest
stage of the batch that they waited for; `starting` if the loader itself was starting.
"""

from typing import Any

import duckdb

from strobe.analyse.select import declared
from strobe.analyse.tables.data import data_steps
from strobe.analyse.tables.steps import steps
from strobe.model.schema import Column, Table
from strobe.store.run import Run

NAME = "data-shortages"

RESULT = Table(
    NAME,
    "How many steps were starved of data, and by which stage of the pipeline?",
    (
        Column("rank", "i64", "Rank of the process."),
        Column("loader", "i64", "Number of the data loader, from 1.", nullable=True),
        Column("stage", "str", "The slowest stage of the batch; null if unknown.", nullable=True),
        Column("steps", "i64", "Steps that waited for it."),
        Column("steps_share", "f64", "The same as a share of the counted steps."),
        Column("wait_ns", "i64", "Total time they waited for data."),
        Column("time_share", "f64", "The same as a share of the time of the counted steps."),
        Column("empty_steps", "i64", "Number of these steps that found no batch ready.", True),
        Column("worst_step", "i64", "The step that waited longest."),
        Column("worst_wait_ns", "i64", "How long that step waited."),
    ),
)

_SQL = f"""
    WITH starved AS ({data_steps.SQL}),
    totals AS (
        SELECT rank, count(*) AS steps, sum(dur_ns - recorder_ns) AS dur_ns
        FROM ({steps.COUNTED}) GROUP BY rank
    )
    SELECT s.rank, s.loader, CASE WHEN s.is_start THEN 'starting' ELSE s.stage END AS stage,
           count(*) AS steps, count(*) / any_value(t.steps) AS steps_share,
           sum(s.wait_ns) AS wait_ns, sum(s.wait_ns) / any_value(t.dur_ns) AS time_share,
           sum((s.ready = 0)::INT) AS empty_steps, arg_max(s.step, s.wait_ns) AS worst_step,
           max(s.wait_ns) AS worst_wait_ns
    FROM starved s SEMI JOIN ({steps.COUNTED}) c USING (rank, step) JOIN totals t USING (rank)
    GROUP BY s.rank, s.loader, CASE WHEN s.is_start THEN 'starting' ELSE s.stage END
"""


def run(run: Run, **options: Any) -> duckdb.DuckDBPyRelation:
    data_steps.prepare(run)
    order = "rank, wait_ns DESC, loader, stage"
    return declared(run.connection, RESULT, _SQL, order, **options)
