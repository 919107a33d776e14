"""Python code or a wait takes part of every step while no operator runs.

## What it is
In part of every step no operator runs, although training does not wait for data. The loop is
computing in Python (metrics, lists, strings, JSON), or it waits: a sleep, a file that is flushed to
disk, a network response, a print to a slow terminal.

## How it is judged
Between the passes of a step, Strobe counts the time in which no operator of at least 20 µs runs,
without waits for data, garbage collection and evaluation. Inside a pass it counts only gaps of at
least 1 ms that are between the same two operators in most steps, and only as far as the pass takes
longer than its operators in steps that full recording does not slow down.

The cost is that of the typical step (the median), so work that is only done now and then is left to
`periodic-stall`. The line is where the training thread was sampled in that time. Its CPU time shows
whether it computed or waited.

## How to fix
Do the work less often (every 100 steps), or on tensors instead of Python objects (one call for the
whole batch). Or do it in the background: in a thread if it waits (files, network), in another
process if it computes.

`nnx.jit` of flax traverses all objects of the model in Python at each call. `nnx.cached_partial`
does so only once.
"""

import re
from collections import Counter, defaultdict
from typing import Any

import numpy as np

from strobe.advise.data.plain_source import plain_source
from strobe.advise.evidence import single_operations, stack_lines
from strobe.advise.evidence.device_model import device_times
from strobe.advise.evidence.side_work import FREED_GRADIENTS, background_fix, kind_at, subject
from strobe.advise.evidence.step_parts import between_parts_ns
from strobe.advise.finding import CannotTell, Clear, Evidence, Finding, Verdict
from strobe.advise.fixes import at_line
from strobe.advise.thresholds import MOST_MEASURED, SMALLEST_SHARE, speedup
from strobe.advise.training import Training
from strobe.analyse.intervals import hidden
from strobe.analyse.recorded import WORK_KINDS
from strobe.analyse.tables.steps import gaps
from strobe.frameworks import of_all
from strobe.messages import Message, message
from strobe.units import count, duration, percent

NAME = "host-gap"

# If at least this part of the time belongs to another rule, all of it is left to that rule.
MOSTLY_RATIO = 0.5
# Gaps in a few steps of a trace are worth a warning from this share of step time; they are this
# many times as long as the median gap.
RARE_GAPS_RATIO = 0.2
LONG_GAPS = 5
# A trace of another tool with fewer steps does not show a typical one.
FEWEST_IMPORTED = 5
# Less time per step is the ordinary cost of a loop in Python: clearing gradients, passing a batch
# on. Most steps of healthy trainings had 0.05 to 0.5 ms.
SMALLEST_NS = 500_000
# An operator this short is called from Python for a value or two: most of its time is the call.
TINY_OPERATOR_NS = 20_000
# Inside a pass, shorter gaps are the cost of calling operators, which is another fault.
LONG_GAP_NS = 1_000_000

_TRAVERSALS = "|".join(map(re.escape, of_all(lambda framework: framework.model_traversal)))

_BETWEEN = ("gap", "rest")
# Not the backward pass, in which the autograd engine works and waits for other ranks.
_INSIDE = ("forward", "update")

# Operators on the host, in any thread.
_OPERATORS = f"""
    SELECT t.rank, e.ts_ns, e.ts_ns + e.dur_ns AS end_ns
    FROM events e JOIN tracks t ON t.id = e.track_id
    WHERE e.kind IN {WORK_KINDS} AND t.device = 'cpu'
"""

# A trace of another tool has no windows of full recording; each step with operators is in full.
_WITH_OPERATORS = """
    SELECT DISTINCT t.rank, e.step FROM events e JOIN tracks t ON t.id = e.track_id
    WHERE e.kind = 'op' AND e.step IS NOT NULL
"""

# Time that is neither the user's Python code nor a wait of it: other rules report it.
_ACCOUNTED = """
    SELECT rank, ts_ns, end_ns FROM outline
    WHERE kind IN ('data', 'gc') OR (kind = 'phase' AND name IN ('recorder', 'all_reduce'))
       OR (kind = 'annotation' AND starts_with(name, 'evaluation'))
"""

