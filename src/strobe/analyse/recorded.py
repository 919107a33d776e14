"""Which steps were recorded in full, and the operators in them with their self time.

The recorder sees every step, but operators only in windows of steps. A step wholly inside a
window has all its operators; one cut by the window's edge has some. Questions about operators are
answered from steps recorded in full, so that times for each step are right; where a rank has none
(a trace from elsewhere, a window cut short) they are answered from every operator there is.
"""

from typing import Any

import numpy as np

from strobe.store.run import Run

Array = np.ndarray[Any, np.dtype[Any]]

# Work of the host or a device, as against spans that only name a stretch of time.
WORK_KINDS = "('op', 'collective', 'runtime', 'sync', 'memcpy', 'memset', 'kernel')"

# Events that Strobe lays over the framework's own: they neither have nor take self time.
OVERLAY_KINDS = "('step', 'phase', 'module', 'data', 'gc')"

# Every event with its rank and its end.
_EVENTS = """(
    SELECT t.rank, t.device, e.*, e.ts_ns + e.dur_ns AS end_ns
    FROM events e JOIN tracks t ON t.id = e.track_id
)"""


def windows(source: str) -> str:
    """The windows of full recording in a table of events with their rank and end."""
    return f"""
        SELECT rank, ts_ns, end_ns FROM {source}
        WHERE kind = 'annotation' AND device = 'steps' AND starts_with(name, 'strobe window')
    """


def steps(source: str) -> str:
    return f"""
        SELECT rank, id, step, ts_ns, dur_ns, end_ns FROM {source}
        WHERE kind = 'step' AND step IS NOT NULL
    """


def recorded_steps(source: str) -> str:
    """Steps that lie wholly inside a window."""
    return f"""
        SELECT s.rank, s.id, s.step, s.ts_ns, s.end_ns FROM ({steps(source)}) s
        ASOF JOIN ({windows(source)}) w ON w.rank = s.rank AND w.ts_ns <= s.ts_ns
        WHERE s.end_ns <= w.end_ns
    """


def touched_steps(source: str) -> str:
    """A step that a window touches at all is slowed by the full recording."""
    return f"""
        SELECT s.id FROM ({steps(source)}) s
        ASOF JOIN ({windows(source)}) w ON w.rank = s.rank AND w.ts_ns < s.end_ns
        WHERE w.end_ns > s.ts_ns
    """


WINDOWS = windows(_EVENTS)
STEPS = steps(_EVENTS)
RECORDED_STEPS = recorded_steps(_EVENTS)

# The few events that say how training went, out of the many operators: steps, phases, waits for
# data, pauses, windows.
_OUTLINE = f"""
    SELECT rank, device, id, step, kind, name, ts_ns, dur_ns, end_ns FROM {_EVENTS}
    WHERE kind IN ('step', 'phase', 'data', 'gc') OR (kind = 'annotation' AND device = 'steps')
"""

# JAX's name for what a gradient is taken of. Operators of a compiled graph run side by side:
# another part of the step may have been going on when one of them began.
_IS_FORWARD_NODE = "coalesce(contains(a.node, 'jvp('), false)"

_OP_TIMES = f"""
    WITH phases AS (SELECT rank, ts_ns, name FROM outline WHERE kind = 'phase')
    SELECT t.rank, e.id, e.track_id, e.step, e.ts_ns, e.dur_ns, e.name, e.scope, e.parent_id,
           s.self_ns, coalesce(a.is_backward, false) AS is_backward,
           CASE WHEN a.is_backward THEN 'backward'
                WHEN e.scope IS NOT NULL OR p.name IS NULL OR {_IS_FORWARD_NODE} THEN 'forward'
                ELSE p.name END AS direction,
           a.input_shapes, a.input_dtypes, a.output_shapes, a.flops, a.bytes
    FROM events e
    JOIN tracks t ON t.id = e.track_id
    JOIN self_times s ON s.id = e.id
    LEFT JOIN op_args a ON a.event_id = e.id
    ASOF LEFT JOIN phases p ON p.rank = t.rank AND p.ts_ns <= e.ts_ns
    WHERE e.kind = 'op'
"""

