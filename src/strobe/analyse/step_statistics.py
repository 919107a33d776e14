"""How long is a step and each of its parts, typically and at worst?

Steps that full recording slows down are left out where enough others remain to speak for the run.
"""

from typing import Any

import duckdb

from strobe.analyse import steps
from strobe.analyse.select import declared
from strobe.model.schema import PHASES, Column, Table
from strobe.store.run import Run

NAME = "step-statistics"

RESULT = Table(
    NAME,
    "How long is a step and each of its parts, typically and at worst?",
    (
        Column("rank", "i64", "Rank of the process."),
        Column("part", "str", "step, a part of it, or data: the waiting for data within the gap."),
        Column("steps", "i64", "Steps counted."),
        Column("mean_ns", "i64", "Average, rounded to a nanosecond."),
        Column("median_ns", "i64", "Half of the steps take less."),
        Column("p95_ns", "i64", "95 of 100 steps take less."),
        Column("min_ns", "i64", "Shortest."),
        Column("max_ns", "i64", "Longest."),
        Column("deviation_ns", "i64", "Standard deviation; null for a single step.", True),
        Column("share", "f64", "Its part of all step time; without data these add up to 1."),
    ),
)

PARTS = ("step", "gap", "data", *PHASES[1:])


def sql(rank: str = "rank") -> str:
    """The statistics by rank, or over all ranks when a constant is given for it.

    Needs steps.prepare.
    """
    long = " UNION ALL ".join(
        f"SELECT {rank} AS rank, '{part}' AS part, {'dur' if part == 'step' else part}_ns AS ns,"
        " dur_ns FROM counted"
        for part in PARTS
    )
    return f"""
        WITH counted AS ({steps.UNSLOWED})
        SELECT rank, part, count(*) AS steps, round(avg(ns)) AS mean_ns,
               round(median(ns)) AS median_ns, round(quantile_cont(ns, 0.95)) AS p95_ns,
               min(ns) AS min_ns, max(ns) AS max_ns, round(stddev_samp(ns)) AS deviation_ns,
               coalesce(sum(ns) / nullif(sum(dur_ns), 0), 0) AS share
        FROM ({long}) GROUP BY rank, part
    """


POSITION = "list_position([" + ", ".join(f"'{part}'" for part in PARTS) + "], part)"


def run(run: Run, **options: Any) -> duckdb.DuckDBPyRelation:
    steps.prepare(run)
    return declared(run.connection, RESULT, sql(), f"rank, {POSITION}", **options)
