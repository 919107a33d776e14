"""The cost of operators in a typical step, from the few steps that were recorded in full.

Full recording slows every operator a little, and a busy machine slows some of them a lot. So calls
are grouped by operator, module, shapes and dtypes, and within a group by their position in the
step (first, second, ...). The median of each position counts. Calls of one group can differ in
length: a compiled program may report a sort in a loop as two very short calls and a long one.

The time that recording adds is subtracted from each call. The operators of a phase never take more
than the phase does in steps that recording did not slow. If a phase takes longer in those steps
than in steps recorded in full, its operators are scaled up, because recording makes no operator
faster. A compiled program consists of its operators, whatever phase each belongs to: the time
between them, such as waiting for cores and threads, is part of their cost, and operators that run
in parallel share the time.
"""

import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from strobe.advise.evidence.stack_lines import line_of
from strobe.advise.finding import CannotTell
from strobe.advise.training import Training
from strobe.analyse import recorded
from strobe.analyse.select import quoted
from strobe.analyse.tables.operators.operators import TYPE
from strobe.messages import message
from strobe.store.run import Run

Array = np.ndarray[Any, np.dtype[Any]]

# In measurements, torch.profiler adds 0.3 to 0.6 us to an operator. More than this is noise of the
# machine.
MOST_RECORDING_NS = 1_000

# The speed of one core in products. In measurements it is 40 to 75.
FLOPS_PER_NS = 40

# A single step may have been disturbed by anything.
FEWEST_STEPS = 2

_PHASES_WITH_OPERATORS = ("forward", "backward", "update", "rest")


@dataclass(frozen=True)
class OperatorCost:
    """The calls of one operator with the same module, shapes and dtypes in a typical step."""

    name: str
    type: str  # the name without its library
    cause: str  # the forward operator that a backward one belongs to, by name
    root: str  # the outermost operator around the cause, which the model called
    family: str | None  # of the operator itself, in the list of model/schema.py
    cause_family: str | None
    root_family: str | None
    scope: str | None
    direction: str
    input_shapes: str | None
    input_dtypes: str | None
    calls: float  # per step
    cost_ns: float  # self time per step
    flops: int | None  # per call
    bytes: int | None  # per call
    event_id: int  # of one of the calls

    def row(self) -> dict[str, Any]:
        """A row of evidence: columns of the table `operators`, for one step."""
        return {
            "name": self.name, "scope": self.scope, "direction": self.direction,
            "calls": round(self.calls, 1), "self_ns": round(self.cost_ns),
            "input_shapes": self.input_shapes, "input_dtypes": self.input_dtypes,
            "event_id": self.event_id,
        }  # fmt: skip


# The number of ranks, and of steps of each, that are read: medians do not get better with more.
_STEPS, _RANKS = 8, 4

_SAMPLE = f"""
    SELECT * FROM recorded_ops WHERE (rank, step) IN (
        SELECT rank, step FROM (SELECT DISTINCT rank, step FROM recorded_ops WHERE step IS NOT NULL)
        QUALIFY row_number() OVER (PARTITION BY rank ORDER BY step) <= {_STEPS}
            AND dense_rank() OVER (ORDER BY rank) <= {_RANKS}
    )
"""

_GROUP = ", ".join(
    ("name", "type", "cause", "root", "scope", "direction", "input_shapes", "input_dtypes")
)

_OF_FAMILIES = ", ".join(
    f"min({name}) AS {name}" for name in ("family", "cause_family", "root_family")
)

_COSTS = f"""
    WITH calls AS (
        SELECT o.name, {TYPE.replace("name", "o.name")} AS type, c.name AS cause, r.name AS root,
               o.family, c.family AS cause_family, r.family AS root_family,
               o.scope, o.direction, o.input_shapes, o.input_dtypes,
               o.rank, o.step, o.ts_ns, o.id, o.self_ns, o.flops, o.bytes
        FROM sampled_ops o JOIN op_origins USING (id)
        JOIN sampled_ops c ON c.id = cause_id JOIN sampled_ops r ON r.id = root_id
    ),
    numbered AS (
        SELECT *, row_number() OVER (
            PARTITION BY {_GROUP}, rank, step ORDER BY ts_ns, id) AS ordinal
        FROM calls
    ),
    medians AS (
        SELECT {_GROUP}, {_OF_FAMILIES}, count(*) AS calls, median(self_ns) AS self_ns,
               any_value(flops) AS flops, any_value(bytes) AS bytes, min(id) AS event_id
        FROM numbered GROUP BY {_GROUP}, ordinal
    )
    SELECT {_GROUP}, {_OF_FAMILIES}, sum(calls)::BIGINT AS calls,
           sum(self_ns * calls) / sum(calls) AS self_ns,
           any_value(flops) AS flops, any_value(bytes) AS bytes, min(event_id) AS event_id
    FROM medians GROUP BY {_GROUP}
    ORDER BY name, scope, direction, input_shapes, input_dtypes, cause, root
"""


