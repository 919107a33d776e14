"""What operators cost in an ordinary step, from those of the few steps recorded in full.

Full recording slows every operator a little, and a busy machine slows some of them much. So of
calls that are alike (operator, module, shapes, types) and come at the same place in their steps the
median counts: the first of them, the second. Alike they need not be equally long: a compiled
program tells of a sort in a loop twice for a moment and once for as long as it takes.

What recording adds to each is taken off; and the operators of a phase together never take more than
that phase takes in steps that were not slowed. Where such steps take longer in a phase than those
recorded in full, their operators do: recording makes none of them quicker. A compiled program
consists of its operators, whatever phase each belongs to: what lies between them, waiting for cores
and threads, is theirs, and where they run side by side they share the time.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from strobe.advise.evidence.stack_lines import line_of
from strobe.advise.finding import CannotTell
from strobe.advise.training import Training
from strobe.analyse import recorded
from strobe.analyse.select import quoted
from strobe.analyse.tables.operators.operators import TYPE
from strobe.store.run import Run

Array = np.ndarray[Any, np.dtype[Any]]

# torch.profiler was measured to add 0.3 to 0.6 us to an operator; more than this is noise of the
# machine, not recording.
MOST_RECORDING_NS = 1_000

# A single step may have had any hiccup.
FEWEST_STEPS = 2

_PHASES_WITH_OPERATORS = ("forward", "backward", "update", "rest")


@dataclass(frozen=True)
class OperatorCost:
    """Calls that are alike, in one ordinary step."""

    name: str
    type: str  # the name without its library
    cause: str  # of a backward operator, the name of the forward one that it belongs to
    root: str  # the name of the outermost operator around that: what the model called
    scope: str | None
    direction: str
    input_shapes: str | None
    input_dtypes: str | None
    calls: float  # a step
    cost_ns: float  # a step, in itself
    flops: int | None  # a call
    bytes: int | None  # a call
    event_id: int  # one of the calls

    def row(self) -> dict[str, Any]:
        """As evidence: columns of the table operators, for one step."""
        return {
            "name": self.name, "scope": self.scope, "direction": self.direction,
            "calls": round(self.calls, 1), "self_ns": round(self.cost_ns),
            "input_shapes": self.input_shapes, "input_dtypes": self.input_dtypes,
            "event_id": self.event_id,
        }  # fmt: skip


# So many steps of a rank, and so many ranks, speak for all: medians do not get better with more.
_STEPS, _RANKS = 8, 4

_SAMPLE = f"""
    SELECT * FROM recorded_ops WHERE (rank, step) IN (
        SELECT rank, step FROM (SELECT DISTINCT rank, step FROM recorded_ops WHERE step IS NOT NULL)
        QUALIFY row_number() OVER (PARTITION BY rank ORDER BY step) <= {_STEPS}
            AND dense_rank() OVER (ORDER BY rank) <= {_RANKS}
    )
"""

_ALIKE = ", ".join(
    ("name", "type", "cause", "root", "scope", "direction", "input_shapes", "input_dtypes")
)

_COSTS = f"""
    WITH calls AS (
        SELECT o.name, {TYPE.replace("name", "o.name")} AS type, c.name AS cause, r.name AS root,
               o.scope, o.direction, o.input_shapes, o.input_dtypes,
               o.rank, o.step, o.ts_ns, o.id, o.self_ns, o.flops, o.bytes
        FROM sampled_ops o JOIN op_origins USING (id)
        JOIN sampled_ops c ON c.id = cause_id JOIN sampled_ops r ON r.id = root_id
    ),
    numbered AS (
        SELECT *, row_number() OVER (
            PARTITION BY {_ALIKE}, rank, step ORDER BY ts_ns, id) AS place
        FROM calls
    ),
    places AS (
        SELECT {_ALIKE}, count(*) AS calls, median(self_ns) AS self_ns,
               any_value(flops) AS flops, any_value(bytes) AS bytes, min(id) AS event_id
        FROM numbered GROUP BY {_ALIKE}, place
    )
    SELECT {_ALIKE}, sum(calls)::BIGINT AS calls, sum(self_ns * calls) / sum(calls) AS self_ns,
           any_value(flops) AS flops, any_value(bytes) AS bytes, min(event_id) AS event_id
    FROM places GROUP BY {_ALIKE}
    ORDER BY name, scope, direction, input_shapes, input_dtypes, cause, root