# The part of it that `_between_parts_ns` subtracts in every step.
_KNOWN_OF_EVERY_STEP = """
    SELECT rank, ts_ns, end_ns FROM outline
    WHERE kind = 'data' OR (kind = 'annotation' AND starts_with(name, 'evaluation'))
"""


def check(training: Training) -> Verdict:
    light_ns = _between_parts_ns(training)
    if light_ns is None or not training.has_operators:
        return _without_operators(training, light_ns)
    by_step = _by_step(training)
    if not by_step or (training.is_imported and len(by_step) < FEWEST_IMPORTED):
        return CannotTell(message("host-gap.too-few-full-steps"), message("host-gap.record-window"))
    between_ns = max(0.0, light_ns * _idle_ratio(by_step) - _data_made_ns(training))
    longer_ns = _passes_ns(training) - min(row["worked_ns"] for row in by_step)
    line = None
    # In threads of the framework's own, the time between operators is not spent in Python.
    if training.framework.is_called_by_python:
        inside_ns = max(0.0, min(_inside_ns(training, len(by_step)), longer_ns))
    else:
        ratio, line = stack_lines.own_python(training, _INSIDE)
        inside_ns = training.typical_ns * ratio
    cost_ns = between_ns + inside_ns
    share = min(MOST_MEASURED, cost_ns / max(1.0, training.typical_ns))
    if training.has_devices:
        share = min(share, _device_waits_ratio(training))
    if share < SMALLEST_SHARE or cost_ns < SMALLEST_NS:
        rare = _rare_gaps(training) if training.is_imported else None
        return rare or Clear(_small(cost_ns, share))
    calling = single_operations.check(training)
    if calling is not None and calling.share >= MOSTLY_RATIO * share:
        return Clear(message("host-gap.calling-operators", share=percent(share)))
    is_inside = inside_ns > between_ns
    return _finding(
        training, share, is_inside=is_inside, line=line if is_inside else None, rows=by_step
    )


def _small(cost_ns: float, share: float) -> Message:
    values = {"each": duration(cost_ns), "share": percent(share)}
    if share < SMALLEST_SHARE:
        return message("host-gap.small", **values)
    return message("host-gap.ordinary", **values)


def _finding(
    training: Training,
    share: float,
    *,
    is_inside: bool,
    line: str | None,
    rows: list[dict[str, Any]],
) -> Finding | Clear:
    phases = _INSIDE if is_inside else _BETWEEN
    names = ", ".join(f"'{name}'" for name in phases)
    found = stack_lines.line_of(
        training, f"phase IN ({names})", into_modules=is_inside, looks=stack_lines.TYPICAL_LOOKS
    )
    line = line or (str(found) if found else None)
    # Inside the forward pass, `checkpoint` in a stack is activation checkpointing.
    kind = None if is_inside else kind_at(training, f"phase IN ({names})")
    if kind == FREED_GRADIENTS:
        return Clear(message("host-gap.freeing-gradients", share=percent(share)))
    title, fixes = _work(training, share, phases, kind, line)
    each = duration(share * training.mean_ns)
    why = message("host-gap.between-passes", each=each)
    if is_inside:
        why = message("host-gap.inside-passes", each=each)
    return Finding(
        title=title,
        why=why,
        share=share,
        expected_speedup=speedup(share, MOST_MEASURED),
        fixes=fixes,
        evidence=(Evidence("steps", tuple(rows[:5])), *_lines(training, names)),
        where=line,
        is_certain=True,
    )


def _work(
    training: Training, share: float, phases: tuple[str, ...], kind: str | None, line: str | None
) -> tuple[Message, tuple[Message, ...]]:
    """What takes the time, as a title, and the fixes for it."""
    values = {"at": at_line(line), "share": percent(share)}
    on_cpu = stack_lines.cpu_ratio(training, phases)
    is_waiting = on_cpu is not None and on_cpu < stack_lines.WAITING_CPU_RATIO
    if not is_waiting and _traverses_model(training, phases):
        once = (message("host-gap.traverse-once"), message("host-gap.split-once"))
        return message("host-gap.model-traversal", **values), once
    place = _place(training, line)
    less_often = message("host-gap.run-less-often", place=place)
    if in_background := background_fix(training, kind, line):
        what = subject(kind, line)
        title = message("host-gap.side-work", what=what, share=percent(share))
        return title, (less_often, in_background)
    if on_cpu is None:
        return message("host-gap.no-operator", **values), (less_often,)
    if is_waiting:
        in_thread = message("host-gap.wait-in-thread", place=place)
        return message("host-gap.wait", **values), (in_thread, less_often)
    vectorize = message("host-gap.vectorize", place=place)
    fixes = (vectorize, less_often, message("host-gap.hand-to-process"))
    return message("host-gap.python", **values), fixes


