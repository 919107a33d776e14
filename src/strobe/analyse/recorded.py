"""Which steps were recorded in full, and the operators in them with their self time.

The recorder sees every step, but operators only in windows of steps. A step entirely inside a
window has all its operators; one cut by the window's edge has only some. Questions about operators
are answered from steps recorded in full, so that times per step are right. Where a rank has none
(an imported trace, a truncated window), they are answered from all recorded operators.

An operator whose only child has the same name is one call that the profiler reports twice
(aten::div calls itself with a converted argument). As in torch's key_averages, the two count as
one: the child's time, kernels and arguments belong to its parent.
"""

from typing import Any

import numpy as np

from strobe.frameworks import pattern_of_all
from strobe.store.run import Run

Array = np.ndarray[Any, np.dtype[Any]]

# Work of the host or a device, as opposed to spans that only name a stretch of time.
WORK_KINDS = "('op', 'collective', 'runtime', 'sync', 'memcpy', 'memset', 'kernel')"

# Events that Strobe adds on top of the framework's own: they neither have nor take self time.
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
    """Steps that are entirely inside a window."""
    return f"""
        SELECT s.rank, s.id, s.step, s.ts_ns, s.end_ns FROM ({steps(source)}) s
        ASOF JOIN ({windows(source)}) w ON w.rank = s.rank AND w.ts_ns <= s.ts_ns
        WHERE s.end_ns <= w.end_ns
    """


def touched_steps(source: str) -> str:
    """Full recording slows down every step that a window touches."""
    return f"""
        SELECT s.id FROM ({steps(source)}) s
        ASOF JOIN ({windows(source)}) w ON w.rank = s.rank AND w.ts_ns < s.end_ns
        WHERE w.end_ns > s.ts_ns
    """


WINDOWS = windows(_EVENTS)
STEPS = steps(_EVENTS)
RECORDED_STEPS = recorded_steps(_EVENTS)

# The few events that outline the run, without its operators: steps, phases, waits for data, pauses,
# windows.
_OUTLINE = f"""
    SELECT rank, device, id, step, kind, name, ts_ns, dur_ns, end_ns FROM {_EVENTS}
    WHERE kind IN ('step', 'phase', 'data', 'gc') OR (kind = 'annotation' AND device = 'steps')
"""

# Names in compiled graphs tell the part of a step. Operators of a graph run in parallel: another
# part may have been running when one of them began.
_FORWARD_NODES = pattern_of_all(lambda framework: framework.forward_nodes)
_UPDATE_NODES = pattern_of_all(lambda framework: framework.update_nodes)

_OP_TIMES = f"""
    WITH phases AS (SELECT rank, ts_ns, name FROM outline WHERE kind = 'phase')
    SELECT t.rank, e.id, e.track_id, e.step, e.ts_ns, e.dur_ns, e.name, e.scope,
           coalesce(m.into_id, e.parent_id) AS parent_id, s.self_ns,
           coalesce(a.is_backward, false) AS is_backward,
           CASE WHEN a.is_backward THEN 'backward'
                WHEN regexp_matches(a.node, '{_UPDATE_NODES}') THEN 'update'
                WHEN regexp_matches(a.node, '{_FORWARD_NODES}') THEN 'forward'
                WHEN p.name IS NULL OR (e.scope IS NOT NULL AND p.name <> 'update') THEN 'forward'
                ELSE p.name END AS direction,
           a.input_shapes, a.input_dtypes, a.output_shapes, a.flops, a.bytes,
           a.family
    FROM events e
    JOIN tracks t ON t.id = e.track_id
    JOIN self_times s ON s.id = e.id
    LEFT JOIN op_args a ON a.event_id = e.id
    LEFT JOIN merged_ops m ON m.id = e.parent_id
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
    WHERE e.kind = 'module' OR s.id IS NOT NULL
    GROUP BY ALL
"""


def in_recorded_steps(rank: str, step: str) -> str:
    """SQL: this step was recorded in full, or the rank has no such step."""
    return f"""(({rank}, {step}) IN (SELECT rank, step FROM recorded_steps)
        OR {rank} NOT IN (SELECT rank FROM recorded_steps))"""


