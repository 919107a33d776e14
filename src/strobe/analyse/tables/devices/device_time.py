"""What was each device doing: computing, communicating, moving memory, idling?

The four parts add up to the length exactly. If several things run at once, the time counts as
computation if any kernel computes, otherwise as communication if any collective runs, otherwise as
memory. A row without a step is the whole recording: from the first work of the device to its last
(in each window, if there are several). Steps are those of the host: if a device lags behind it,
work of one step can fall into the next.
"""

from typing import Any

import duckdb

from strobe.analyse.devices import PARTS, prepare_devices
from strobe.analyse.recorded import steps
from strobe.analyse.select import declared
from strobe.model.schema import Column, Table
from strobe.store.run import Run

NAME = "device-time"

RESULT = Table(
    NAME,
    "What was each device doing: computing, communicating, moving memory, idling?",
    (
        Column("rank", "i64", "Rank of the process."),
        Column("device", "str", "cuda:0, npu:0, ..."),
        Column("step", "i64", "The step; null for the whole recording.", nullable=True),
        Column("ts_ns", "i64", "Start, in nanoseconds since the run began."),
        Column("dur_ns", "i64", "Duration; the sum of the four parts below."),
        Column("compute_ns", "i64", "Time in which a kernel ran."),
        Column("communication_ns", "i64", "Time in which a collective ran and nothing computed."),
        Column("memory_ns", "i64", "Time in which a copy or a fill ran, and neither of the above."),
        Column("idle_ns", "i64", "Time in which nothing ran."),
        Column("compute_share", "f64", "Share of the duration that is compute_ns."),
        Column("communication_share", "f64", "Share of the duration that is communication_ns."),
        Column("memory_share", "f64", "Share of the duration that is memory_ns."),
        Column("idle_share", "f64", "Share of the duration that is idle_ns."),
    ),
)

# Steps with known device time: those recorded in full, otherwise those in which a device worked.
_STEPS = f"""
    WITH extents AS (
        SELECT rank, min(ts_ns) AS ts_ns, max(end_ns) AS end_ns FROM device_work GROUP BY rank
    )
    SELECT rank, step, ts_ns, end_ns FROM recorded_steps
    UNION ALL
    SELECT s.rank, s.step, s.ts_ns, s.end_ns FROM ({steps("outline")}) s JOIN extents x USING (rank)
    WHERE s.rank NOT IN (SELECT rank FROM recorded_steps)
      AND s.ts_ns < x.end_ns AND s.end_ns > x.ts_ns
"""

# Between two neighbouring moments at which anything begins or ends, nothing changes. Of moments
# that coincide, only the last is followed by a span of time, and by then all are counted.
# `recorded` is above 0 from the first to the last work of each window.
_STRETCHES = f"""
    WITH moments AS (
        SELECT rank, device, unnest([ts_ns, end_ns]) AS ts_ns,
               {", ".join(f"unnest([1, -1]) * (part = '{part}')::INT AS {part}" for part in PARTS)},
               0 AS recorded, 0 AS in_step, NULL AS begun
        FROM device_work WHERE dur_ns > 0
        UNION ALL
        SELECT rank, device, unnest([min(ts_ns), max(end_ns)]), 0, 0, 0, unnest([1, -1]), 0, NULL
        FROM device_work GROUP BY rank, device, window_number
        UNION ALL
        SELECT s.rank, d.device, unnest([s.ts_ns, s.end_ns]), 0, 0, 0, 0, unnest([1, -1]),
               unnest([s.step, NULL])
        FROM ({_STEPS}) s JOIN (SELECT DISTINCT rank, device FROM device_work) d USING (rank)
    )
    SELECT rank, device, ts_ns, lead(ts_ns) OVER so_far - ts_ns AS dur_ns,
           sum(compute) OVER so_far > 0 AS computes,
           sum(communication) OVER so_far > 0 AS communicates,
           sum(memory) OVER so_far > 0 AS moves_memory,
           sum(recorded) OVER so_far > 0 AS is_recorded,
           CASE WHEN sum(in_step) OVER so_far > 0 THEN max(begun) OVER so_far END AS step
    FROM moments
    WINDOW so_far AS (PARTITION BY rank, device ORDER BY ts_ns ROWS UNBOUNDED PRECEDING)
"""

_PARTS = (*PARTS, "idle")
_SUMS = ", ".join(
    f"coalesce(sum(dur_ns) FILTER (part = '{part}'), 0) AS {part}_ns" for part in _PARTS
)
SQL = f"""
    WITH parts AS (
        SELECT *, CASE WHEN computes THEN 'compute' WHEN communicates THEN 'communication'
                       WHEN moves_memory THEN 'memory' ELSE 'idle' END AS part
        FROM ({_STRETCHES}) WHERE dur_ns > 0
    ),
    chosen AS (
        SELECT rank, device, step, ts_ns, dur_ns, part FROM parts WHERE step IS NOT NULL
        UNION ALL
        SELECT rank, device, NULL, ts_ns, dur_ns, part FROM parts WHERE is_recorded
    ),
    summed AS (
        SELECT rank, device, step, min(ts_ns) AS ts_ns, sum(dur_ns) AS dur_ns,
               {_SUMS}
        FROM chosen GROUP BY rank, device, step
    )
    SELECT *, {", ".join(f"{part}_ns / dur_ns AS {part}_share" for part in _PARTS)} FROM summed
"""


def run(run: Run, **options: Any) -> duckdb.DuckDBPyRelation:
    prepare_devices(run)
    run.make("summed_device_time", SQL)  # summary and advisor both query it
    query = "FROM summed_device_time"
    return declared(run.connection, RESULT, query, "rank, device, step NULLS FIRST", **options)
