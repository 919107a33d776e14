"""What did each thread and stream do while operators were recorded?"""

from typing import Any

import duckdb

from strobe.analyse.intervals import covered
from strobe.analyse.recorded import WINDOWS, WORK_KINDS
from strobe.analyse.select import declared
from strobe.model.schema import Column, Table
from strobe.store.run import Run

NAME = "threads"

RESULT = Table(
    NAME,
    __doc__,
    (
        Column("rank", "i64", "Rank of the process."),
        Column("device", "str", "cpu, cuda:0, ..."),
        Column("thread", "str", "Name of the thread or stream."),
        Column("thread_id", "i64", "Operating-system id of the thread, or stream number.", True),
        Column(
            "operators",
            "i64",
            "Number of operators and kernels that ran on it, nested ones included.",
        ),
        Column("busy_ns", "i64", "Time in which at least one of them ran."),
        Column("share", "f64", "busy_ns divided by the time in which operators were recorded."),
    ),
)

_WORK = f"""
    SELECT e.track_id, e.ts_ns, e.ts_ns + e.dur_ns AS end_ns
    FROM events e WHERE e.kind IN {WORK_KINDS}
"""
_SQL = f"""
    WITH work AS ({_WORK}),
    busy AS ({covered("SELECT * FROM work", "track_id")}),
    counts AS (SELECT track_id, count(*) AS operators FROM work GROUP BY track_id),
    extents AS (
        SELECT t.rank, max(end_ns) - min(ts_ns) AS dur_ns
        FROM work JOIN tracks t ON t.id = track_id GROUP BY t.rank
    ),
    windows AS (SELECT rank, sum(end_ns - ts_ns) AS dur_ns FROM ({WINDOWS}) GROUP BY rank)
    SELECT t.rank, t.device, t.name AS thread, t.thread AS thread_id, c.operators,
           b.covered_ns AS busy_ns,
           coalesce(b.covered_ns / nullif(coalesce(w.dur_ns, x.dur_ns), 0), 0) AS share
    FROM counts c JOIN busy b USING (track_id) JOIN tracks t ON t.id = c.track_id
    LEFT JOIN extents x ON x.rank = t.rank LEFT JOIN windows w ON w.rank = t.rank
"""


def run(run: Run, **options: Any) -> duckdb.DuckDBPyRelation:
    return declared(run.connection, RESULT, _SQL, "rank, busy_ns DESC, thread", **options)
