"""How long is a step and each of its parts, typically and at worst?

Over the counted steps (`is_counted` in the table `steps`), without the time that Strobe itself took
in them.
"""

from typing import Any

import duckdb

from strobe.analyse.select import declared
from strobe.analyse.tables.steps import steps
from strobe.model.schema import PHASES, Column, Table
from strobe.store.run import Run

NAME = "step-statistics"

RESULT = Table(
    NAME,
    "How long is a step and each of its parts, typically and at worst?",
    (
        Column("rank", "i64", "Rank of the process."),
        Column(
            "part",
            "str",
            "step, a part of it, or data: waiting for data, which is part of the gap.",
        ),
        Column("steps", "i64", "Steps counted: `is_counted` in the table `steps`."),
        Column("mean_ns", "i64", "Mean, rounded to a nanosecond."),
        Column("median_ns", "i64", "Median."),
        Column("p95_ns", "i64", "95th percentile."),
        Column("min_ns", "i64", "Shortest."),
        Column("max_ns", "i64", "Longest."),
        Column("deviation_ns", "i64", "Standard deviation; null for a single step.", True),
        Column(
            "share",
            "f64",
            "Share of all step time without the recorder's; gap to rest add up to 1.",
        ),
    ),
)

PARTS = ("step", "gap", "data", *PHASES[1:])


def sql(rank: str = "rank") -> str:
    """The statistics by rank, or over all ranks if a constant is given for it.

    Needs steps.prepare.
    """
    lengths = {part: f"{part}_ns" for part in PARTS} | {"step": "dur_ns - recorder_ns"}
    long = " UNION ALL ".join(
        f"SELECT {rank} AS rank, '{part}' AS part, {length} AS ns,"
        " dur_ns - recorder_ns AS trained_ns FROM counted"
        for part, length in lengths.items()
    )
    return f"""
        WITH counted AS ({steps.COUNTED})
        SELECT rank, part, count(*) AS steps, round(avg(ns)) AS mean_ns,
               round(median(ns)) AS median_ns, round(quantile_cont(ns, 0.95)) AS p95_ns,
               min(ns) AS min_ns, max(ns) AS max_ns, round(stddev_samp(ns)) AS deviation_ns,
               coalesce(sum(ns) / nullif(sum(trained_ns), 0), 0) AS share
        FROM ({long}) GROUP BY rank, part
    """


POSITION = "list_position([" + ", ".join(f"'{part}'" for part in PARTS) + "], part)"


def run(run: Run, **options: Any) -> duckdb.DuckDBPyRelation:
    steps.prepare(run)
    return declared(run.connection, RESULT, sql(), f"rank, {POSITION}", **options)