def prepare(run: Run) -> None:
    """Make the table `sampled_ops`, operators of some steps recorded in full, and `op_origins`.

    For each operator, `op_origins` has the outermost operator around it (top_id), the forward
    operator that it belongs to (cause_id; a forward operator is its own cause), and the outermost
    operator around the cause (root_id).
    """
    recorded.prepare(run)
    if run.has("op_origins"):
        return
    run.make("sampled_ops", _SAMPLE)
    found = run.sql("""
        SELECT id, coalesce(parent_id, -1) AS parent_id, coalesce(from_id, -1) AS from_id
        FROM sampled_ops LEFT JOIN (
            SELECT to_id, min(coalesce(into_id, from_id)) AS from_id
            FROM links LEFT JOIN merged_ops m ON m.id = from_id WHERE kind = 'forward_backward'
            GROUP BY to_id
        ) ON to_id = id ORDER BY id
    """).fetchnumpy()
    column = {name: np.asarray(values) for name, values in found.items()}
    run.keep("op_origins", origins(column["id"], column["parent_id"], column["from_id"]))


def origins(id: Array, parent_id: Array, from_id: Array) -> dict[str, Array]:
    """Columns id, top_id, cause_id, root_id. Ids ascend; -1 is no parent or forward operator."""
    parent, forward = _positions(id, parent_id), _positions(id, from_id)
    own = np.arange(len(id))
    root = _outermost(np.where(parent >= 0, parent, own))
    # Autograd links the outermost operator of a backward node. Operators inside inherit the link.
    while (inherits := (forward < 0) & (parent >= 0) & (forward[parent] >= 0)).any():
        forward = np.where(inherits, forward[parent], forward)
    cause = np.where(forward >= 0, forward, own)
    return {"id": id, "top_id": id[root], "cause_id": id[cause], "root_id": id[root[cause]]}


def _positions(id: Array, wanted: Array) -> Array:
    """The position of each id in `id`, or -1."""
    if not len(id):
        return np.zeros(0, dtype=np.int64)
    position = np.minimum(np.searchsorted(id, wanted), len(id) - 1)
    return np.where(id[position] == wanted, position, -1)


def _outermost(parent: Array) -> Array:
    """The position of the outermost parent of each; an operator without one is its own parent."""
    while not np.array_equal(grandparent := parent[parent], parent):
        parent = grandparent
    return parent


def bare(name: str) -> str:
    """The name of an operator without its library: mm of aten::mm."""
    return name.rpartition("::")[2]


def why_not(training: Training) -> CannotTell | None:
    """Why the costs of operators are unknown; None if they are known."""
    if not training.has_operators:
        return CannotTell(
            message("operator-times.no-operators"), message("operator-times.record-operators")
        )
    if training.has_devices:
        return CannotTell(
            message("operator-times.on-device"), message("operator-times.show-kernels")
        )
    ((steps,),) = training.run.sql(
        "SELECT count(DISTINCT step) FROM events WHERE kind = 'op'"
    ).fetchall()
    if steps < FEWEST_STEPS:
        return CannotTell(
            message("operator-times.one-step"), message("operator-times.record-steps")
        )
    return None


def shapes_of(cost: OperatorCost) -> list[list[int]]:
    """The shapes of the tensors among its inputs."""
    try:
        shapes = json.loads(cost.input_shapes or "[]")
    except ValueError:
        return []
    return [s for s in shapes if isinstance(s, list) and s and all(isinstance(n, int) for n in s)]


