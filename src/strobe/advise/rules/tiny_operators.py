"""A Python loop calls thousands of tiny operators.

## What it is
Calling an operator costs a few microseconds, whatever it computes. A Python loop over the rows of a
batch, the positions of a sequence or the elements of a list calls the same small operators again
and again, and so does their backward pass. The step then spends nearly all of its time on calls and
little on computation.

## How it is judged
Strobe considers calls that a module makes at least 16 times per step, with the same shapes, and
whose operators take less than 30 us (MindSpore: 100 us). Each call counts from the end of the
previous one, because Python needs that time to make the call. Their backward pass in a typical step
counts too; if the recording does not link backward operators to forward ones, backward operators
that are called as often count instead. The time that the same arithmetic would take in a few large
operators is subtracted. A finding needs 100 such calls (MindSpore: 50) and 5% of step time.

Layers that loop internally (`nn.GRU`) are a single call and do not count, and neither do loops of a
compiled program (`jax.lax.scan`). The layers of a deep model have different modules, so they do not
count either, unless the model splits a tensor into pieces and has a layer for each piece.

If a compiled program trains (`jax.jit`), operations that the script calls one by one outside the
program count: the time in which the device waits for these calls, minus the time in which they run.
Only a quarter of that running time is subtracted except for matrix products, because operations
that are compiled together pass over memory less often. If nothing is compiled, the time of the
gradient counts, minus the time in which operators run.

On devices, kernels of the forward and backward passes count if half of them are shorter than a
launch takes, and the device is idle between them because the host launches them too late.

## How to fix
Pass whole batches to operators: stack the rows and call the layer once, use `nn.LSTM` instead of a
loop over `nn.LSTMCell`, `torch.bmm` or `einsum` instead of a loop of products, and a mask instead
of an `if` for each element. If the loop must stay, `torch.compile` fuses small operators. In JAX,
put everything that happens in a step, including the update, into the compiled function.
"""

from typing import Any

import numpy as np

from strobe.advise.evidence import single_operations
from strobe.advise.evidence.device_model import device_times, no_device
from strobe.advise.evidence.operator_times import FLOPS_PER_NS, prepare
from strobe.advise.evidence.side_work import ROLLOUT_FIX, ROLLOUT_RANGE, is_rollout
from strobe.advise.evidence.stack_lines import TYPICAL_LOOKS, line_of
from strobe.advise.finding import CannotTell, Clear, Evidence, Finding, Verdict
from strobe.advise.fixes import at_line, fix
from strobe.advise.rules import device_idle
from strobe.advise.thresholds import MOST_MEASURED, MOST_SPEEDUP_OF_DEVICE, SMALLEST_SHARE, speedup
from strobe.advise.training import Training
from strobe.frameworks import pattern_of_all
from strobe.messages import message
from strobe.units import count, duration, percent

NAME = "tiny-operators"

# A deep model may call a layer a few times with the same shapes in one module. From this number on
# it is a loop.
FEWEST_REPEATS = 16
# The part of a loop's time that its other operators need as large ones, which is never more than
# they take now.
OTHER_WORK_RATIO = 0.05
# On devices: a launch takes longer than a kernel below this, so the host is the limit.
TINY_KERNEL_NS = 10_000
FEWEST_KERNELS = 200

# The outermost operators, each with its module.
_TOPS = """
    WITH inner_counts AS (SELECT top_id, count(*) AS operators FROM op_origins GROUP BY top_id)
    SELECT s.rank, s.step, s.ts_ns, s.dur_ns, s.name, s.scope, s.direction, s.input_shapes, s.id,
           operators, s.ts_ns - lag(s.ts_ns + s.dur_ns) OVER (
               PARTITION BY s.track_id ORDER BY s.ts_ns, s.id) AS called_ns
    FROM sampled_ops s JOIN inner_counts ON top_id = s.id
"""
# Operators in loops of a compiled program: no Python calls them.
_REPEATED = f"""
    SELECT event_id FROM op_args
    WHERE regexp_matches(node, '{pattern_of_all(lambda one: one.looped_nodes)}')
"""
# Modules that split a tensor into pieces. The layers of a list below such a module count as one:
# `net.tables.*`.
_SPLITTING_MODULES = f"""
    SELECT DISTINCT scope FROM top_ops
    WHERE regexp_matches(name, '::(select|slice|narrow|index|index_select)$')
        AND direction = 'forward' AND scope IS NOT NULL
    GROUP BY name, scope, input_shapes
    HAVING count(*) / count(DISTINCT (rank, step)) >= {FEWEST_REPEATS}
"""
_ROOTS = f"""
    WITH splitting AS ({_SPLITTING_MODULES}),
    merged AS (
        SELECT DISTINCT t.scope, regexp_replace(t.scope, '\\.\\d+\\b', '.*', 'g') AS merged_scope
        FROM top_ops t JOIN splitting p ON starts_with(t.scope, p.scope || '.')
    )
    SELECT t.* EXCLUDE scope, coalesce(m.merged_scope, t.scope) AS scope
    FROM top_ops t LEFT JOIN merged m ON m.scope = t.scope
"""


