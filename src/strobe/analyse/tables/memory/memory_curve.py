"""How much memory was in use as training went on?

For each device, the recorded blocks that were not yet freed, or what its allocator counted if
allocations were not recorded. Device `process` is the private memory of the whole process, which is
always measured. At most a few thousand rows each: the highest and lowest value of every stretch of
time.
"""

from typing import Any

import duckdb

from strobe.analyse.select import declared
from strobe.analyse.stretches import stretch
from strobe.analyse.tables.memory.memory import COUNTED, LIVE
from strobe.model.schema import Column, Table
from strobe.store.run import Run

NAME = "memory-curve"

# The device for memory that the system gave the process, as opposed to the framework's allocator.
PROCESS = "process"
# Memory shared with others (libraries, mapped files) is not included, where it can be
# distinguished.
_OWN, _ALL = "rss_private_bytes", "rss_bytes"

RESULT = Table(
    NAME,
    "How much memory was in use as training went on?",
    (
        Column("rank", "i64", "Rank of the process."),
        Column("device", "str", f"cpu, cuda:0, ...; {PROCESS}: of the whole process."),
        Column("ts_ns", "i64", "When the stretch of time had most in use."),
        Column("live_bytes", "i64", "Bytes in use then: the maximum of the stretch."),
        Column("lowest_bytes", "i64", "Minimum of the stretch."),
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
