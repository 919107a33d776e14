"""Which modules and operators held the memory at its peak?

The blocks that were allocated and not yet freed when most memory was in use, by the operator that
allocated them and its module. Memory allocated before the recording began (often the parameters)
was not recorded and is not included.
"""

from typing import Any

import duckdb

from strobe.analyse.select import declared
from strobe.analyse.tables.memory import memory
from strobe.model.schema import Column, Table
from strobe.store.run import Run

NAME = "memory-holders"

RESULT = Table(
    NAME,
    "Which modules and operators held the memory at its peak?",
    (
        Column("rank", "i64", "Rank of the process."),
        Column("device", "str", "cpu, cuda:0, ..."),
        Column("scope", "str", "Full path of the module that it was allocated for.", nullable=True),
        Column("name", "str", "Operator that allocated it.", nullable=True),
        Column("bytes", "i64", "Bytes allocated at the peak."),
        Column("blocks", "i64", "Number of blocks."),
        Column("share", "f64", "Share of the peak."),
        Column("cumulative_share", "f64", "Share of this row and all that held more."),
        Column("oldest_ts_ns", "i64", "When the oldest of the blocks was allocated."),
        Column("largest_bytes", "i64", "The largest of the blocks."),
        Column(
            "event_id",
            "i64",
            "Event that allocated the largest block; joins events.id.",
            nullable=True,
        ),
    ),
)

_SQL = """
    WITH held AS (
        SELECT a.rank, a.device, a.bytes, a.ts_ns, a.event_id, e.name, e.scope
        FROM allocations a
        JOIN memory_peaks p ON p.rank = a.rank AND p.device = a.device
        LEFT JOIN events e ON e.id = a.event_id
        WHERE a.ts_ns <= p.peak_ts_ns AND (a.freed_ns IS NULL OR a.freed_ns > p.peak_ts_ns)
    ),
    grouped AS (
        SELECT rank, device, scope, name, sum(bytes) AS bytes, count(*) AS blocks,
               min(ts_ns) AS oldest_ts_ns, max(bytes) AS largest_bytes,
               arg_max(event_id, bytes) AS event_id
        FROM held GROUP BY rank, device, scope, name
    )
    SELECT *, bytes / nullif(sum(bytes) OVER mine, 0) AS share,
           sum(bytes) OVER (
               PARTITION BY rank, device ORDER BY bytes DESC, scope, name ROWS UNBOUNDED PRECEDING
           ) / nullif(sum(bytes) OVER mine, 0) AS cumulative_share
    FROM grouped WINDOW mine AS (PARTITION BY rank, device)
"""


def run(run: Run, **options: Any) -> duckdb.DuckDBPyRelation:
    run.make("memory_peaks", memory.SQL)
    return declared(
        run.connection, RESULT, _SQL, "rank, device, bytes DESC, scope, name", **options
    )
