"""How many launches were outstanding on each stream, and when?

One row per change: a launch adds one to the queue of its stream, a start removes one. The length
stays until the next row. Work whose launch is unknown is left out.
"""

from typing import Any

import duckdb

from strobe.analyse.devices import prepare_devices
from strobe.analyse.select import declared
from strobe.model.schema import Column, Table
from strobe.store.run import Run

NAME = "launch-queue"

RESULT = Table(
    NAME,
    "How many launches were outstanding on each stream, and when?",
    (
        Column("rank", "i64", "Rank of the process."),
        Column("device", "str", "cuda:0, npu:0, ..."),
        Column("stream", "str", "Name of the stream."),
        Column("stream_id", "i64", "Number of the stream.", nullable=True),
        Column("ts_ns", "i64", "When the queue changed, in nanoseconds since the run began."),
        Column("length", "i64", "Launches not yet started, from then on."),
        Column("change", "i64", "1 for a launch, -1 for a start."),
        Column("event_id", "i64", "The work launched or started; joins events.id."),
    ),
)

# If a launch and a start coincide, the launch comes first, so that no queue drops below zero.
SQL = """
    SELECT *, sum(change) OVER queue AS length, lead(ts_ns) OVER queue - ts_ns AS dur_ns
    FROM (
        SELECT rank, device, track_id, stream, stream_id, window_number, id AS event_id,
               is_recorded, unnest([launch_ts_ns, ts_ns]) AS ts_ns, unnest([1, -1]) AS change
        FROM device_work WHERE launch_ts_ns IS NOT NULL
    )
    WINDOW queue AS (
        PARTITION BY track_id, window_number ORDER BY ts_ns, change DESC, event_id
        ROWS UNBOUNDED PRECEDING
    )
"""


def run(run: Run, **options: Any) -> duckdb.DuckDBPyRelation:
    prepare_devices(run)
    order = "rank, device, stream_id, stream, ts_ns, change DESC, event_id"
    return declared(run.connection, RESULT, SQL, order, **options)
