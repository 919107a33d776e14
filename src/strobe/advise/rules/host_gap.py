"""Python or a wait stands between the operators of every step.

## What it is
In a part of every step no operator runs, and training does not wait for data either: the loop is
busy in Python (metrics counted by hand, lists, strings, JSON) or stands still (a sleep, a file
written through to the disk, an answer from the network, a print to a slow terminal).

## How it is judged
Between the parts of a step (from the update to the next forward pass, and around the passes) all
time counts in which no operator of at least 20 µs runs, less waits for data, garbage collection
and evaluation. Inside a pass only gaps of at least 1 ms count that lie between the same two
operators in most steps, as far as the pass takes longer than its operators also in steps that full
recording does not slow. The typical step (the median) is the cost, so that what happens only now
and then is left to `periodic-stall`. The line is the one that training was seen at meanwhile;
whether it computed or waited is told by its CPU time.

## How to fix
Do it less often (every 100 steps), on tensors instead of Python objects (one call for the whole
batch), or beside the training: in a thread for what waits (files, network), in another process for
what computes. `nnx.jit` of flax goes through all objects of the model at each call, in Python:
`nnx.cached_partial` does so once.
"""

from collections import Counter, defaultdict
from typing import Any

import numpy as np

from strobe.advise.data.plain_source import plain_source
from strobe.advise.evidence import single_operations, stack_lines
from strobe.advise.evidence.device_model import device_times
from strobe.advise.evidence.side_work import FREED_GRADIENTS, background_fix, kind_at
from strobe.advise.evidence.step_parts import between_parts_ns
from strobe.advise.finding import CannotTell, Clear, Evidence, Finding, Verdict
from strobe.advise.training import Training
from strobe.analyse.intervals import hidden
from strobe.analyse.recorded import WORK_KINDS
from strobe.analyse.tables.steps import gaps
from strobe.units import duration, percent

NAME = "host-gap"

# Below this share the gain is lost in run-to-run noise.
WORTH_TELLING_RATIO = 0.05
# If so much of it is another rule's affair, all of it is left to that.
MOSTLY_RATIO = 0.5
# Gaps of a few steps of a trace are worth a warning from this share of step time on; they are this
# many times as long as the median one.
RARE_GAPS_RATIO = 0.2
LONG_GAPS = 5
# A trace of another tool with fewer steps does not show a typical one.
FEWEST_IMPORTED = 5
# Below it a step it is the ordinary cost of a loop in Python: clearing gradients, handing over a
# batch. Most steps of healthy trainings had 0.05 to 0.5 ms.
WORTH_TELLING_NS = 500_000
# An operator so short is called from Python for a value or two: most of its time is the call.
TINY_OPERATOR_NS = 20_000
# Inside a pass, shorter gaps are the cost of calling operators, which is another fault.
LONG_GAP_NS = 1_000_000

_NNX = "/flax/nnx/"
_WALKS_ONCE = (
    "let it go through the objects once: step = nnx.cached_partial(train_step, model, ...), "
    "before the loop, and step(batch) in it",
    "or nnx.split the model once, train its state with jax.jit, and nnx.merge it at the end",
)

_BETWEEN = ("gap", "rest")
# Not the backward pass: there the engine of autograd works, and waits for other ranks.
_INSIDE = ("forward", "update")

# What keeps the host busy, on whatever thread.
_OPERATORS = f"""
    SELECT t.rank, e.ts_ns, e.ts_ns + e.dur_ns AS end_ns
    FROM events e JOIN tracks t ON t.id = e.track_id
    WHERE e.kind IN {WORK_KINDS} AND t.device = 'cpu'
"""

# A trace of another tool has no windows of full recording: it is in full wherever it has operators.
_WITH_OPERATORS = """
    SELECT DISTINCT t.rank, e.step FROM events e JOIN tracks t ON t.id = e.track_id
    WHERE e.kind = 'op' AND e.step IS NOT NULL
"""

# What is neither Python's nor a wait of the user's: each has a rule or a name of its own.
_ACCOUNTED = """
    SELECT rank, ts_ns, end_ns FROM outline
    WHERE kind IN ('data', 'gc') OR (kind = 'phase' AND name IN ('recorder', 'all_reduce'))
       OR (kind = 'annotation' AND starts_with(name, 'evaluation'))
"""

