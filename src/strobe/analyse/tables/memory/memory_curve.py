"""How much memory was in use as training went on?

Of each device the blocks that were seen allocated and not yet freed, where allocations were
recorded, or else what its allocator counted; and as device `process` what the whole process had for
itself, which is always measured. At most a few thousand rows for each: of every stretch of time the
highest and the lowest value.
"""

from typing import Any

import duckdb

from strobe.analyse.select import declared
from strobe.analyse.stretches import stretch
from strobe.analyse.tables.memory.memory import COUNTED, LIVE
from strobe.model.schema import Column, Table
from strobe.store.run import Run

NAME = "memory-curve"

# The device of memory that the system gave the process, as against what the framework allocated.
PROCESS = "process"
# What the process shares with others (libraries, mapped files) is not its own; where that could not
# be told apart, all of it.
_OWN, _ALL = "rss_private_bytes", "rss_bytes"

RESULT = Table(
    NAME,
    "How much memory was in use as training went on?",
    (
        Column("rank", "i64", "Rank of the process."),
        Column("device", "str", f"cpu, cuda:0, ...; {PROCESS}: of the whole process."),
        Column("ts_ns", "i64", "When the stretch had most."),
        Column("live_bytes", "i64", "Bytes in use then: the highest value of the stretch."),
        Column("lowest_bytes", "i64", "The lowest value of the stretch."),
    ),
)

# Every value over time, of blocks and of processes.
VALUES = f"""
    SELECT rank, device, ts_ns, live_bytes FROM ({LIVE})
    UNION ALL
    SELECT rank, device, ts_ns, live_bytes FROM ({COUNTED})
    UNION ALL
    SELECT rank, '{PROCESS}', ts_ns, value::BIGINT FROM counters
    WHERE name = '{_OWN}' OR (
        name = '{_ALL}' AND rank NOT IN (SELECT rank FROM counters WHERE name = '{_OWN}')
    )
"""
_SQL = f"""
    SELECT rank, device, arg_max(ts_ns, (live_bytes, -ts_ns)) AS ts_ns,
           max(live_bytes) AS live_bytes, min(live_bytes) AS lowest_bytes
    FROM (
        SELECT *, min(ts_ns) OVER mine AS first_ns, max(ts_ns) OVER mine AS last_ns
        FROM ({VALUES}) WINDOW mine AS (PARTITION BY rank, device)
    ) GROUP BY rank, device, {stretch("ts_ns", "first_ns", "last_ns")}
"""


def run(run: Run, **options: Any) -> duckdb.DuckDBPyRelation:
    return declared(run.connection, RESULT, _SQL, "rank, device, ts_ns", **options)
