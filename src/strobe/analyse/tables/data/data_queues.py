"""How full were the queues of the input pipeline, step by step?"""

from typing import Any

import duckdb

from strobe.analyse.select import declared
from strobe.analyse.tables.steps import steps
from strobe.model.schema import Column, Table
from strobe.store.run import Run

NAME = "data-queues"

RESULT = Table(
    NAME,
    "How full were the queues of the input pipeline, step by step?",
    (
        Column("rank", "i64", "Rank of the process."),
        Column("step", "i64", "The step during which it was measured.", nullable=True),
        Column("ts_ns", "i64", "When, in nanoseconds since the run began."),
        Column("name", "str", "Name of the queue."),
        Column("length", "i64", "Batches in it, or requests for batches."),
        Column("capacity", "i64", "Its capacity.", nullable=True),
        Column("use_ratio", "f64", "length divided by capacity.", nullable=True),
    ),
)

SQL = """
    SELECT q.rank, CASE WHEN q.ts_ns < s.ts_ns + s.dur_ns THEN s.step END AS step, q.ts_ns, q.name,
           q.length, q.capacity, q.length / nullif(q.capacity, 0) AS use_ratio
    FROM queues q
    ASOF LEFT JOIN step_times s ON s.rank = q.rank AND s.ts_ns <= q.ts_ns
"""


def prepare(run: Run) -> None:
    """Prepare what the query reads in the run's connection."""
    steps.prepare(run)


def run(run: Run, **options: Any) -> duckdb.DuckDBPyRelation:
    prepare(run)
    return declared(run.connection, RESULT, SQL, "rank, ts_ns, name", **options)