# Of that, what `_between_parts_ns` takes off in every step.
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
        return CannotTell(
            "no step was recorded in full", "record a window of steps: strobe run train.py"
        )
    between_ns = max(0.0, light_ns * _idle_ratio(by_step) - _data_made_ns(training))
    longer_ns = _passes_ns(training) - min(row["worked_ns"] for row in by_step)
    inside_ns = 0.0
    if _python_calls_operators(training):
        inside_ns = max(0.0, min(_inside_ns(training, len(by_step)), longer_ns))
    cost_ns = between_ns + inside_ns
    share = min(0.99, cost_ns / max(1.0, training.typical_ns))
    if training.has_devices:
        share = min(share, _device_waits_ratio(training))
    if share < WORTH_TELLING_RATIO or cost_ns < WORTH_TELLING_NS:
        rare = _rare_gaps(training) if training.is_imported else None
        return rare or Clear(f"{duration(cost_ns)} a step without operators, {percent(share)}")
    calling = single_operations.check(training)
    if calling is not None and calling.share >= MOSTLY_RATIO * share:
        return Clear(f"{percent(share)} of a step goes into calling, which is tiny-operators")
    return _finding(training, share, is_inside=inside_ns > between_ns, rows=by_step)


def _finding(
    training: Training, share: float, *, is_inside: bool, rows: list[dict[str, Any]]
) -> Finding | Clear:
    phases = _INSIDE if is_inside else _BETWEEN
    names = ", ".join(f"'{name}'" for name in phases)
    found = stack_lines.line_of(
        training, f"phase IN ({names})", into_modules=is_inside, looks=stack_lines.TYPICAL_LOOKS
    )
    on_cpu = stack_lines.cpu_ratio(training, phases)
    is_waiting = on_cpu is not None and on_cpu < stack_lines.WAITING_CPU_RATIO
    doing = "something" if on_cpu is None else "a wait" if is_waiting else "Python"
    walks = not is_waiting and _walks_through_model(training, names)
    # Inside the forward pass, `checkpoint` in a stack is activation checkpointing.
    kind = None if is_inside else kind_at(training, f"phase IN ({names})")
    if kind == FREED_GRADIENTS:
        return Clear(f"zero_grad frees the memory of gradients for {percent(share)} of step time")
    asynchronous = background_fix(training, kind)
    doing = kind if kind and asynchronous else doing
    where = str(found) if found else None
    at = f" at {found}" if found else ""
    doing = "flax.nnx, which goes through the model's objects in Python," if walks else doing
    what = f"{doing}{at}" if doing != "something" else f"something{at} other than operators"
    return Finding(
        title=f"{what} takes {duration(share * training.mean_ns)} of every step, {percent(share)}, "
        "in which no operator runs",
        share=share,
        expected_speedup=1 / (1 - share),
        fixes=_WALKS_ONCE
        if walks
        else (_seldom(training, where), asynchronous)
        if asynchronous
        else _fixes(training, where, on_cpu is not None, is_waiting),
        evidence=(Evidence("steps", tuple(rows[:5])), *_lines(training, names)),
        where=where,
        is_certain=True,
    )


