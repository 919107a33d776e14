"""Which steps waited for data, and what were they waiting for?

A step is listed where waiting took a good part of it. The wait told of is its longest.
"""

from typing import Any

import duckdb

from strobe.analyse import data_waits
from strobe.analyse.select import declared
from strobe.analyse.tables.steps import steps
from strobe.model.schema import Column, Table
from strobe.store.run import Run

NAME = "data-steps"

# Below this share of a step, shorter waits would not be felt.
BOTTLENECK_RATIO = 0.05

# Parts of making a batch, in the order in which it goes through them.
STAGES = ("reading", "transform", "collate", "transfer")

RESULT = Table(
    NAME,
    "Which steps waited for data, and what were they waiting for?",
    (
        Column("rank", "i64", "Rank of the process."),
        Column("step", "i64", "Number of the step, counted from 1."),
        Column("dur_ns", "i64", "Length of the step."),
        Column("wait_ns", "i64", "Of that, waiting for data."),
        Column("share", "f64", "wait_ns as part of dur_ns."),
        Column("loader", "i64", "Number of the loader it waited for longest.", nullable=True),
        Column("is_start", "bool", "Whether that wait was for the loader to start.", True),
        Column("ready", "i64", "Batches that lay ready when that wait began.", nullable=True),
        Column("pinned", "i64", "Of those, in pinned memory.", nullable=True),
        Column("orders", "i64", "Orders that no worker had taken up yet, of all workers.", True),
        Column("worker", "i64", "Worker that made the batch; null: none, or unknown.", True),
        Column("begun_ns", "i64", "When work on that batch began.", nullable=True),
        Column("stage", "str", f"What took longest of it: {', '.join(STAGES)}, no core.", True),
        Column("stage_ns", "i64", "How long that took.", nullable=True),
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
    """Make known to the run's connection what the query reads."""
    steps.prepare(run)
    data_waits.prepare(run)


def run(run: Run, **options: Any) -> duckdb.DuckDBPyRelation:
    prepare(run)
    return declared(run.connection, RESULT, SQL, "rank, step", **options)
