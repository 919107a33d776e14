"""How full were the queues of the input pipeline over the run, in few enough rows to draw?

One row per queue and step; for a long run, per queue and several consecutive steps. If no steps are
known, stretches of time are used instead.
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
        Column("name", "str", "Name of the queue."),
        Column("step", "i64", "First step of the row.", nullable=True),
        Column("last_step", "i64", "Last step of the row.", nullable=True),
        Column("ts_ns", "i64", "When it was first measured in them."),
        Column("looks", "i64", "How often it was measured."),
        Column("mean_length", "f64", "Mean length."),
        Column("min_length", "i64", "Minimum length."),
        Column("max_length", "i64", "Maximum length."),
        Column("capacity", "i64", "Its capacity.", nullable=True),
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
