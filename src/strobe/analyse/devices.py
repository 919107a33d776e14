"""Work of devices, prepared for queries: each piece of work with its launch.

Work is every kernel, collective, copy and fill on a track of a device. Annotations, which only name
a stretch of a device's time, and waits of the host (sync) are not work.
"""

from strobe.analyse.recorded import in_recorded_steps, prepare_outline, windows
from strobe.store.run import Run

# What a device can be busy with, most important first: overlapping time counts for the first.
PARTS = {
    "compute": "('kernel')",
    "communication": "('collective')",
    "memory": "('memcpy', 'memset')",
}

# A launch outside every operator has Python frames around it. Do not search further up than this.
_CLIMB_LIMIT = 16

_IS_ON_DEVICE = "t.device NOT IN ('cpu', 'steps')"
_PART = " ".join(f"WHEN e.kind IN {kinds} THEN '{part}'" for part, kinds in PARTS.items())

_WORK = f"""
    WITH RECURSIVE windows AS (
        SELECT *, row_number() OVER (PARTITION BY rank ORDER BY ts_ns) AS number
        FROM ({windows("outline")})
    ),
    work AS MATERIALIZED (
        SELECT t.rank, t.device, t.id AS track_id, t.name AS stream, t.thread AS stream_id,
               e.id, e.ts_ns, e.ts_ns + e.dur_ns AS end_ns, e.dur_ns, e.kind, e.name, e.scope,
               CASE {_PART} END AS part, e.step, e.launcher_id
        FROM events e JOIN tracks t ON t.id = e.track_id
        WHERE {_IS_ON_DEVICE} AND part IS NOT NULL
    ),
    launchers AS MATERIALIZED (
        SELECT e.id, e.ts_ns, e.dur_ns, e.kind, e.name, e.scope, e.step, e.parent_id,
               w.works
        FROM events e JOIN (
            SELECT launcher_id, count(*) AS works FROM work GROUP BY launcher_id
        ) w ON w.launcher_id = e.id
    ),
    climb(launcher_id, id, kind, name, scope, parent_id, depth) AS (
        SELECT id, id, kind, name, scope, parent_id, 0 FROM launchers
        UNION ALL
        SELECT c.launcher_id, e.id, e.kind, e.name, e.scope, e.parent_id, c.depth + 1
        FROM climb c JOIN events e ON e.id = c.parent_id
        WHERE c.kind <> 'op' AND c.depth < {_CLIMB_LIMIT}
    ),
    operators AS (
        SELECT launcher_id, id AS operator_id, name AS operator, scope
        FROM climb WHERE kind = 'op'
    )
    SELECT w.* EXCLUDE (step, scope), coalesce(o.scope, w.scope) AS scope,
           coalesce(l.step, w.step) AS step, o.operator, o.operator_id,
           l.name AS launch, l.ts_ns AS launch_ts_ns, l.dur_ns AS launch_dur_ns,
           l.dur_ns / l.works AS launch_share_ns,
           coalesce(p.number, 0) AS window_number,
           {in_recorded_steps("w.rank", "coalesce(l.step, w.step)")} AS is_recorded
    FROM work w
    LEFT JOIN launchers l ON l.id = w.launcher_id
    LEFT JOIN operators o ON o.launcher_id = w.launcher_id
    ASOF LEFT JOIN windows p ON p.rank = w.rank AND p.ts_ns <= w.ts_ns
"""


def prepare_devices(run: Run) -> None:
    """Create `device_work` and `recorded_device_work` in the run's connection, once.

    The first has every piece of work, the second only that of steps recorded in full (or all of it,
    where a rank has no such step).
    """
    prepare_outline(run)
    run.make("device_work", _WORK)
    run.make("recorded_device_work", "FROM device_work WHERE is_recorded", "VIEW")


def has_devices(run: Run) -> bool:
    query = f"SELECT 1 FROM tracks t WHERE {_IS_ON_DEVICE} LIMIT 1"
    return bool(run.sql(query).fetchall())
