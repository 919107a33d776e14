"""How much communication hides behind computation?

For each rank and device with collectives. Overlapped is the time in which at least one collective
and at least one kernel run. Where collectives run on the host (gloo, MPI), so does the computation:
the operators.
"""

from typing import Any

import duckdb

from strobe.analyse.devices import prepare_devices
from strobe.analyse.intervals import hidden, merged
from strobe.analyse.recorded import in_recorded_steps
from strobe.analyse.select import declared
from strobe.model.schema import Column, Table
from strobe.store.run import Run

NAME = "overlap"

RESULT = Table(
    NAME,
    "How much communication hides behind computation?",
    (
        Column("rank", "i64", "Rank of the process."),
        Column("device", "str", "cuda:0, npu:0, ..., or cpu for collectives of the host."),
        Column("compute_ns", "i64", "Time in which something computed."),
        Column("communication_ns", "i64", "Time in which a collective ran."),
        Column("overlapped_ns", "i64", "Time in which both did."),
        Column("exposed_ns", "i64", "Time in which a collective ran and nothing computed."),
        Column("overlapped_share", "f64", "overlapped_ns divided by communication_ns."),
    ),
)

# For a rank with a device only those on it: the host's spans around them are their launches.
COLLECTIVES = f"""
    SELECT rank, device, id, name, ts_ns, end_ns, dur_ns, is_recorded
    FROM device_work WHERE part = 'communication'
    UNION ALL
    SELECT t.rank, t.device, e.id, e.name, e.ts_ns, e.ts_ns + e.dur_ns, e.dur_ns,
           {in_recorded_steps("t.rank", "e.step")}
    FROM events e JOIN tracks t ON t.id = e.track_id
    WHERE e.kind = 'collective' AND t.device = 'cpu'
      AND t.rank NOT IN (SELECT rank FROM device_work)
"""

# What collectives can hide behind.
COMPUTATION = """
    SELECT rank, device, ts_ns, end_ns FROM device_work WHERE part = 'compute'
    UNION ALL
    SELECT t.rank, t.device, e.ts_ns, e.ts_ns + e.dur_ns
    FROM events e JOIN tracks t ON t.id = e.track_id
    WHERE e.kind = 'op' AND t.device = 'cpu' AND t.rank NOT IN (SELECT rank FROM device_work)
      AND t.rank IN (
        SELECT t.rank FROM events e JOIN tracks t ON t.id = e.track_id WHERE e.kind = 'collective'
      )
"""

_BY = "rank, device"
_SQL = f"""
    WITH communication AS (
        SELECT rank, device, sum(end_ns - ts_ns) AS communication_ns,
               sum(hidden_ns) AS overlapped_ns
        FROM ({hidden(merged(COLLECTIVES, _BY), COMPUTATION, _BY)}) GROUP BY rank, device
    ),
    computation AS (
        SELECT rank, device, sum(end_ns - ts_ns) AS compute_ns
        FROM ({merged(COMPUTATION, _BY)}) GROUP BY rank, device
    )
    SELECT * REPLACE (coalesce(compute_ns, 0) AS compute_ns),
           communication_ns - overlapped_ns AS exposed_ns,
           coalesce(overlapped_ns / nullif(communication_ns, 0), 0) AS overlapped_share
    FROM communication LEFT JOIN computation USING (rank, device)
"""


def run(run: Run, **options: Any) -> duckdb.DuckDBPyRelation:
    prepare_devices(run)
    return declared(run.connection, RESULT, _SQL, "rank, device", **options)
