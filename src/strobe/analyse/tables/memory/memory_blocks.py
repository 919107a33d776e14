"""Which blocks of memory were at which address, and for how long?

The few thousand blocks per device that used most memory for longest; `area_share` adds up to their
part of all memory over time. Address ranges that none of them used are left out of `offset_bytes`,
so that a picture of them has no empty areas.
"""

from typing import Any

import duckdb

from strobe.analyse.select import declared
from strobe.model.schema import Column, Table
from strobe.store.run import Run

NAME = "memory-blocks"

# More rectangles would be thinner than a pixel.
MOST_BLOCKS = 4_000

RESULT = Table(
    NAME,
    "Which blocks of memory were at which address, and for how long?",
    (
        Column("rank", "i64", "Rank of the process."),
        Column("device", "str", "cpu, cuda:0, ..."),
        Column("ts_ns", "i64", "When it was allocated."),
        Column("end_ns", "i64", "When it was freed, or the recording of memory ended."),
        Column("is_freed", "bool", "Whether its free was recorded."),
        Column("bytes", "i64", "Its size."),
        Column("address", "i64", "Its address."),
        Column("offset_bytes", "i64", "The same, without unused address ranges."),
        Column("step", "i64", "The step it was allocated in.", nullable=True),
        Column("name", "str", "Operator that allocated it.", nullable=True),
        Column("scope", "str", "Full path of the module that it was allocated for.", nullable=True),
        Column("area_share", "f64", "Its bytes × its lifetime, as a share of all blocks."),
        Column("event_id", "i64", "Event that allocated it; joins events.id.", nullable=True),
    ),
)

_SQL = f"""
    WITH ended AS (
        SELECT *, coalesce(
                   freed_ns, max(greatest(ts_ns, coalesce(freed_ns, 0))) OVER (PARTITION BY rank)
               ) AS end_ns
        FROM allocations
    ),
    sized AS (
        SELECT *, bytes::DOUBLE * (end_ns - ts_ns) AS area,
               area / nullif(sum(area) OVER mine, 0) AS area_share
        FROM ended WINDOW mine AS (PARTITION BY rank, device)
    ),
    kept AS (
        SELECT * FROM sized
        QUALIFY row_number() OVER (
            PARTITION BY rank, device ORDER BY area DESC, ts_ns, address
        ) <= {MOST_BLOCKS}
    ),
    -- Blocks in order of their addresses: one that begins beyond all before it begins an island.
    reached AS (
        SELECT rank, device, address, max(address + bytes) AS end_address FROM kept GROUP BY ALL
    ),
    begun AS (
        SELECT *, max(end_address) OVER (
                   PARTITION BY rank, device ORDER BY address
                   ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
               ) AS reach
        FROM reached
    ),
    unused AS (
        SELECT rank, device, address, sum(
                   CASE WHEN reach IS NULL THEN address ELSE greatest(0, address - reach) END
               ) OVER (PARTITION BY rank, device ORDER BY address) AS unused_bytes
        FROM begun
    )
    SELECT k.*, k.freed_ns IS NOT NULL AS is_freed, k.address - u.unused_bytes AS offset_bytes,
           e.name, e.scope, e.step
    FROM kept k JOIN unused u USING (rank, device, address)
    LEFT JOIN events e ON e.id = k.event_id
"""


def run(run: Run, **options: Any) -> duckdb.DuckDBPyRelation:
    return declared(run.connection, RESULT, _SQL, "rank, device, ts_ns, address", **options)