def check(training: Training) -> Verdict:
    if (found := single_operations.check(training)) is not None:
        return found
    if training.has_devices:
        return _on_devices(training)
    if not training.has_operators:
        return CannotTell(
            message("operator-times.no-operators"), message("operator-times.record-operators")
        )
    prepare(training.run)
    training.run.make("top_ops", _TOPS)
    training.run.make("root_ops", _ROOTS)
    loops = _loops(training, "forward", "rest", *(() if _has_optimizer(training) else ("update",)))
    calls = sum(loop["calls"] for loop in loops)
    if not loops:
        return Clear(message("tiny-operators.no-loops"))
    if calls < training.framework.loops.fewest_calls:
        return Clear(message("tiny-operators.few-calls", calls=count(round(calls))))
    cost_ns = _cost_ns(training, loops)
    work_ns = _work_ns(training, loops, cost_ns)
    step_ns = max(1.0, training.typical_ns)
    share = max(0.0, cost_ns - work_ns) / step_ns
    if share < SMALLEST_SHARE:
        return Clear(message("tiny-operators.small", calls=count(round(calls)),
                             share=percent(cost_ns / step_ns)))  # fmt: skip
    return _finding(training, loops, share)


def _finding(training: Training, loops: list[dict[str, Any]], share: float) -> Finding:
    first = max(loops, key=lambda loop: float(loop["calls"]))
    phase = "update" if first["direction"] == "update" else "forward"
    line = line_of(training, f"phase = '{phase}'", into_modules=True, looks=TYPICAL_LOOKS)
    inside = message("place.inside", scope=first["scope"]) if first["scope"] else ""
    place = at_line(str(line)) if line else inside
    replace_loop = message("tiny-operators.replace-loop", place=place)
    least, most = ROLLOUT_RANGE if is_rollout(training) else (1.0, 1.0)
    is_range = least < most
    return Finding(
        title=message(
            "tiny-operators.title", inside=inside, share=percent(min(share, MOST_MEASURED))
        ),
        why=message(
            "tiny-operators.why",
            calls=count(round(sum(loop["calls"] for loop in loops))),
            time=duration(_mean_ns(loops)),
            name=first["name"],
            times=count(round(first["calls"])),
        ),
        share=min(share, MOST_MEASURED),
        expected_speedup=speedup(share * (least + most) / 2),
        speedup_range=(speedup(share * least), speedup(share * most)) if is_range else None,
        fixes=(
            ROLLOUT_FIX if is_range else replace_loop,
            fix("join-operators", training.framework),
        ),
        evidence=(Evidence("operators", tuple(loops[:5])),),
        where=str(line) if line else first["scope"],
        is_certain=False,
    )


def _has_optimizer(training: Training) -> bool:
    """Whether an optimizer makes the update, which `unfused-optimizer` judges. A manually written
    update belongs to the script."""
    return training.place("update") is not None


def _backward_loops(training: Training) -> list[dict[str, Any]]:
    """Loops in the backward pass, if its operators are not linked to forward ones."""
    linked = training.run.sql("SELECT 1 FROM links WHERE kind = 'forward_backward' LIMIT 1")
    return [] if linked.fetchall() else _loops(training, "backward")


def _loops(training: Training, *directions: str) -> list[dict[str, Any]]:
    """Calls that a module repeats, the most frequent first; each with its calls per step."""
    wanted = ", ".join(f"'{name}'" for name in directions)
    return training.rows(f"""
        WITH steps AS (SELECT greatest(1, count(DISTINCT (rank, step))) AS n FROM sampled_ops)
        SELECT name, scope, direction, input_shapes, count(*) / any_value(n) AS calls,
               median(dur_ns) * count(*) / any_value(n) AS self_ns, min(id) AS event_id
        FROM root_ops, steps WHERE direction IN ({wanted}) AND id NOT IN ({_REPEATED})
        GROUP BY name, scope, direction, input_shapes
        HAVING count(*) / any_value(n) >= {FEWEST_REPEATS}
            AND median(dur_ns / operators) < {training.framework.loops.tiny_ns}
        ORDER BY calls DESC, self_ns DESC, name
    """)


def _mean_ns(loops: list[dict[str, Any]]) -> float:
    calls = sum(float(loop["calls"]) for loop in loops)
    return sum(float(loop["self_ns"]) for loop in loops) / max(1.0, calls)


