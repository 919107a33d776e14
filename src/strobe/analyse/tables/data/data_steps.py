"""Which steps waited for data, and what were they waiting for?

A step is listed if it spent a considerable share of its time waiting. The wait shown is its
longest.
"""

from typing import Any

import duckdb

from strobe.analyse import data_waits
from strobe.analyse.select import declared
from strobe.analyse.tables.steps import steps
from strobe.model.schema import Column, Table
from strobe.store.run import Run

NAME = "data-steps"

# Waits shorter than this share of a step would not be noticeable.
BOTTLENECK_RATIO = 0.05

# The stages of building a batch, in order.
STAGES = ("reading", "transform", "collate", "transfer")

RESULT = Table(
    NAME,
    "Which steps waited for data, and what were they waiting for?",
    (
        Column("rank", "i64", "Rank of the process."),
        Column("step", "i64", "Number of the step, counted from 1."),
        Column("dur_ns", "i64", "Length of the step."),
        Column("wait_ns", "i64", "Time of that spent waiting for data."),
        Column("share", "f64", "wait_ns divided by dur_ns."),
        Column("loader", "i64", "Number of the loader that it waited for longest.", nullable=True),
        Column("is_start", "bool", "Whether that wait was for the loader to start.", True),
        Column("ready", "i64", "Batches that were ready when that wait began.", nullable=True),
        Column("pinned", "i64", "Number of those in pinned memory.", nullable=True),
        Column("orders", "i64", "Requests that no worker had taken yet, over all workers.", True),
        Column("worker", "i64", "Worker that built the batch; null if none or unknown.", True),
        Column("begun_ns", "i64", "When work on that batch began.", nullable=True),
        Column("stage", "str", f"Its slowest stage: {', '.join(STAGES)}, no core.", True),
        Column("stage_ns", "i64", "How long that stage took.", nullable=True),
    ),
)

SQL = f"""
    WITH longest AS (
        SELECT * FROM data_waits
        QUALIFY row_number() OVER (PARTITION BY rank, step ORDER BY dur_ns DESC, ts_ns) = 1
    ),
    stages AS (
        SELECT *, [reading_ns, transform_ns, collate_ns, send_ns, queued_ns] AS parts
        FROM longest
    )
    SELECT s.rank, s.step, s.dur_ns, s.data_ns AS wait_ns, s.data_ns / s.dur_ns AS share,
           nullif(l.loader, 0) AS loader, l.is_start, l.ready, l.pinned, l.orders,
           nullif(l.worker, -1) AS worker,
           l.begun_ns, list_max(l.parts) AS stage_ns,
           CASE WHEN stage_ns IS NOT NULL
                THEN {[*STAGES, "no core"]}[list_position(l.parts, stage_ns)] END AS stage
    FROM step_times s
    LEFT JOIN stages l ON l.rank = s.rank AND l.step = s.step
    WHERE s.dur_ns > 0 AND s.data_ns >= {BOTTLENECK_RATIO} * s.dur_ns
"""


def prepare(run: Run) -> None:
    """Prepare what the query reads in the run's connection."""
    steps.prepare(run)
    data_waits.prepare(run)


def run(run: Run, **options: Any) -> duckdb.DuckDBPyRelation:
    prepare(run)
    return declared(run.connection, RESULT, SQL, "rank, step", **options)