"""


def prepare(run: Run) -> None:
    """Make `sampled_ops` known, operators of some steps recorded in full, and `op_origins`.

    The latter has for each the outermost operator around it (top_id), the forward operator that it
    belongs to, which for most is itself (cause_id), and the outermost around that (root_id).
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
    """Columns id, top_id, cause_id, root_id. Ids ascend; no parent, no forward operator is -1."""
    parent, forward = _places(id, parent_id), _places(id, from_id)
    own = np.arange(len(id))
    root = _climbed(np.where(parent >= 0, parent, own))
    # Autograd links the outermost operator of a backward node; what runs inside inherits it.
    while (lacking := (forward < 0) & (parent >= 0) & (forward[parent] >= 0)).any():
        forward = np.where(lacking, forward[parent], forward)
    cause = np.where(forward >= 0, forward, own)
    return {"id": id, "top_id": id[root], "cause_id": id[cause], "root_id": id[root[cause]]}


def _places(id: Array, wanted: Array) -> Array:
    """Where in `id` each stands, -1 if nowhere."""
    if not len(id):
        return np.zeros(0, dtype=np.int64)
    place = np.minimum(np.searchsorted(id, wanted), len(id) - 1)
    return np.where(id[place] == wanted, place, -1)


def _climbed(above: Array) -> Array:
    while not np.array_equal(further := above[above], above):
        above = further
    return above


def bare(name: str) -> str:
    """The name of an operator without its library: mm of aten::mm."""
    return name.rpartition("::")[2]


def why_not(training: Training) -> CannotTell | None:
    """Why the costs of operators are not known, if they are not."""
    if not training.has_operators:
        return CannotTell("no operators were recorded", "record without --light: strobe run")
    if training.has_devices:
        return CannotTell(
            "the operators worked on a device, so their time on the host is not their cost",
            "strobe show RUN kernels tells what the device did",
        )
    ((steps,),) = training.run.sql(
        "SELECT count(DISTINCT step) FROM events WHERE kind = 'op'"
    ).fetchall()
    if steps < FEWEST_STEPS:
        return CannotTell(
            "operators were recorded in one step only", "record several steps in full: --steps 6:11"
        )
    return None


def where_called(training: Training, costs: list[OperatorCost]) -> str | None:
    """The user's line that was seen while the model called these, or else their module."""
    scope = costs[0].scope
    of_module = f"o.scope = {quoted(scope)}" if scope is not None else "o.scope IS NULL"
    names = ", ".join(sorted({quoted(cost.root) for cost in costs}))
    seen = line_of(
        training,
        f"""EXISTS (
            SELECT 1 FROM sampled_ops o
            WHERE o.rank = sample_times.rank AND o.name IN ({names}) AND {of_module}
                AND NOT o.is_backward
                AND sample_times.ts_ns BETWEEN o.ts_ns AND o.ts_ns + o.dur_ns
        )""",
        into_modules=True,
    )
    if seen is not None:
        return str(seen)
    place = training.place("model call")
    return scope or (str(place) if place else None)


def operator_costs(training: Training) -> list[OperatorCost]:
    """Every kind of call in an ordinary step, the dearest first."""
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
    """Steps of all ranks whose operators the costs come from."""
    ((count,),) = training.run.sql(
        "SELECT count(DISTINCT (rank, step)) FROM sampled_ops"
    ).fetchall()
    return int(count)


def recording_ns(training: Training) -> float:
    """What full recording adds to an operator: recorded steps against others."""
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
    """The median step without the time in which other programs used its core: operators are medians
    too, and have none of it. Never less than all operators of a step together, so that a part of
    them is not taken for more of the step than it is."""
    steps = training.steps
    undisturbed = steps["dur_ns"] - steps["recorder_ns"] - training.no_core_ns
    return max(1.0, float(np.median(undisturbed)), sum(cost.cost_ns for cost in costs))


def _scales(training: Training, costs: list[OperatorCost]) -> dict[str, float]:
    """By what to multiply the operators of a phase, so that they are of a step that was not
    recorded, and fit into it."""
    inside = dict.fromkeys(_PHASES_WITH_OPERATORS, 0.0)
    for cost in costs:
        if cost.direction in inside:
            inside[cost.direction] += cost.cost_ns
    length = {
        phase: float(np.median(training.steps[f"{phase}_ns"])) if training.step_count else 0.0
        for phase in inside
    }
    if training.runs_programs:
        # Its operators run side by side, those of the forward pass beside those of the backward.
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
    """How long they are in the steps whose operators the costs come from."""
    medians = ", ".join(f"median({phase}_ns)" for phase in _PHASES_WITH_OPERATORS)
    (row,) = training.run.sql(f"""
        SELECT {medians} FROM step_times SEMI JOIN sampled_ops USING (rank, step)
    """).fetchall()
    return dict(zip(_PHASES_WITH_OPERATORS, (float(ns or 0) for ns in row), strict=True))


def _scaled(cost: OperatorCost, factor: float) -> OperatorCost:
    return replace(cost, cost_ns=cost.cost_ns * factor) if factor != 1.0 else cost