_SUMS = """
    SELECT t.rank, e.kind, e.name, e.scope, coalesce(a.is_backward, false) AS is_backward,
           ((t.rank, e.step) IN (SELECT rank, step FROM recorded_steps)
            OR t.rank NOT IN (SELECT rank FROM recorded_steps)) AS is_recorded,
           count(*) AS calls, sum(e.dur_ns)::BIGINT AS total_ns, sum(s.self_ns)::BIGINT AS self_ns,
           sum(a.flops) AS flops
    FROM events e
    JOIN tracks t ON t.id = e.track_id
    LEFT JOIN self_times s ON s.id = e.id
    LEFT JOIN op_args a ON a.event_id = e.id
    WHERE e.kind IN ('op', 'module')
    GROUP BY ALL
"""


def in_recorded_steps(rank: str, step: str) -> str:
    """SQL: this step was recorded in full, or the rank has no such step."""
    return f"""(({rank}, {step}) IN (SELECT rank, step FROM recorded_steps)
        OR {rank} NOT IN (SELECT rank FROM recorded_steps))"""


def prepare(run: Run) -> None:
    """Make `recorded_steps` and `op_times` known to the run's connection, once.

    `op_times` has every operator, `recorded_ops` those in steps recorded in full.
    """
    prepare_outline(run)
    _prepare_self_times(run)
    run.make("op_times", _OP_TIMES)
    run.make("recorded_ops", f"FROM op_times WHERE {in_recorded_steps('rank', 'step')}", "VIEW")


def prepare_sums(run: Run) -> None:
    """Make `op_sums` and `module_sums` known: calls and times by name, scope and direction.

    Much smaller than `op_times`, and enough for questions that do not ask for single calls.
    """
    prepare_outline(run)
    _prepare_self_times(run)
    run.make("sums", _SUMS)
    run.make("op_sums", "SELECT * EXCLUDE kind FROM sums WHERE kind = 'op'", "VIEW")
    run.make("module_sums", "SELECT * EXCLUDE kind FROM sums WHERE kind = 'module'", "VIEW")


def prepare_outline(run: Run) -> None:
    """Make `outline` and `recorded_steps` known: how training went, without its operators."""
    run.make("outline", _OUTLINE)
    run.make("recorded_steps", recorded_steps("outline"))


def _prepare_self_times(run: Run) -> None:
    if not run.has("self_times"):
        events = run.sql(f"""
            SELECT id, coalesce(parent_id, -1) AS parent_id, dur_ns, kind = 'op' AS is_op,
                   kind IN {OVERLAY_KINDS} AS is_overlay
            FROM events ORDER BY id
        """).fetchnumpy()
        column = {name: np.asarray(values) for name, values in events.items()}
        own = self_times(column["id"], column["parent_id"], column["dur_ns"], column["is_overlay"])
        chosen = column["is_op"]
        run.keep("self_times", {"id": column["id"][chosen], "self_ns": own[chosen]})


def self_times(id: Array, parent_id: Array, dur_ns: Array, is_overlay: Array) -> Array:
    """Self time as torch's key_averages counts it: the length of an event less that of its direct
    children, whatever they are; an overlay between them (a module called inside an operator) is
    looked through. Ids ascend; no parent is -1.
    """
    count = len(id)
    if not count:
        return dur_ns
    place = np.minimum(np.searchsorted(id, parent_id), count - 1)
    parent = np.append(np.where(id[place] == parent_id, place, -1), -1)  # the last answers for -1
    # Of each event the innermost one around it, itself included, that is no overlay.
    owner = np.append(np.where(is_overlay, parent[:-1], np.arange(count)), -1)
    while not np.array_equal(further := owner[owner], owner):
        owner = further
    above = owner[parent[:-1]]
    takes = ~is_overlay & (above >= 0)
    # Not by weights of bincount: those are doubles, which a long sum of nanoseconds outgrows.
    inner = np.zeros(count, dtype=np.int64)
    np.add.at(inner, above[takes], dur_ns[takes])
    return dur_ns - inner
