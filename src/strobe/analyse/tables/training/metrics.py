"""What did each metric come to: its first and last value, its extremes, and where they are?

Only finite values have extremes. Values that are NaN or infinite are counted beside them.
"""

from typing import Any

import duckdb

from strobe.analyse.select import declared
from strobe.model.schema import Column, Table
from strobe.store.run import Run

NAME = "metrics"

RESULT = Table(
    NAME,
    "What did each metric come to: its first and last value, its extremes, and where they are?",
    (
        Column("rank", "i64", "Rank of the process that logged it."),
        Column("tag", "str", "Name of the metric: loss, learning_rate."),
        Column("source", "str", "What logged it: automatic, strobe.log, tensorboard."),
        Column("count", "i64", "Number of values, including NaN and infinite ones."),
        Column("first_step", "i64", "Lowest step of a value.", nullable=True),
        Column("last_step", "i64", "Highest step of a value.", nullable=True),
        Column("first", "f64", "The value that was logged first."),
        Column("last", "f64", "The value that was logged last."),
        Column("min", "f64", "Smallest finite value.", nullable=True),
        Column("min_step", "i64", "First step at which it is reached.", nullable=True),
        Column("max", "f64", "Largest finite value.", nullable=True),
        Column("max_step", "i64", "First step at which it is reached.", nullable=True),
        Column("nan_count", "i64", "Number of values that are NaN."),
        Column("infinite_count", "i64", "Number of values that are +Inf or -Inf."),
    ),
)

# NaN is the largest number for DuckDB, so it must not take part in extremes.
_SQL = """
    WITH logged AS (
        SELECT rank, tag, source, step, value, isfinite(value) AS is_finite,
               row(attempt, coalesce(ts_ns, 0), coalesce(step, 0)) AS moment
        FROM scalars
    ),
    extremes AS (
        SELECT rank, tag, source, min(value) AS lowest, max(value) AS highest
        FROM logged WHERE is_finite GROUP BY rank, tag, source
    )
    SELECT rank, tag, source, count(*) AS count,
           min(step) AS first_step, max(step) AS last_step,
           arg_min(value, moment) AS first, arg_max(value, moment) AS last,
           any_value(lowest) AS min, min(step) FILTER (value = lowest) AS min_step,
           any_value(highest) AS max, min(step) FILTER (value = highest) AS max_step,
           count(*) FILTER (isnan(value)) AS nan_count,
           count(*) FILTER (isinf(value)) AS infinite_count
    FROM logged LEFT JOIN extremes USING (rank, tag, source)
    GROUP BY rank, tag, source
"""


def run(run: Run, **options: Any) -> duckdb.DuckDBPyRelation:
    return declared(run.connection, RESULT, _SQL, "rank, tag, source", **options)
