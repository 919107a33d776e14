"""Which steps were recorded in full, and the operators in them with their self time.

The recorder sees every step, but operators only in windows of steps. A step wholly inside a
window has all its operators; one cut by the window's edge has some. Questions about operators are
answered from steps recorded in full, so that times for each step are right; where a rank has none
(a trace from elsewhere, a window cut short) they are answered from every operator there is.
"""

from strobe.store.run import Run

# Work of the host or a device, as against spans that only name a stretch of time.
WORK_KINDS = "('op', 'collective', 'runtime', 'sync', 'memcpy', 'memset', 'kernel')"

# Events that Strobe lays over the framework's own: they neither have nor take self time.
OVERLAY_KINDS = "('step', 'phase', 'module', 'data', 'gc')"

WINDOWS = """
    SELECT t.rank, e.ts_ns, e.ts_ns + e.dur_ns AS end_ns
    FROM events e JOIN tracks t ON t.id = e.track_id
    WHERE e.kind = 'annotation' AND t.device = 'steps' AND starts_with(e.name, 'strobe window')
"""

STEPS = """
    SELECT t.rank, e.id, e.step, e.ts_ns, e.dur_ns, e.ts_ns + e.dur_ns AS end_ns
    FROM events e JOIN tracks t ON t.id = e.track_id
    WHERE e.kind = 'step' AND e.step IS NOT NULL
"""

RECORDED_STEPS = f"""
    SELECT s.rank, s.id, s.step, s.ts_ns, s.end_ns
    FROM ({STEPS}) s ASOF JOIN ({WINDOWS}) w ON w.rank = s.rank AND w.ts_ns <= s.ts_ns
    WHERE s.end_ns <= w.end_ns
"""

# A step that a window touches at all is slowed by the full recording.
TOUCHED_STEPS = f"""
    SELECT s.id FROM ({STEPS}) s ASOF JOIN ({WINDOWS}) w ON w.rank = s.rank AND w.ts_ns < s.end_ns
    WHERE w.end_ns > s.ts_ns
"""

# Self time as torch's key_averages counts it: the length of an operator less that of its direct
# children, whatever they are; an overlay between them (a module called inside an operator) is
# looked through.
_SELF_TIMES = f"""
    WITH RECURSIVE overlays(id, owner_id) AS (
        SELECT o.id, o.parent_id FROM events o JOIN events p ON p.id = o.parent_id
        WHERE o.kind IN {OVERLAY_KINDS} AND p.kind NOT IN {OVERLAY_KINDS}
        UNION ALL
        SELECT o.id, v.owner_id FROM events o JOIN overlays v ON v.id = o.parent_id
        WHERE o.kind IN {OVERLAY_KINDS}
    ),
    children AS (
        SELECT coalesce(v.owner_id, c.parent_id) AS parent_id, sum(c.dur_ns) AS dur_ns
        FROM events c LEFT JOIN overlays v ON v.id = c.parent_id
        WHERE c.parent_id IS NOT NULL AND c.kind NOT IN {OVERLAY_KINDS}
        GROUP BY 1
    ),
    phases AS (
        SELECT t.rank, e.ts_ns, e.name FROM events e JOIN tracks t ON t.id = e.track_id
        WHERE e.kind = 'phase'
    )
    SELECT t.rank, e.id, e.track_id, e.step, e.ts_ns, e.dur_ns, e.name, e.scope, e.parent_id,
           (e.dur_ns - coalesce(c.dur_ns, 0))::BIGINT AS self_ns,
           coalesce(a.is_backward, false) AS is_backward,
           CASE WHEN a.is_backward THEN 'backward'
                WHEN e.scope IS NOT NULL OR p.name IS NULL THEN 'forward'
                ELSE p.name END AS direction,
           a.input_shapes, a.input_dtypes, a.output_shapes, a.flops, a.bytes
    FROM events e
    JOIN tracks t ON t.id = e.track_id
    LEFT JOIN children c ON c.parent_id = e.id
    LEFT JOIN op_args a ON a.event_id = e.id
    ASOF LEFT JOIN phases p ON p.rank = t.rank AND p.ts_ns <= e.ts_ns
    WHERE e.kind = 'op'
"""


def in_recorded_steps(rank: str, step: str) -> str:
    """SQL: this step was recorded in full, or the rank has no such step."""
    return f"""(({rank}, {step}) IN (SELECT rank, step FROM recorded_steps)
        OR {rank} NOT IN (SELECT rank FROM recorded_steps))"""


def prepare(run: Run) -> None:
    """Make `recorded_steps` and `op_times` known to the run's connection, once.

    `op_times` has every operator, `recorded_ops` those in steps recorded in full.
    """
    # Not temporary: those would be unknown to the cursors that stream a result.
    known = run.sql("SELECT 1 FROM duckdb_views() WHERE view_name = 'recorded_ops'").fetchall()
    if known:
        return
    run.connection.execute(f"CREATE TABLE recorded_steps AS {RECORDED_STEPS}")
    run.connection.execute(f"CREATE TABLE op_times AS {_SELF_TIMES}")
    condition = in_recorded_steps("rank", "step")
    run.connection.execute(f"CREATE VIEW recorded_ops AS SELECT * FROM op_times WHERE {condition}")
