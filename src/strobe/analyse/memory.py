"""How much memory was allocated at once, and how much was left at the end of the recording?"""

from typing import Any

import duckdb

from strobe.analyse.select import declared
from strobe.model.schema import Column, Table
from strobe.store.run import Run

NAME = "memory"

RESULT = Table(
    NAME,
    __doc__,
    (
        Column("rank", "i64", "Rank of the process."),
        Column("device", "str", "cpu, cuda:0, ..."),
        Column("allocations", "i64", "Blocks allocated."),
        Column("allocated_bytes", "i64", "Their bytes, summed."),
        Column("peak_bytes", "i64", "Most bytes allocated at once, of those seen allocated."),
        Column("peak_ts_ns", "i64", "When that was first so."),
        Column("left_bytes", "i64", "Bytes never seen freed."),
    ),
)

# One value a moment: a block freed at the moment another is allocated makes room for it.
LIVE = """
    SELECT rank, device, ts_ns, sum(sum(change)) OVER (
        PARTITION BY rank, device ORDER BY ts_ns ROWS UNBOUNDED PRECEDING
    )::BIGINT AS live_bytes
    FROM (
        SELECT rank, device, ts_ns, bytes AS change FROM allocations
        UNION ALL
        SELECT rank, device, freed_ns, -bytes FROM allocations WHERE freed_ns IS NOT NULL
    ) GROUP BY rank, device, ts_ns
"""
SQL = f"""
    WITH peaks AS (
        SELECT rank, device, max(live_bytes) AS peak_bytes,
               min(ts_ns) FILTER (live_bytes = most) AS peak_ts_ns
        FROM (
            SELECT *, max(live_bytes) OVER (PARTITION BY rank, device) AS most FROM ({LIVE})
        ) GROUP BY rank, device
    )
    SELECT rank, device, count(*) AS allocations, sum(bytes) AS allocated_bytes,
           any_value(peak_bytes) AS peak_bytes, any_value(peak_ts_ns) AS peak_ts_ns,
           coalesce(sum(bytes) FILTER (freed_ns IS NULL), 0) AS left_bytes
    FROM allocations JOIN peaks USING (rank, device) GROUP BY rank, device
"""


def run(run: Run, **options: Any) -> duckdb.DuckDBPyRelation:
    return declared(run.connection, RESULT, SQL, "rank, device", **options)
