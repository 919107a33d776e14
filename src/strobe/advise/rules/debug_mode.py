"""A debug mode is left on.

## What it is
Frameworks have modes that help to find a bug but slow down every step. They are easily forgotten
once the bug is fixed.

- `torch.autograd.set_detect_anomaly(True)` formats a Python stack trace for every operator of the
  forward pass and checks every gradient for NaN.
- `jax_debug_nans` checks every result of a compiled function, and `jax_disable_jit` runs operations
  one by one.
- `CUDA_LAUNCH_BLOCKING=1` makes the host wait for every kernel.

## How it is judged
Strobe reads the modes a few times per second during training, and judges those that are on most of
the time.

- Anomaly detection: the number of operators that autograd recorded, multiplied by the cost of a
  stack trace at their depth (measured in the training process when training begins), plus a fifth
  for keeping the trace, plus the measured time of the NaN checks in the backward pass.
- `torch.use_deterministic_algorithms`: the measured time spent filling uninitialized memory.
  Deterministic kernels may also be slower, which is not measured.
- `CUDA_LAUNCH_BLOCKING`: the time that launches wait for their own kernels, as far as the host
  could have prepared the next ones during that time.
- `jax_debug_nans`: the samples in which training was in the check while no program ran.
- `jax_disable_jit`: estimated as `tiny-operators` does for training that is not compiled.
- A profiler that the script started, and MindSpore's `pynative_synchronize` and `save_graphs`: a
  warning without a number, because a recording does not show their cost.

## How to fix
Remove the line or the environment variable. When a NaN appears, turn the mode on only for the steps
in question: `with torch.autograd.detect_anomaly(): loss.backward()`.
"""

from typing import Any, NamedTuple

import numpy as np

from strobe.advise.evidence import single_operations
from strobe.advise.evidence.device_model import device_times
from strobe.advise.evidence.operator_times import (
    operator_costs,
    recorded_step_count,
    undisturbed_ns,
    why_not,
)
from strobe.advise.evidence.stack_lines import FEWEST_LOOKS, TYPICAL_LOOKS, prepare_looks
from strobe.advise.finding import Clear, Evidence, Finding, Verdict
from strobe.advise.fixes import at_line
from strobe.advise.thresholds import MOST_ESTIMATED, SMALLEST_SHARE, speedup
from strobe.advise.training import Lines, Training
from strobe.frameworks import FRAMEWORKS, of_all
from strobe.frameworks.framework import DebugMode
from strobe.messages import Message, message
from strobe.model.journal import (
    ANOMALY_FRAME_COUNTER,
    ANOMALY_STACK_COUNTER,
    DEBUG_MODE_COUNTER,
)
from strobe.units import percent

NAME = "debug-mode"

# A mode that is on in fewer of the samples is used for some steps only, as intended.
ON_RATIO = 0.5
# Calling a module adds this many frames: its __call__, what that calls, and forward.
FRAMES_PER_MODULE = 3
# Keeping a stack trace until the backward pass and freeing it adds this part of its cost.
KEEPING_RATIO = 0.2
# The shortest operators are this part of all calls; each of them computes at least this long.
SHORTEST_RATIO = 0.1
OPERATOR_NS = 5_000
# The operators with which anomaly detection checks a gradient: grad.ne(grad).any().item().
_NAN_CHECKS = ("ne", "any", "item", "_local_scalar_dense", "is_nonzero")
_PREFIX = DEBUG_MODE_COUNTER.format("")


class Cost(NamedTuple):
    """What a mode costs, as a share of step time, and what the time goes into."""

    share: float | None  # None: unknown
    why: str = ""
    evidence: tuple[Evidence, ...] = ()


_MODES = {name: mode for one in FRAMEWORKS for name, mode in one.debug_modes.items()}
_RESULT_CHECKS = " OR ".join(
    f"contains(stack, '{name}')" for name in of_all(lambda framework: framework.result_checks)
)


def check(training: Training) -> Verdict:
    modes = _modes_on(training)
    if not modes:
        return Clear(message("debug-mode.none"))
    return max((_judged(training, mode) for mode in modes), key=_weight)


def _weight(verdict: Verdict) -> float:
    """The most expensive mode is reported, and one of unknown cost rather than none."""
    return verdict.share if isinstance(verdict, Finding) else -1.0


def _modes_on(training: Training) -> list[str]:
    rows = training.rows(f"""
        SELECT name, avg(value) AS ratio FROM counters
        WHERE starts_with(name, '{_PREFIX}') AND ts_ns >= (SELECT min(ts_ns) FROM step_times)
        GROUP BY name ORDER BY name
    """)
    return [row["name"].removeprefix(_PREFIX) for row in rows if row["ratio"] >= ON_RATIO]