def _mark_looped(training: Training, loops: list[dict[str, Any]]) -> None:
    """Make the table `looped_ops`: the calls themselves."""
    if training.run.has("looped_ops"):
        return
    every = [*loops, *_backward_loops(training)]
    values = ", ".join(f"({int(loop['event_id'])})" for loop in every)
    training.run.make("looped_ops", f"""
        SELECT r.* FROM root_ops r JOIN (
            SELECT name, scope, direction, input_shapes FROM root_ops
            WHERE id IN (SELECT col0 FROM (VALUES {values}))
        ) l ON l.name = r.name AND l.scope IS NOT DISTINCT FROM r.scope
            AND l.direction = r.direction AND l.input_shapes IS NOT DISTINCT FROM r.input_shapes
    """)  # fmt: skip


def _cost_ns(training: Training, loops: list[dict[str, Any]]) -> float:
    """The time of the loops in a typical step.

    Their part of each phase comes from steps recorded in full, and the length of the phase from
    steps that were not. The median step counts, because on a busy machine any call may be
    interrupted.
    """
    _mark_looped(training, loops)
    longest_ns = training.framework.loops.longest_gap_ns
    ratios = dict(
        training.run.sql(f"""
        SELECT direction, median(ratio) FROM (
            SELECT rank, step, direction, sum(ns) FILTER (is_looped) / sum(ns) AS ratio FROM (
                SELECT r.rank, r.step, r.direction,
                       o.root_id IN (SELECT id FROM looped_ops) AS is_looped,
                       r.dur_ns + least(greatest(0, coalesce(called_ns, 0)), {longest_ns}) AS ns
                FROM root_ops r JOIN op_origins o USING (id)
            ) GROUP BY ALL
        ) GROUP BY direction
    """).fetchall()
    )
    cost_ns = 0.0
    for phase in ("forward", "backward", "update", "rest"):
        cost_ns += (ratios.get(phase) or 0.0) * float(np.median(training.steps[f"{phase}_ns"]))
    return cost_ns


def _work_ns(training: Training, loops: list[dict[str, Any]], cost_ns: float) -> float:
    """The time that the same arithmetic would take in a few large operators."""
    _mark_looped(training, loops)
    ((flops, steps),) = training.run.sql("""
        SELECT coalesce(sum(s.flops), 0)::DOUBLE,
               (SELECT count(DISTINCT (rank, step)) FROM sampled_ops)
        FROM sampled_ops s JOIN op_origins o USING (id)
        WHERE o.root_id IN (SELECT id FROM looped_ops)
    """).fetchall()
    other_ns = min(OTHER_WORK_RATIO * cost_ns, sum(float(loop["self_ns"]) for loop in loops))
    return float(flops) / FLOPS_PER_NS / max(1, int(steps)) + other_ns


def _on_devices(training: Training) -> Verdict:
    times = device_times(training)
    if not times:
        return no_device(training)
    kernels, median_ns = _kernels(training)
    late = sum(device_idle.cost(time) for time in times) / max(1, sum(t.total_ns for t in times))
    values = {"kernels": count(round(kernels)), "median": duration(median_ns)}
    if late < device_idle.SMALLEST_SHARE:
        return Clear(message("tiny-operators.launches-in-time", share=percent(late), **values))
    if kernels < FEWEST_KERNELS or median_ns >= TINY_KERNEL_NS:
        return Clear(message("tiny-operators.other-kernels", share=percent(late), **values))
    return Finding(
        title=message("tiny-operators.device-title", share=percent(late)),
        why=message("tiny-operators.device-why", **values),
        share=late,
        expected_speedup=min(MOST_SPEEDUP_OF_DEVICE, speedup(late)),
        fixes=(
            fix("join-kernels", training.framework),
            message("tiny-operators.replace-loops"),
        ),
        evidence=(Evidence("kernels", _shortest_kernels(training)),),
        is_certain=False,
    )


def _kernels(training: Training) -> tuple[float, float]:
    """The number of kernels that the passes of a step launch, and their median length."""
    ((kernels, median_ns),) = training.run.sql("""
        WITH phases AS (SELECT rank, ts_ns, name FROM outline WHERE kind = 'phase')
        SELECT count(*) / greatest(1, count(DISTINCT (w.rank, w.device, w.step))), median(w.dur_ns)
        FROM recorded_device_work w
        ASOF JOIN phases p ON p.rank = w.rank AND p.ts_ns <= coalesce(w.launch_ts_ns, w.ts_ns)
        WHERE w.kind = 'kernel' AND w.step IS NOT NULL AND p.name IN ('forward', 'backward')
    """).fetchall()
    return float(kernels or 0), float(median_ns or 0)


def _shortest_kernels(training: Training) -> tuple[dict[str, Any], ...]:
    rows = training.rows(f"""
        SELECT name, any_value(operator) AS operator, count(*) AS calls,
               round(avg(dur_ns))::BIGINT AS mean_ns
        FROM recorded_device_work WHERE kind = 'kernel' AND step IS NOT NULL
        GROUP BY name HAVING avg(dur_ns) < {TINY_KERNEL_NS} ORDER BY calls DESC, name LIMIT 5
    """)
    return tuple(rows)
