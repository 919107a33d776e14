"""Evaluation runs with gradients enabled, and remembers everything for a backward pass.

## What it is
The model is put into evaluation mode (`model.eval()`), which changes dropout and batch norm, but
gradients are still recorded: every operator builds a piece of a graph and keeps its inputs in
memory, for a backward pass that never comes.

## How it is judged
A forward pass counts if gradients were enabled, the model was in evaluation mode, and no backward
pass followed that could use it; or if no optimizer has its parameters (a teacher), and then the
part of the backward pass that goes through it counts as well. How much of it the graph costs was
measured on a processor for models of several kinds: 3 % (large matrices) to 34 % (convolutions,
recurrent ones), a fifth in the middle. So the cost told is an estimate; memory is saved besides.

In JAX and MindSpore nothing is kept for a backward pass unless a gradient is asked for (`jax.grad`,
`mindspore.value_and_grad`), so evaluation costs nothing more there.

## How to fix
Put `with torch.no_grad():` around the evaluation, or `@torch.inference_mode()` before the function.
"""

from typing import Any, NamedTuple

from strobe.advise.finding import Clear, Evidence, Finding, Verdict
from strobe.advise.training import Lines, Training
from strobe.model.schema import EVALUATION_WITH_GRADIENTS, FORWARD_IN_EVALUATION_MODE
from strobe.units import percent

NAME = "gradients-in-evaluation"

# What of a forward pass the recording of gradients takes: see above.
GRAPH_RATIO = 0.2
# The fix is one line and safe: it is worth telling from this share on, as a warning.
WORTH_WARNING_RATIO = 0.01
WORTH_TELLING_RATIO = 0.05


_NAMES = [EVALUATION_WITH_GRADIENTS, FORWARD_IN_EVALUATION_MODE]


def check(training: Training) -> Verdict:
    if training.frameworks and "torch" not in training.frameworks:
        return Clear("this framework keeps nothing for a gradient that is not asked for")
    teacher = _place(training, "AND contains(details, '\"learns\": false')")
    place = teacher or _place(training, "AND NOT contains(details, '\"frozen\": true')")
    passes = _passes(training, teacher is not None)
    if not passes:
        return Clear("no evaluation with gradients was seen in the steps judged")
    if place is None and training.place("model call"):
        return Clear("the parameters of what is evaluated want no gradients: none are recorded")
    forward_ns = sum(row["dur_ns"] for row in passes)
    backward_ns = _backward_ratio(training) * float(training.steps["backward_ns"].sum())
    share = (GRAPH_RATIO * forward_ns + backward_ns) / max(1, training.total_ns)
    told = f"{len(passes)} forward passes of evaluation record gradients"
    if share < WORTH_WARNING_RATIO:
        return Clear(f"{told}, {percent(share)} of step time")
    at = f" at {place.line}" if place else ""
    too = ", backward passes go through them too" if backward_ns else ""
    return Finding(
        title=f"{told}{at} that nobody uses{too}: about {percent(share)} of step time, and memory",
        share=min(0.99, share),
        expected_speedup=1 / (1 - min(0.99, share)),
        fixes=_fixes(place, is_teacher=teacher is not None),
        evidence=(Evidence("events", tuple(passes[:10])),),
        where=str(place.line) if place else None,
        is_certain=False,
        is_warning=share < WORTH_TELLING_RATIO,
    )


class Place(NamedTuple):
    line: Lines
    function: str | None


def _passes(training: Training, has_teacher: bool) -> list[dict[str, Any]]:
    """Of evaluation, in the steps judged, the longest first; and those of a teacher."""
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
    """In steps recorded in full: how much of the backward pass belongs to operators of forward
    passes in evaluation mode."""
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


def _fixes(place: Place | None, *, is_teacher: bool) -> tuple[str, ...]:
    at = f" at {place.line}" if place else ""
    what = "the call of the model that does not learn" if is_teacher else "the evaluation"
    fixes = [f"put `with torch.no_grad():` around {what}{at}"]
    if is_teacher:
        fixes.append("or, once, before training: model.requires_grad_(False)")
    elif place and place.function and not place.function.startswith("<"):
        fixes.append(f"or write @torch.inference_mode() before def {place.function}")
    return tuple(fixes)


def _place(training: Training, sign: str) -> Place | None:
    """Where the model is called in evaluation mode with gradients on; `sign` is more SQL."""
    found = training.rows(f"""
        SELECT file, line, function FROM places
        WHERE what = 'model call' AND contains(details, '"gradients": true')
          AND contains(details, '"training": false') {sign} ORDER BY rank, number LIMIT 1
    """)
    if not found:
        return None
    return Place(Lines(found[0]["file"], found[0]["line"]), found[0]["function"])