def _judged(training: Training, mode: str) -> Verdict:
    name = _name(mode)
    cost = _COSTS.get(_mode(mode).cost, _unknown)(training, mode)
    place = _place(training, mode)
    where = str(place) if place else None
    if cost.share is None:
        return Finding(
            title=message("debug-mode.title-unknown-cost", mode=name),
            share=0.0,
            expected_speedup=1.0,
            fixes=(_fix(mode, where),),
            evidence=cost.evidence,
            where=where,
            is_certain=False,
            is_warning=True,
            why=message("debug-mode.unknown-cost"),
        )
    share = min(MOST_ESTIMATED, cost.share)
    values = {"mode": name, "share": percent(share)}
    if share < SMALLEST_SHARE:
        return Clear(message("debug-mode.small", **values))
    return Finding(
        title=message("debug-mode.title", **values),
        share=share,
        expected_speedup=speedup(share),
        fixes=(_fix(mode, where),),
        evidence=cost.evidence,
        where=where,
        is_certain=False,
        why=cost.why,
    )


def _name(mode: str) -> str:
    """As users know it, to begin a sentence with."""
    known = _mode(mode)
    return message(f"debug-mode.{known.title}", mode=mode) if known.title else known.name or mode


def _fix(mode: str, line: str | None) -> Message:
    known = _mode(mode)
    return message(
        f"debug-mode.{known.fix}",
        mode=mode,
        variable=mode.upper(),
        argument=known.argument,
        at=at_line(line),
    )


def _mode(name: str) -> DebugMode:
    return _MODES.get(name, DebugMode())


def _place(training: Training, mode: str) -> Lines | None:
    rows = training.rows(
        "SELECT file, line FROM places WHERE what = 'debug mode' AND contains(details, $mode) "
        "ORDER BY rank, number LIMIT 1",
        {"mode": f'"{mode}"'},
    )
    return Lines(rows[0]["file"], rows[0]["line"]) if rows else None


def _unknown(training: Training, mode: str) -> Cost:
    return Cost(None)


def _anomaly(training: Training, mode: str) -> Cost:
    if training.has_devices:
        return _anomaly_on_device(training)
    if why_not(training) or not training.step_count:
        return Cost(None)
    costs = operator_costs(training)
    checks = [
        cost for cost in costs
        if cost.direction == "backward" and cost.type in _NAN_CHECKS
    ]  # fmt: skip
    checks_ns = sum(cost.cost_ns for cost in checks)
    lost_ns = checks_ns + (1 + KEEPING_RATIO) * _stacks_ns(training)
    rows = tuple(cost.row() for cost in checks[:5])
    return Cost(
        lost_ns / undisturbed_ns(training, costs),
        message("debug-mode.stacks-and-checks"),
        (Evidence("operators", rows),) if rows else (),
    )


def _stacks_ns(training: Training) -> float:
    """The cost of stack traces per step: one for each operator that autograd recorded, and never
    more than the operator itself took."""
    costs = dict(
        training.run.sql(
            "SELECT name, min(value) FROM counters WHERE name IN ($stack, $frame) GROUP BY name",
            {"stack": ANOMALY_STACK_COUNTER, "frame": ANOMALY_FRAME_COUNTER},
        ).fetchall()
    )
    stack_ns = costs.get(ANOMALY_STACK_COUNTER, 0)
    if not stack_ns:
        return 0.0
    frames_ns = costs.get(ANOMALY_FRAME_COUNTER, 0) * FRAMES_PER_MODULE
    rows = training.rows("""
        SELECT scope, name, input_shapes, count(*) AS calls, median(self_ns) AS self_ns
        FROM sampled_ops SEMI JOIN (
            SELECT from_id FROM links WHERE kind = 'forward_backward'
        ) linked ON from_id = id
        WHERE NOT is_backward GROUP BY ALL
    """)
    steps = max(1, recorded_step_count(training))
    stack_ns = min(stack_ns, _longest_stack_ns(rows, frames_ns))
    each_ns = (
        row["calls"] * min(row["self_ns"], stack_ns + frames_ns * _depth(row["scope"]))
        for row in rows
    )
    return float(sum(each_ns) / steps)


def _longest_stack_ns(rows: list[dict[str, Any]], frames_ns: float) -> float:
    """An upper limit of a stack trace: the shortest operators contain one, and also compute."""
    if not rows:
        return 0.0
    calls = np.array([row["calls"] for row in rows], dtype=float)
    left_ns = np.array([row["self_ns"] - frames_ns * _depth(row["scope"]) for row in rows])
    order = np.argsort(left_ns)
    is_passed = np.cumsum(calls[order]) >= SHORTEST_RATIO * calls.sum()
    return max(0.0, float(left_ns[order][is_passed.argmax()]) - OPERATOR_NS)


