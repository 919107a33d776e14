"""Evaluation runs with gradients enabled, so it builds a graph that no backward pass uses.

## What it is
`model.eval()` puts the model into evaluation mode, which changes dropout and batch norm, but does
not disable gradients. Every operator still adds to a graph and keeps its inputs in memory, for a
backward pass that never comes.

## How it is judged
A forward pass counts if gradients were enabled, the model was in evaluation mode, and no backward
pass followed that could use it. It also counts if no optimizer has the model's parameters (a
teacher). In that case the part of the backward pass that goes through the model counts too.

The cost of the graph was measured on a CPU for several kinds of models: from 3% (large matrices) to
34% (convolutional and recurrent models) of the forward pass, with 20% in the middle. The reported
cost is therefore an estimate. The fix also saves memory.

JAX and MindSpore record nothing for a backward pass unless a gradient is requested (`jax.grad`,
`mindspore.value_and_grad`), so evaluation has no extra cost there.

## How to fix
Put `with torch.no_grad():` around the evaluation, or `@torch.inference_mode()` before the function.
"""

from typing import Any, NamedTuple

from strobe.advise.finding import Clear, Evidence, Finding, Verdict
from strobe.advise.fixes import at_line, fix
from strobe.advise.thresholds import MOST_MEASURED, SMALLEST_SHARE, SMALLEST_WARNING_SHARE, speedup
from strobe.advise.training import Lines, Training
from strobe.frameworks import Framework
from strobe.messages import Message, message
from strobe.model.schema import EVALUATION_WITH_GRADIENTS, FORWARD_IN_EVALUATION_MODE
from strobe.units import count, percent

NAME = "gradients-in-evaluation"

# The part of a forward pass that recording gradients takes: see above.
GRAPH_RATIO = 0.2

_NAMES = [EVALUATION_WITH_GRADIENTS, FORWARD_IN_EVALUATION_MODE]


def check(training: Training) -> Verdict:
    if not training.may_have(lambda framework: framework.records_gradients):
        return Clear(message("gradients-in-evaluation.recorded-on-request"))
    teacher = _place(training, "AND contains(details, '\"learns\": false')")
    place = teacher or _place(training, "AND NOT contains(details, '\"frozen\": true')")
    passes = _passes(training, teacher is not None)
    if not passes:
        return Clear(message("gradients-in-evaluation.no-evaluation-with-gradients"))
    if place is None and training.place("model call"):
        return Clear(message("gradients-in-evaluation.frozen-parameters"))
    forward_ns = sum(row["dur_ns"] for row in passes)
    backward_ns = _backward_ratio(training) * float(training.steps["backward_ns"].sum())
    share = (GRAPH_RATIO * forward_ns + backward_ns) / max(1, training.total_ns)
    counted = _counted(len(passes))
    if share < SMALLEST_WARNING_SHARE:
        return Clear(message("gradients-in-evaluation.small", passes=counted, share=percent(share)))
    line = str(place.line) if place else None
    why = message("gradients-in-evaluation.unused-gradients", passes=counted)
    if backward_ns:
        why = message("gradients-in-evaluation.unused-gradients-with-backward", passes=counted)
    return Finding(
        title=_title(line, share, is_teacher=teacher is not None),
        why=why,
        share=min(MOST_MEASURED, share),
        expected_speedup=speedup(share, MOST_MEASURED),
        fixes=_fixes(training.framework, place, is_teacher=teacher is not None),
        evidence=(Evidence("events", tuple(passes[:10])),),
        where=line,
        is_certain=False,
        is_warning=share < SMALLEST_SHARE,
    )


def _counted(passes: int) -> Message:
    if passes == 1:
        return message("gradients-in-evaluation.one-pass")
    return message("gradients-in-evaluation.passes", count=count(passes))


def _title(line: str | None, share: float, *, is_teacher: bool) -> Message:
    values = {"at": at_line(line), "share": percent(share)}
    if is_teacher:
        return message("gradients-in-evaluation.teacher-with-gradients", **values)
    return message("gradients-in-evaluation.evaluation-with-gradients", **values)


class Place(NamedTuple):
    line: Lines
    function: str | None


def _passes(training: Training, has_teacher: bool) -> list[dict[str, Any]]:
    """The forward passes of evaluation in the steps judged, longest first; with a teacher, all in
    evaluation mode."""
    names = _NAMES if has_teacher else _NAMES[:1]
    passes = training.rows(
        """
        SELECT o.id, o.rank, s.step, o.ts_ns, o.dur_ns, o.name FROM outline o
        ASOF JOIN step_times s ON s.rank = o.rank AND s.ts_ns <= o.ts_ns
        WHERE o.kind = 'annotation' AND o.name IN $names AND o.ts_ns < s.ts_ns + s.dur_ns
        ORDER BY o.dur_ns DESC
        """,
        {"names": names},
    )
    return [row for row in passes if training.judges(row["rank"], row["step"])]


def _backward_ratio(training: Training) -> float:
    """The part of the backward pass that belongs to operators of forward passes in evaluation mode,
    from the steps recorded in full."""
    rows = training.rows(
        """
        WITH spans AS (
            SELECT rank, ts_ns, end_ns FROM outline
            WHERE kind = 'annotation' AND name IN $names
        ),
        ops AS (
            SELECT e.id FROM events e JOIN tracks t ON t.id = e.track_id
            ASOF JOIN spans s ON s.rank = t.rank AND s.ts_ns <= e.ts_ns
            WHERE e.kind = 'op' AND e.ts_ns < s.end_ns
              AND (t.rank, e.step) IN (SELECT rank, step FROM recorded_steps)
        ),
        back AS (
            SELECT DISTINCT b.id, b.dur_ns FROM ops JOIN links l ON l.from_id = ops.id
            JOIN events b ON b.id = l.to_id WHERE l.kind = 'forward_backward'
        )
        SELECT (SELECT sum(dur_ns) FROM back) AS theirs_ns,
               (SELECT sum(backward_ns) FROM step_times WHERE is_recorded) AS all_ns
        """,
        {"names": _NAMES},
    )
    theirs_ns, all_ns = rows[0]["theirs_ns"] or 0, rows[0]["all_ns"] or 0
    return float(min(1.0, theirs_ns / all_ns)) if all_ns else 0.0


def _fixes(framework: Framework, place: Place | None, *, is_teacher: bool) -> tuple[Message, ...]:
    line = str(place.line) if place else None
    if is_teacher:
        return (
            fix("no-gradients-of-teacher", framework, line),
            fix("freeze-teacher", framework),
        )
    around = fix("no-gradients-in-evaluation", framework, line)
    if place and place.function and not place.function.startswith("<"):
        mode = fix("inference-mode", framework, function=place.function)
        return (around, mode)
    return (around,)


def _place(training: Training, condition: str) -> Place | None:
    """Where the model is called in evaluation mode with gradients enabled.

    `condition` is further SQL over `places`.
    """
    found = training.rows(f"""
        SELECT file, line, function FROM places
        WHERE what = 'model call' AND contains(details, '"gradients": true')
          AND contains(details, '"training": false') {condition} ORDER BY rank, number LIMIT 1
    """)
    if not found:
        return None
    return Place(Lines(found[0]["file"], found[0]["line"]), found[0]["function"])