def prepare(run: Run) -> None:
    """Create `recorded_steps` and `op_times` in the run's connection, once.

    `op_times` has every operator, `recorded_ops` those in steps recorded in full.
    """
    prepare_outline(run)
    prepare_self_times(run)
    run.make("op_times", _OP_TIMES)
    run.make("recorded_ops", f"FROM op_times WHERE {in_recorded_steps('rank', 'step')}", "VIEW")


def prepare_sums(run: Run) -> None:
    """Create `op_sums` and `module_sums`: calls and times by name, scope and direction.

    Much smaller than `op_times`, and enough for questions that do not need single calls.
    """
    prepare_outline(run)
    prepare_self_times(run)
    run.make("sums", _SUMS)
    run.make("op_sums", "SELECT * EXCLUDE kind FROM sums WHERE kind = 'op'", "VIEW")
    run.make("module_sums", "SELECT * EXCLUDE kind FROM sums WHERE kind = 'module'", "VIEW")


def prepare_outline(run: Run) -> None:
    """Create `outline` and `recorded_steps`: the course of the run, without its operators."""
    run.make("outline", _OUTLINE)
    run.make("recorded_steps", recorded_steps("outline"))


def prepare_self_times(run: Run) -> None:
    """Create `self_times` and `merged_ops`: the self time of each operator with its enclosing
    operator, and the operator that each repeated one belongs to.
    """
    if run.has("self_times"):
        return
    events = run.sql(f"""
        SELECT id, coalesce(parent_id, -1) AS parent_id, dur_ns, kind = 'op' AS is_op,
               kind IN {OVERLAY_KINDS} AS is_overlay,
               CASE WHEN kind = 'op' THEN hash(name) ELSE 0 END AS name
        FROM events ORDER BY id
    """).fetchnumpy()
    column = {name: np.asarray(values) for name, values in events.items()}
    id, is_op = column["id"], column["is_op"]
    parent = places(id, column["parent_id"])
    above = taken(nearest(~column["is_overlay"], parent), parent)
    own = self_times(above, column["dur_ns"], column["is_overlay"])
    into = repeated(above, is_op, column["is_overlay"], column["name"])
    repeats = np.flatnonzero(into != np.arange(len(into)))
    np.add.at(own, into[repeats], own[repeats])
    around = taken(into, taken(nearest(is_op, parent), parent))
    chosen = np.setdiff1d(np.flatnonzero(is_op), repeats)
    run.keep("merged_ops", {"id": id[repeats], "into_id": id[into[repeats]]})
    run.keep("self_times", {
        "id": id[chosen], "self_ns": own[chosen], "around_id": taken(id, around[chosen]),
    })  # fmt: skip


def places(id: Array, wanted: Array) -> Array:
    """The index of each wanted id in `ids`, which ascend; -1 where it is missing."""
    if not len(id):
        return np.zeros(0, dtype=np.int64)
    place = np.minimum(np.searchsorted(id, wanted), len(id) - 1)
    return np.where(id[place] == wanted, place, -1)


def taken(values: Array, places: Array) -> Array:
    """The value at each index; -1 for the index -1."""
    return np.append(values, -1)[places]


def nearest(chosen: Array, parent: Array) -> Array:
    """The innermost chosen event that encloses each event, itself included; or -1."""
    found = np.append(np.where(chosen, np.arange(len(chosen)), parent), -1)
    while not np.array_equal(further := found[found], found):
        found = further
    return found[:-1]


def self_times(above: Array, dur_ns: Array, is_overlay: Array) -> Array:
    """Self time as in torch's key_averages: the length of an event less that of its direct
    children, of any kind. Overlays between them (a module called inside an operator) are
    skipped.
    """
    takes = ~is_overlay & (above >= 0)
    # Not by weights of bincount: those are doubles, which long sums of nanoseconds exceed.
    inner = np.zeros(len(dur_ns), dtype=np.int64)
    np.add.at(inner, above[takes], dur_ns[takes])
    return dur_ns - inner


def repeated(above: Array, is_op: Array, is_overlay: Array, name: Array) -> Array:
    """For each event the outermost one that it repeats: itself, or the operator of the same name
    that has no other child.
    """
    inside = ~is_overlay & (above >= 0)
    children = np.bincount(above[inside], minlength=len(above))
    only = is_op & inside
    only[only] = is_op[above[only]] & (children[above[only]] == 1)
    only[only] = name[above[only]] == name[only]
    into = np.where(only, above, np.arange(len(above)))
    while not np.array_equal(further := into[into], into):
        into = further
    return into