def _depth(scope: str | None) -> int:
    return scope.count(".") + 1 if scope else 0


def _anomaly_on_device(training: Training) -> Cost:
    """The host waits for the device at every check, so the cost is the time of the checks."""
    names = ", ".join(f"'aten::{name}'" for name in _NAN_CHECKS)
    rows = training.rows(f"""
        WITH steps AS (
            SELECT sum(dur_ns) AS dur_ns FROM step_times
            SEMI JOIN (SELECT DISTINCT step FROM events WHERE kind = 'op') USING (step)
        )
        SELECT sum(e.dur_ns) / any_value(steps.dur_ns) AS share
        FROM events e JOIN op_args a ON a.event_id = e.id, steps
        WHERE e.kind = 'op' AND e.name IN ({names}) AND a.is_backward
            AND e.parent_id NOT IN (SELECT id FROM events WHERE name IN ({names}))
    """)
    share = rows[0]["share"] if rows else None
    return Cost(min(MOST_ESTIMATED, share) if share else None, message("debug-mode.checks-wait"))


def _deterministic(training: Training, mode: str) -> Cost:
    if training.has_devices or why_not(training):
        return Cost(0.0)
    costs = operator_costs(training)
    fills = [cost for cost in costs if cost.type == "fill_"]
    inside = training.rows("""
        SELECT count(*) FILTER (starts_with(p.name, 'aten::empty')) / greatest(1, count(*)) AS ratio
        FROM sampled_ops o LEFT JOIN sampled_ops p ON p.id = o.parent_id
        WHERE o.name = 'aten::fill_'
    """)
    ratio = float(inside[0]["ratio"] or 0)
    fills_ns = ratio * sum(cost.cost_ns for cost in fills)
    return Cost(
        fills_ns / undisturbed_ns(training, costs),
        message("debug-mode.fills-memory"),
        (Evidence("operators", tuple(cost.row() for cost in fills[:5])),) if fills else (),
    )


def _launch_blocking(training: Training, mode: str) -> Cost:
    times = device_times(training)
    if not times:
        return Cost(0.0)
    blocked = dict(
        training.run.sql("""
        SELECT w.rank, sum(greatest(0, least(w.end_ns, l.ts_ns + l.dur_ns) - w.ts_ns))
        FROM device_work w JOIN events l ON l.id = w.launcher_id
        ASOF JOIN device_steps s ON s.rank = w.rank AND s.device = w.device AND s.ts_ns <= w.ts_ns
        WHERE w.ts_ns < s.end_ns GROUP BY w.rank
    """).fetchall()
    )
    total_ns = sum(time.total_ns for time in times)
    without_ns = sum(
        max(time.device_needs_ns, time.total_ns - float(blocked.get(time.rank) or 0))
        for time in times
    )
    return Cost(1 - without_ns / max(1, total_ns), message("debug-mode.waits-for-kernels"))


def _nan_checks(training: Training, mode: str) -> Cost:
    return _result_checks(training, "debug-mode.checks-for-nan")


def _infinity_checks(training: Training, mode: str) -> Cost:
    return _result_checks(training, "debug-mode.checks-for-inf")


def _result_checks(training: Training, why: str) -> Cost:
    prepare_looks(training)
    ((checks, total_ns, checks_ns),) = training.run.sql(f"""
        SELECT count(*) FILTER (is_check), sum(dur_ns), sum(dur_ns) FILTER (is_check)
        FROM (
            SELECT dur_ns, ({_RESULT_CHECKS})
                AND phase NOT IN ('forward', 'backward', 'update') AS is_check
            FROM {TYPICAL_LOOKS}
        )
    """).fetchall()
    if checks < FEWEST_LOOKS or not total_ns:
        return Cost(None)
    return Cost(checks_ns / total_ns, message(why))


def _single_operations(training: Training, mode: str) -> Cost:
    found = single_operations.check(training)
    if not isinstance(found, Finding):
        return Cost(None)
    share = 1 - 1 / found.expected_speedup
    return Cost(share, message("debug-mode.one-by-one"), found.evidence)


# By DebugMode.cost.
_COSTS: dict[str, Any] = {
    "stack-traces": _anomaly,
    "filled-memory": _deterministic,
    "blocked-launches": _launch_blocking,
    "nan-checks": _nan_checks,
    "infinity-checks": _infinity_checks,
    "single-operations": _single_operations,
}