def where_called(training: Training, costs: list[OperatorCost]) -> str | None:
    """The user's line that was sampled while the model called these, or else their module."""
    scope = costs[0].scope
    of_module = f"o.scope = {quoted(scope)}" if scope is not None else "o.scope IS NULL"
    names = ", ".join(sorted({quoted(cost.root) for cost in costs}))
    line = line_of(
        training,
        f"""EXISTS (
            SELECT 1 FROM sampled_ops o
            WHERE o.rank = sample_times.rank AND o.name IN ({names}) AND {of_module}
                AND NOT o.is_backward
                AND sample_times.ts_ns BETWEEN o.ts_ns AND o.ts_ns + o.dur_ns
        )""",
        into_modules=True,
    )
    if line is not None:
        return str(line)
    place = training.place("model call")
    return scope or (str(place) if place else None)


def operator_costs(training: Training) -> list[OperatorCost]:
    """The operators of a typical step, the most expensive first."""
    prepare(training.run)
    rows = training.rows(_COSTS)
    steps = max(1, recorded_step_count(training))
    added_ns = recording_ns(training)
    costs = []
    for row in rows:
        each_ns = max(0.0, row.pop("self_ns") - added_ns)
        calls = row.pop("calls") / steps
        costs.append(OperatorCost(**row, calls=calls, cost_ns=each_ns * calls))
    scales = _scales(training, costs)
    scaled = [_scaled(cost, scales.get(cost.direction, 1.0)) for cost in costs]
    return sorted(scaled, key=lambda cost: -cost.cost_ns)


def recorded_step_count(training: Training) -> int:
    """The number of steps, of all ranks, that the costs come from."""
    ((count,),) = training.run.sql(
        "SELECT count(DISTINCT (rank, step)) FROM sampled_ops"
    ).fetchall()
    return int(count)


def recording_ns(training: Training) -> float:
    """The time that full recording adds to an operator, from recorded steps and others."""
    ((recorded_ns, plain_ns, operators),) = training.run.sql("""
        SELECT median(dur_ns - recorder_ns) FILTER (is_recorded),
               median(dur_ns - recorder_ns) FILTER (NOT is_slowed AND step > 3),
               (SELECT count(*) / greatest(1, count(DISTINCT (rank, step))) FROM sampled_ops)
        FROM step_times
    """).fetchall()
    if recorded_ns is None or plain_ns is None or not operators:
        return 0.0
    return float(min(MOST_RECORDING_NS, max(0.0, (recorded_ns - plain_ns) / operators)))


def undisturbed_ns(training: Training, costs: list[OperatorCost]) -> float:
    """The median step without the time in which other programs used its core, which medians of
    operators do not contain either. It is never less than all operators of a step together, so that
    the share of some of them is not overestimated."""
    steps = training.steps
    undisturbed = steps["dur_ns"] - steps["recorder_ns"] - training.no_core_ns
    return max(1.0, float(np.median(undisturbed)), sum(cost.cost_ns for cost in costs))


def _scales(training: Training, costs: list[OperatorCost]) -> dict[str, float]:
    """The factor for the operators of each phase that makes them those of a step that was not
    recorded, and no longer than the phase."""
    inside = dict.fromkeys(_PHASES_WITH_OPERATORS, 0.0)
    for cost in costs:
        if cost.direction in inside:
            inside[cost.direction] += cost.cost_ns
    length = {
        phase: float(np.median(training.steps[f"{phase}_ns"])) if training.step_count else 0.0
        for phase in inside
    }
    if training.runs_programs:
        # Operators run in parallel, even those of the forward and the backward pass.
        total = sum(length[phase] for phase in inside if inside[phase])
        return dict.fromkeys(inside, total / max(1.0, sum(inside.values()))) if total else {}
    found = {}
    recorded_ns = _recorded_phases(training)
    for phase in inside:
        if length[phase] and inside[phase]:
            longer = max(1.0, length[phase] / recorded_ns[phase]) if recorded_ns[phase] else 1.0
            found[phase] = min(longer, length[phase] / inside[phase])
    return found


def _recorded_phases(training: Training) -> dict[str, float]:
    """The length of each phase in the steps that the costs come from."""
    medians = ", ".join(f"median({phase}_ns)" for phase in _PHASES_WITH_OPERATORS)
    (row,) = training.run.sql(f"""
        SELECT {medians} FROM step_times SEMI JOIN sampled_ops USING (rank, step)
    """).fetchall()
    return dict(zip(_PHASES_WITH_OPERATORS, (float(ns or 0) for ns in row), strict=True))


def _scaled(cost: OperatorCost, factor: float) -> OperatorCost:
    return replace(cost, cost_ns=cost.cost_ns * factor) if factor != 1.0 else cost