def _rare_gaps(training: Training) -> Finding | None:
    """Gaps of a few steps that take much of all step time, in a trace that does not show what the
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
        title=f"gaps between steps take {percent(ratio)} of step time, most of it in "
        f"{int(is_long.sum())} of {len(gap_ns)} steps",
        why="The trace does not show what the loop did there: it may wait for data, evaluate or "
        "save.",
        share=0.0,
        expected_speedup=1.0,
        fixes=("record this training with `strobe run train.py` to see the line that runs there",),
        evidence=(Evidence("steps", rows),),
        is_certain=False,
        is_warning=True,
    )


def _walks_through_model(training: Training, names: str) -> bool:
    """Whether it is mostly seen in what nnx.jit does around each call of the program."""
    rows = training.rows(f"""
        SELECT sum(dur_ns) FILTER (stack LIKE '%{_NNX}%') / sum(dur_ns) AS ratio, count(*) AS looks
        FROM {stack_lines.TYPICAL_LOOKS} WHERE phase IN ({names})
    """)
    return rows[0]["looks"] >= stack_lines.FEWEST_LOOKS and (rows[0]["ratio"] or 0) >= MOSTLY_RATIO


def _fixes(
    training: Training, where: str | None, is_known: bool, is_waiting: bool
) -> tuple[str, ...]:
    at, seldom = _place(training, where), _seldom(training, where)
    if not is_known:
        return (seldom,)
    if is_waiting:
        return (
            f"do not wait {at}: hand it to a thread "
            "(concurrent.futures.ThreadPoolExecutor(1).submit(...)) and go on",
            seldom,
        )
    return (
        f"vectorize the work {at}, cache what does not change, or prepare it in the background",
        seldom,
        "or hand the values to another process, and go on",
    )


def _place(training: Training, where: str | None) -> str:
    update = training.place("update")
    return f"at {where}" if where else f"after {update}" if update else "between the steps"


def _seldom(training: Training, where: str | None) -> str:
    if where is not None:
        return f"do what {where} does every 100 steps only: if step % 100 == 0"
    return f"do what stands {_place(training, where)} every 100 steps only: if step % 100 == 0"


def _lines(training: Training, names: str) -> tuple[Evidence, ...]:
    rows = training.rows(f"""
        SELECT place, function, count(*) AS samples, sum(dur_ns)::BIGINT AS total_ns,
               mode(below ORDER BY below) AS below
        FROM {stack_lines.TYPICAL_LOOKS} WHERE phase IN ({names}) GROUP BY place, function
        ORDER BY total_ns DESC LIMIT 5
    """)
    return (Evidence("python-lines", tuple(rows)),) if rows else ()


def _between_parts_ns(training: Training) -> float | None:
    """Of the typical step: what is between its parts, less waits for data and evaluation."""
    between = between_parts_ns(training)
    return float(np.median(between)) if len(between) else None


def _idle_ratio(by_step: list[dict[str, Any]]) -> float:
    """Of the time between the parts, that in which no operator runs. The few steps recorded in full
    tell the ratio, but not how long it takes in an ordinary step: what grows from step to step is
    short in those, which are among the first."""
    ratios = [row["between_ns"] / row["all_ns"] for row in by_step if row["all_ns"]]
    return min(1.0, float(np.median(ratios))) if ratios else 0.0


def _passes_ns(training: Training) -> float:
    """Forward pass and update of the typical step, where full recording does not slow it."""
    steps = training.steps
    return float(np.median(steps["forward_ns"] + steps["update_ns"]))


def _data_made_ns(training: Training) -> float:
    """Of the typical step: making batches in the loop itself, which is `data-starvation`."""
    if training.rows("SELECT 1 FROM outline WHERE kind = 'data' LIMIT 1"):
        return 0.0
    source = plain_source(training)
    return source.share * training.typical_ns if source else 0.0


def _without_operators(training: Training, light_ns: float | None) -> Verdict:
    if light_ns is None:
        return Clear("no step has a part without operators")
    share = light_ns / max(1.0, training.typical_ns)
    if share < WORTH_TELLING_RATIO or light_ns < WORTH_TELLING_NS:
        return Clear(f"{duration(light_ns)} a step between its parts, {percent(share)}")
    return CannotTell(
        f"{duration(light_ns)} of every step lie between its parts, "
        "but whether operators run there was not recorded",
        "record a window of steps in full: strobe run train.py (without --light)",
    )


def _by_step(training: Training) -> list[dict[str, Any]]:
    """For each step recorded in full: time without operators between its parts, all time there but
    waits for data and evaluation, and time with operators inside its passes."""
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


def _python_calls_operators(training: Training) -> bool:
    """MindSpore's run on threads of its own, behind Python: what lies between them is not
    Python's."""
    return training.framework != "mindspore"


def _inside_ns(training: Training, step_count: int) -> float:
    """Of the typical step: long gaps inside its passes, each between the same two operators. Those
    that a busy machine makes lie elsewhere in every step."""
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
    """A device that has work enough hides what its host does: what it waits for the host, other
    than for data, is all that can be gained."""
    times = device_times(training)
    waits = [(one.late_ns - one.data_ns) / max(1, one.total_ns) for one in times]
    return max(waits, default=1.0)
