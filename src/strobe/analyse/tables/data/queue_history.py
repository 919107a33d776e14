"""How full were the queues of the input pipeline over the run, in few enough rows to draw?

One row for each queue and step; of a long run, for each queue and some steps that follow each
other. Where no steps are known, stretches of time take their place.
"""

from typing import Any

import duckdb

from strobe.analyse.select import declared
from strobe.analyse.stretches import stretch
from strobe.analyse.tables.data import data_queues
from strobe.model.schema import Column, Table
from strobe.store.run import Run

NAME = "queue-history"

RESULT = Table(
    NAME,
    "How full were the queues of the input pipeline over the run, in few enough rows to draw?",
    (
        Column("rank", "i64", "Rank of the process."),
        Column("name", "str", "Which queue."),
        Column("step", "i64", "The first of the steps.", nullable=True),
        Column("last_step", "i64", "The last of them.", nullable=True),
        Column("ts_ns", "i64", "When it was first looked at in them."),
        Column("looks", "i64", "How often it was looked at."),
        Column("mean_length", "f64", "What lay in it, on average."),
        Column("min_length", "i64", "The least that was seen in it."),
        Column("max_length", "i64", "The most that was seen in it."),
        Column("capacity", "i64", "What it holds at most.", nullable=True),
    ),
)

_SQL = f"""
    SELECT rank, name, min(step) AS step, max(step) AS last_step, min(ts_ns) AS ts_ns,
           count(*) AS looks, avg(length) AS mean_length, min(length) AS min_length,
           max(length) AS max_length, max(capacity) AS capacity
    FROM (
        SELECT *, min(step) OVER mine AS first_step, max(step) OVER mine AS last_step,
               min(ts_ns) OVER mine AS first_ns, max(ts_ns) OVER mine AS last_ns
        FROM ({data_queues.SQL}) WINDOW mine AS (PARTITION BY rank)
    )
    GROUP BY rank, name, CASE WHEN first_step IS NULL THEN {stretch("ts_ns", "first_ns", "last_ns")}
                              ELSE {stretch("step", "first_step", "last_step")} END
"""


def run(run: Run, **options: Any) -> duckdb.DuckDBPyRelation:
    data_queues.prepare(run)
    return declared(run.connection, RESULT, _SQL, "rank, name, ts_ns", **options)