def _rare_gaps(training: Training) -> Finding | None:
    """Gaps in a few steps that take much of all step time, in a trace that does not show what the
    loop did there: a wait for data, a checkpoint, an evaluation."""
    steps = training.steps
    gap_ns = (steps["gap_ns"] - steps["data_ns"]).astype(float)
    ratio = float(gap_ns.sum()) / max(1, training.total_ns)
    is_long = gap_ns > LONG_GAPS * max(1.0, float(np.median(gap_ns)))
    if training.has_devices or ratio < RARE_GAPS_RATIO or not is_long.any():
        return None
    if gap_ns[is_long].sum() < MOSTLY_RATIO * gap_ns.sum():
        return None
    columns = ("rank", "step", "dur_ns", "gap_ns", "data_ns")
    rows = tuple(
        {name: int(steps[name][at]) for name in columns} for at in np.argsort(-gap_ns)[:5].tolist()
    )
    return Finding(
        title=message(
            "host-gap.rare-gaps",
            share=percent(ratio),
            long=count(int(is_long.sum())),
            steps=count(len(gap_ns)),
        ),
        why=message("host-gap.trace-without-lines"),
        share=0.0,
        expected_speedup=1.0,
        fixes=(message("host-gap.record-lines"),),
        evidence=(Evidence("steps", rows),),
        is_certain=False,
        is_warning=True,
    )


def _traverses_model(training: Training, phases: tuple[str, ...]) -> bool:
    """Whether most samples are in what a library does around each call of the program."""
    names = ", ".join(f"'{name}'" for name in phases)
    rows = training.rows(f"""
        SELECT sum(dur_ns) FILTER (regexp_matches(stack, '{_TRAVERSALS}')) / sum(dur_ns) AS ratio,
               count(*) AS samples
        FROM {stack_lines.TYPICAL_LOOKS} WHERE phase IN ({names})
    """)
    is_enough = rows[0]["samples"] >= stack_lines.FEWEST_LOOKS
    return is_enough and (rows[0]["ratio"] or 0) >= MOSTLY_RATIO


def _place(training: Training, line: str | None) -> Message:
    if line is not None:
        return message("host-gap.place-at", line=line)
    if update := training.place("update"):
        return message("host-gap.place-after", line=update)
    return message("host-gap.place-between")


def _lines(training: Training, names: str) -> tuple[Evidence, ...]:
    rows = training.rows(f"""
        SELECT place, function, count(*) AS samples, sum(dur_ns)::BIGINT AS total_ns,
               mode(below ORDER BY below) AS below
        FROM {stack_lines.TYPICAL_LOOKS} WHERE phase IN ({names}) GROUP BY place, function
        ORDER BY total_ns DESC LIMIT 5
    """)
    return (Evidence("python-lines", tuple(rows)),) if rows else ()


def _between_parts_ns(training: Training) -> float | None:
    """Time between the passes of the typical step, without waits for data and evaluation."""
    between = between_parts_ns(training)
    return float(np.median(between)) if len(between) else None


def _idle_ratio(by_step: list[dict[str, Any]]) -> float:
    """The part of the time between the passes in which no operator runs. The few steps recorded in
    full show this ratio, but not how long it takes in an ordinary step: work that grows from step
    to step is still short in them, because they are among the first."""
    ratios = [row["between_ns"] / row["all_ns"] for row in by_step if row["all_ns"]]
    return min(1.0, float(np.median(ratios))) if ratios else 0.0


def _passes_ns(training: Training) -> float:
    """Forward pass and update of the typical step, which full recording does not slow down."""
    steps = training.steps
    return float(np.median(steps["forward_ns"] + steps["update_ns"]))


