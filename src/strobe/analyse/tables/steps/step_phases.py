"""Where in its step does each part begin and end?

A part may have several pieces: the gap of a step with two batches, the forward of each.
"""

from typing import Any

import duckdb

from strobe.analyse import recorded
from strobe.analyse.select import declared
from strobe.model.schema import Column, Table
from strobe.store.run import Run

NAME = "step-phases"

RESULT = Table(
    NAME,
    "Where in its step does each part begin and end?",
    (
        Column("rank", "i64", "Rank of the process."),
        Column("step", "i64", "Number of the step, counted from 1."),
        Column("part", "str", "gap, forward, backward, all_reduce, update, rest or recorder."),
        Column("begin_ns", "i64", "Start, in nanoseconds since the step began."),
        Column("end_ns", "i64", "End, in nanoseconds since the step began."),
        Column("dur_ns", "i64", "Duration."),
        Column("ts_ns", "i64", "Start, in nanoseconds since the run began."),
        Column("event_id", "i64", "The phase; joins events.id."),
    ),
)

_SQL = f"""
    SELECT p.rank, p.step, p.name AS part, p.ts_ns - s.ts_ns AS begin_ns,
           p.end_ns - s.ts_ns AS end_ns, p.dur_ns, p.ts_ns, p.id AS event_id
    FROM outline p JOIN ({recorded.steps("outline")}) s ON s.rank = p.rank AND s.step = p.step
    WHERE p.kind = 'phase' AND p.dur_ns > 0
"""


def run(run: Run, **options: Any) -> duckdb.DuckDBPyRelation:
    recorded.prepare_outline(run)
    return declared(run.connection, RESULT, _SQL, "rank, step, ts_ns", **options)
