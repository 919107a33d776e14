"""Arguments that a compiled function copies because it must not overwrite them.

A part of the rule `layout-copies`.
"""

from collections import defaultdict
from typing import NamedTuple

from strobe.advise.evidence.operator_times import OperatorCost
from strobe.advise.finding import Evidence, Finding
from strobe.advise.fixes import fix
from strobe.advise.rules.recompilation import called_at
from strobe.advise.thresholds import speedup
from strobe.advise.training import Training
from strobe.frameworks.graph_names import ADDED_COPY, copying_program, paths_of
from strobe.messages import message
from strobe.model.journal import COMPILATION
from strobe.units import percent, size

# A donated array is updated in place, so only the changed elements are still written.
AVOIDABLE_RATIO = 0.95
# From this part of its time on, a program does little else than copy.
MOSTLY_RATIO = 0.9
# Smaller arrays are in the processor's caches. A copy reads as many bytes as it writes.
LEAST_BYTES = 1 << 20


class _Copy(NamedTuple):
    cost: OperatorCost
    bytes: int


def check(training: Training, costs: list[OperatorCost], smallest: float) -> Finding | None:
    """The program that copies most, if copying takes this share of step time."""
    programs = _copies(training, costs)
    if not programs:
        return None
    program, copies = max(programs.items(), key=lambda item: _cost_ns(item[1]))
    copied_ns = max(_cost_ns(copies), _call_ns(training, program))
    time_share = min(1.0, copied_ns / max(1.0, training.typical_ns))
    share = AVOIDABLE_RATIO * time_share
    if share < smallest:
        return None
    largest = max(copy.bytes for copy in copies)
    place = _place(training, program)
    return Finding(
        title=message("layout-copies.arguments-title", program=program, share=percent(time_share)),
        why=message("layout-copies.arguments-why", program=program, size=size(largest)),
        share=share,
        expected_speedup=speedup(share),
        fixes=(
            fix("donate-arguments", training.framework, place, program=program),
            message("layout-copies.smaller-arrays"),
        ),
        evidence=(Evidence("operators", tuple(copy.cost.row() for copy in copies[:5])),),
        where=place,
        is_certain=False,
    )


def _copies(training: Training, costs: list[OperatorCost]) -> dict[str, list[_Copy]]:
    """The copies of each program, the most expensive first."""
    rows = training.rows(
        f"""
        SELECT event_id, node FROM op_args
        WHERE regexp_matches(node, '{ADDED_COPY}') AND input_shapes = output_shapes
            AND list_contains($ids, event_id)
        """,
        {"ids": [cost.event_id for cost in costs]},
    )
    nodes = {row["event_id"]: copying_program(row["node"]) for row in rows}
    found: dict[str, list[_Copy]] = defaultdict(list)
    for cost in costs:
        program, moved = nodes.get(cost.event_id), (cost.bytes or 0) // 2
        if program is not None and moved >= LEAST_BYTES:
            found[program].append(_Copy(cost, moved))
    return dict(found)


def _cost_ns(copies: list[_Copy]) -> float:
    return sum(copy.cost.cost_ns for copy in copies)


def _call_ns(training: Training, program: str) -> float:
    """The time of the calls of a program per step; 0 if it does more than copy.

    A copy needs new memory, whose pages the system clears first. On the host that takes longer than
    the copy itself, and this time is part of the call but not of its operators.
    """
    ((copies_ns, all_ns),) = training.run.sql(
        f"""
        SELECT sum(e.dur_ns) FILTER (regexp_matches(a.node, '{ADDED_COPY}')), sum(e.dur_ns)
        FROM events e JOIN op_args a ON a.event_id = e.id
        WHERE starts_with(a.node, $added) OR starts_with(a.node, $traced)
        """,
        dict(zip(("added", "traced"), paths_of(program), strict=True)),
    ).fetchall()
    if not all_ns or (copies_ns or 0) < MOSTLY_RATIO * all_ns:
        return 0.0
    ((length_ns, calls),) = training.run.sql(
        "SELECT median(dur_ns), count(*) FROM events WHERE kind = 'runtime' AND name = $name",
        {"name": f"dispatch {program}"},
    ).fetchall()
    ((steps,),) = training.run.sql("SELECT count(*) FROM step_times").fetchall()
    return float((length_ns or 0) * calls / max(1, steps))


def _place(training: Training, program: str) -> str | None:
    """The line that called it when it was compiled."""
    rows = training.rows(
        "SELECT name FROM events WHERE kind = 'annotation' AND starts_with(name, $name)"
        " AND contains(name, $program) ORDER BY ts_ns",
        {"name": COMPILATION, "program": f" of {program} "},
    )
    return called_at(rows)
