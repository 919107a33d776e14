"""How many steps were starved of data, and by which stage of the pipeline?

Of the steps in `data-steps` that are counted, by the loader that they waited for longest and what
took longest of the batch that they waited for; `starting` where the loader itself was starting.
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
        Column("stage", "str", "What took longest of the batch; null: not known.", nullable=True),
        Column("steps", "i64", "Steps that waited for it."),
        Column("steps_share", "f64", "The same, as part of the steps counted."),
        Column("wait_ns", "i64", "How long they waited for data, in sum."),
        Column("time_share", "f64", "The same, as part of the time of the steps counted."),
        Column("empty_steps", "i64", "Of the steps, those that found no batch ready.", True),
        Column("worst_step", "i64", "The step that waited longest."),
        Column("worst_wait_ns", "i64", "How long that one waited."),
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