def _data_made_ns(training: Training) -> float:
    """Time in which the loop itself builds batches, per typical step: see `data-starvation`."""
    if training.rows("SELECT 1 FROM outline WHERE kind = 'data' LIMIT 1"):
        return 0.0
    source = plain_source(training)
    return source.share * training.typical_ns if source else 0.0


def _without_operators(training: Training, light_ns: float | None) -> Verdict:
    if light_ns is None:
        return Clear(message("host-gap.no-gaps"))
    share = light_ns / max(1.0, training.typical_ns)
    values = {"each": duration(light_ns), "share": percent(share)}
    if share < SMALLEST_SHARE:
        return Clear(message("host-gap.small-between-passes", **values))
    if light_ns < SMALLEST_NS:
        return Clear(message("host-gap.ordinary-between-passes", **values))
    return CannotTell(
        message("host-gap.operators-not-recorded", each=duration(light_ns)),
        message("host-gap.record-in-full"),
    )


def _by_step(training: Training) -> list[dict[str, Any]]:
    """For each step recorded in full: the time without operators between its passes, all time there
    without waits for data and evaluation, and the time with operators inside its passes."""
    by_window = training.has_devices or not training.is_imported
    training.run.make(
        "steps_with_operators",
        "SELECT rank, step FROM recorded_steps" if by_window else _WITH_OPERATORS,
    )
    phases = """
        SELECT o.rank, o.step, o.ts_ns, o.end_ns FROM outline o
        WHERE o.kind = 'phase'
          AND (o.rank, o.step) IN (SELECT rank, step FROM steps_with_operators)
    """
    between = f"{phases} AND o.name IN {_BETWEEN}"
    passes = f"{phases} AND o.name IN {_INSIDE}"
    not_tiny = f"{_OPERATORS} AND e.dur_ns >= {TINY_OPERATOR_NS}"
    return training.rows(f"""
        WITH between_parts AS ({hidden(between, f"{not_tiny} UNION ALL {_ACCOUNTED}", "rank")}),
        known AS ({hidden(between, _KNOWN_OF_EVERY_STEP, "rank")}),
        worked AS ({hidden(passes, _OPERATORS, "rank")}),
        parts AS (
            SELECT rank, step, end_ns - ts_ns - hidden_ns AS between_ns, 0 AS all_ns, 0 AS worked_ns
            FROM between_parts
            UNION ALL
            SELECT rank, step, 0, end_ns - ts_ns - hidden_ns, 0 FROM known
            UNION ALL
            SELECT rank, step, 0, 0, hidden_ns FROM worked
        )
        SELECT rank, step, coalesce(sum(between_ns), 0)::BIGINT AS between_ns,
               coalesce(sum(all_ns), 0)::BIGINT AS all_ns,
               coalesce(sum(worked_ns), 0)::BIGINT AS worked_ns
        FROM steps_with_operators LEFT JOIN parts USING (rank, step) GROUP BY rank, step
        ORDER BY rank, step
    """)


def _inside_ns(training: Training, step_count: int) -> float:
    """Long gaps inside the passes of the typical step, each between the same two operators. Gaps
    that a busy machine causes are elsewhere in every step."""
    found = gaps.run(training.run, min_ns=LONG_GAP_NS)
    places: dict[tuple[object, ...], dict[tuple[int, int], int]] = defaultdict(Counter)
    for row in found.fetchall():
        gap = dict(zip(found.columns, row, strict=True))
        if gap["phase"] in _INSIDE:
            between = (gap["phase"], gap["before"], gap["scope_before"], gap["after"],
                       gap["scope_after"])  # fmt: skip
            places[between][gap["rank"], gap["step"]] += gap["dur_ns"]
    missing = [[0] * (step_count - len(by_step)) for by_step in places.values()]
    lengths = [[*by_step.values()] for by_step in places.values()]
    return sum(float(np.median(a + b)) for a, b in zip(lengths, missing, strict=True))


def _device_waits_ratio(training: Training) -> float:
    """A device with enough work hides what its host does, so all that can be gained is the time in
    which it waits for the host, other than for data."""
    waits = [(one.late_ns - one.data_ns) / max(1, one.total_ns) for one in device_times(training)]
    return max(waits, default=1.0)
