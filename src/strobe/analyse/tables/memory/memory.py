"""How much memory was allocated at once, and how much was left at the end of the recording?

For a device whose blocks were not recorded individually, the counter of its allocator has the peak.
"""

from typing import Any

import duckdb

from strobe.analyse.select import declared
from strobe.model.schema import Column, Table
from strobe.store.run import Run

NAME = "memory"

RESULT = Table(
    NAME,
    "How much memory was allocated at once, and how much was left at the end of the recording?",
    (
        Column("rank", "i64", "Rank of the process."),
        Column("device", "str", "cpu, cuda:0, ..."),
        Column("allocations", "i64", "Number of blocks allocated.", nullable=True),
        Column("allocated_bytes", "i64", "Total bytes of these blocks.", nullable=True),
        Column("peak_bytes", "i64", "Most bytes allocated at once, of the recorded allocations."),
        Column("peak_ts_ns", "i64", "When the peak was first reached."),
        Column("left_bytes", "i64", "Bytes without a recorded free.", nullable=True),
    ),
)

# One value per moment: a block freed when another is allocated makes room for it.
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
# What the allocator counted itself: `cuda:0 memory_bytes`.
_COUNTER = " memory_bytes"
COUNTED = f"""
    SELECT rank, device, ts_ns, value::BIGINT AS live_bytes FROM (
        SELECT rank, ts_ns, value, left(name, -{len(_COUNTER)}) AS device
        FROM counters WHERE ends_with(name, '{_COUNTER}')
    ) ANTI JOIN allocations USING (rank, device)
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


_COUNTED_PEAKS = f"""
    SELECT rank, device, NULL AS allocations, NULL AS allocated_bytes,
           max(live_bytes) AS peak_bytes, arg_max(ts_ns, (live_bytes, -ts_ns)) AS peak_ts_ns,
           NULL AS left_bytes
    FROM ({COUNTED}) GROUP BY rank, device
"""


def run(run: Run, **options: Any) -> duckdb.DuckDBPyRelation:
    return declared(
        run.connection, RESULT, f"{SQL} UNION ALL {_COUNTED_PEAKS}", "rank, device", **options
    )
