"""A loop in Python calls thousands of tiny operators.

## What it is
Calling an operator costs a few microseconds, whatever it computes. A loop in Python over the rows
of a batch, the positions of a sequence or the elements of a list calls the same small operators
again and again, and their backward too: nearly all of the step is calling, little is computing.

## How it is judged
Calls that a module makes at least 16 times in a step, with the same shapes, and in which an
operator takes less than 30 us (MindSpore: 100 us). Counted is the time up to the end of each of
them from that of the one before, in which Python calls it, and their backward, in an ordinary step;
where operators do not tell whose backward they are, those that come as often there. What the same
arithmetic would take in few large operators is taken off. A finding needs 100 such calls
(MindSpore: 50) and 5% of step time. Layers that loop inside (`nn.GRU`) are one call, and not
meant, nor are loops of a compiled program (`jax.lax.scan`); the layers of a deep model are not
alike, unless the model goes through a tensor piece by piece and has a layer for each of them.

Where a compiled program trains (jax.jit), operations that the script calls one by one beside it:
the time in which the device waits while they are called, less that in which they run (a quarter of
it, but for products: compiled together they go through memory less often). Where no program is
compiled at all, the time in which the gradient is taken, less that in which operators ran.

On devices: kernels of the forward and backward passes, half of them shorter than what it takes to
launch one, on a device that stands idle between them because the host comes too late.

## How to fix
Give whole batches to operators: stack the rows and call the layer once, use `nn.LSTM` instead of a
loop over `nn.LSTMCell`, `torch.bmm` or `einsum` instead of a loop of products, a mask instead of an
`if` for each element. Where the loop must stay, `torch.compile` joins small operators. In JAX, put
all that happens in a step, the update too, into the function that is compiled.
"""

from typing import Any

import numpy as np

from strobe.advise.evidence import single_operations
from strobe.advise.evidence.device_model import device_times, no_device
from strobe.advise.evidence.operator_times import prepare
from strobe.advise.evidence.side_work import ROLLOUT_FIX, ROLLOUT_RANGE, is_rollout
from strobe.advise.evidence.stack_lines import TYPICAL_LOOKS, line_of
from strobe.advise.finding import CannotTell, Clear, Evidence, Finding, Verdict, speedup
from strobe.advise.fixes import fix
from strobe.advise.rules import device_idle
from strobe.advise.training import Training
from strobe.units import duration, percent

NAME = "tiny-operators"

# A layer that a deep model repeats is called a few times with the same shapes in one module; from
# here on it is a loop.
FEWEST_REPEATS = 16
# MindSpore's own Python makes a call dearer, so that fewer and longer ones are a loop of calling.
# These two limits are chosen, not measured.
FEWEST_CALLS = {"torch": 100, "mindspore": 50}
# An operator this short is mostly its own call, the Python around it and its autograd node.
TINY_NS = {"torch": 30_000, "mindspore": 100_000}
# Python between two calls of a loop; what is longer has another reason. In MindSpore's own Python
# some calls, an index of a tensor among them, take milliseconds.
LONGEST_GAP_NS = {"torch": 100_000, "mindspore": 10_000_000}
WORTH_TELLING_RATIO = 0.05
# What one core does in large products, and the part of a loop's time that its other operators need
# when they are large; that is never more than they took.
FLOPS_PER_NS = 40
OTHER_WORK_RATIO = 0.05
# On devices: launching takes longer than a kernel below this, so the host is the limit.
TINY_KERNEL_NS = 10_000
FEWEST_KERNELS = 200
# Of an operator that a compiled program repeats by itself (jax.lax.scan), in its node's path. One
# that its compiler has put in has no path but its program, which runs it once, unless in a loop.
_REPEATED_BY_PROGRAM = "/while/"
_MADE_BY_COMPILER = r"^jit_[^/]*/[^/]*$"

# The outermost operators, each with its module. Where a module goes through a tensor piece
# by piece, the layers of a list below it are one: `net.tables.*`.
_TOPS = """
    WITH insides AS (SELECT top_id, count(*) AS operators FROM op_origins GROUP BY top_id)
    SELECT s.rank, s.step, s.ts_ns, s.dur_ns, s.name, s.scope, s.direction, s.input_shapes, s.id,
           operators, s.ts_ns - lag(s.ts_ns + s.dur_ns) OVER (
               PARTITION BY s.track_id ORDER BY s.ts_ns, s.id) AS called_ns
    FROM sampled_ops s JOIN insides ON top_id = s.id
"""
# Loops of a compiled program are not Python's, and call nothing.
_REPEATED = f"""
    SELECT event_id FROM op_args
    WHERE contains(node, '{_REPEATED_BY_PROGRAM}') OR regexp_matches(node, '{_MADE_BY_COMPILER}')
"""
_PIECES = f"""
    SELECT DISTINCT scope FROM top_ops
    WHERE regexp_matches(name, '::(select|slice|narrow|index|index_select)$')
        AND direction = 'forward' AND scope IS NOT NULL
    GROUP BY name, scope, input_shapes
    HAVING count(*) / count(DISTINCT (rank, step)) >= {FEWEST_REPEATS}
"""
_ROOTS = f"""
    WITH pieces AS ({_PIECES}),
    kin AS (
        SELECT DISTINCT t.scope, regexp_replace(t.scope, '\\.\\d+\\b', '.*', 'g') AS place
        FROM top_ops t JOIN pieces p ON starts_with(t.scope, p.scope || '.')
    )
    SELECT t.* EXCLUDE scope, coalesce(k.place, t.scope) AS scope
    FROM top_ops t LEFT JOIN kin k ON k.scope = t.scope
"""


def check(training: Training) -> Verdict:
    if (found := single_operations.check(training)) is not None:
        return found
    if training.has_devices:
        return _on_devices(training)
    if not training.has_operators:
        return CannotTell("no operators were recorded", "record without --light: strobe run")
    prepare(training.run)
    training.run.make("top_ops", _TOPS)
    training.run.make("root_ops", _ROOTS)
    loops = _loops(training, "forward", "rest", *(() if _has_optimizer(training) else ("update",)))
    calls = sum(loop["calls"] for loop in loops)
    if calls < _limit(training, FEWEST_CALLS):
        return Clear(f"{calls:,.0f} calls a step are of tiny operators in loops")
    cost_ns = _cost_ns(training, loops)
    work_ns = _work_ns(training, loops, cost_ns)
    step_ns = max(1.0, training.typical_ns)
    share = max(0.0, cost_ns - work_ns) / step_ns
    if share < WORTH_TELLING_RATIO:
        return Clear(f"{calls:,.0f} tiny calls a step take {percent(cost_ns / step_ns)} of it")
    first = max(loops, key=lambda loop: float(loop["calls"]))
    phase = "update" if first["direction"] == "update" else "forward"
    seen = line_of(training, f"phase = '{phase}'", into_modules=True, looks=TYPICAL_LOOKS)
    inside = f" in {first['scope']}" if first["scope"] else ""
    replace = (
        f"replace the loop{inside} by operators on whole tensors: {first['name']} is called "
        f"{first['calls']:,.0f} times a step with the same shapes"
    )
    least, most = ROLLOUT_RANGE if is_rollout(training) else (1.0, 1.0)
    if least < most:
        replace = ROLLOUT_FIX
    return Finding(
        title=f"{calls:,.0f} calls a step of operators of {duration(_mean_ns(loops))} each, from a "
        f"loop in Python{inside}",
        share=min(share, 0.99),
        expected_speedup=speedup(share * (least + most) / 2),
        speedup_range=(speedup(share * least), speedup(share * most)) if least < most else None,
        fixes=(replace, fix("join-operators", training.framework)),
        evidence=(Evidence("operators", tuple(loops[:5])),),
        where=str(seen) if seen else first["scope"],
        is_certain=False,
    )


def _has_optimizer(training: Training) -> bool:
    """Its own operators are another rule's affair; those of an update by hand are the script's."""
    return training.place("update") is not None


def _limit(training: Training, limits: dict[str, int]) -> int:
    return limits.get(training.framework, limits["torch"])


def _backward_loops(training: Training) -> list[dict[str, Any]]:
    """The backward of loops, where no operator tells which forward one it belongs to: what comes
    again and again there."""
    linked = training.run.sql("SELECT 1 FROM links WHERE kind = 'forward_backward' LIMIT 1")
    return [] if linked.fetchall() else _loops(training, "backward")


def _loops(training: Training, *directions: str) -> list[dict[str, Any]]:
    """What a module calls again and again, most often first; each with its calls in a step."""
    wanted = ", ".join(f"'{name}'" for name in directions)
    return training.rows(f"""
        WITH steps AS (SELECT greatest(1, count(DISTINCT (rank, step))) AS n FROM sampled_ops)
        SELECT name, scope, direction, input_shapes, count(*) / any_value(n) AS calls,
               median(dur_ns) * count(*) / any_value(n) AS self_ns, min(id) AS event_id
        FROM root_ops, steps WHERE direction IN ({wanted}) AND id NOT IN ({_REPEATED})
        GROUP BY name, scope, direction, input_shapes
        HAVING count(*) / any_value(n) >= {FEWEST_REPEATS}
            AND median(dur_ns / operators) < {_limit(training, TINY_NS)}
        ORDER BY calls DESC, self_ns DESC, name
    """)


def _mean_ns(loops: list[dict[str, Any]]) -> float:
    calls = sum(float(loop["calls"]) for loop in loops)
    return sum(float(loop["self_ns"]) for loop in loops) / max(1.0, calls)


def _mark_looped(training: Training, loops: list[dict[str, Any]]) -> None:
    """Make `looped_ops` known: the calls themselves."""
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
    """What the loops take of an ordinary step: their part of a phase where it was recorded, of that
    phase where it was not.

    The part is that of the typical step: on a busy machine some calls are interrupted, whichever
    they are.
    """
    _mark_looped(training, loops)
    longest_ns = _limit(training, LONGEST_GAP_NS)
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
    """What the same arithmetic would take in few large operators."""
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
    is_tiny = kernels >= FEWEST_KERNELS and median_ns < TINY_KERNEL_NS
    if not is_tiny or late < device_idle.WORTH_TELLING_RATIO:
        return Clear(
            f"{kernels:,.0f} kernels a step, half of them shorter than {duration(median_ns)}; the "
            f"device waits for their launches {percent(late)} of step time"
        )
    return Finding(
        title=f"{kernels:,.0f} kernels a step, half of them shorter than {duration(median_ns)}: "
        f"the device waits for their launches {percent(late)} of step time",
        share=late,
        expected_speedup=min(device_idle.MOST_BELIEVED, 1 / max(0.05, 1 - late)),
        fixes=(
            fix("join-kernels", training.framework),
            "replace loops over tensors by operators on whole tensors",
        ),
        evidence=(Evidence("kernels", _shortest_kernels(training)),),
        is_certain=False,
    )


def _kernels(training: Training) -> tuple[float, float]:
    """How many a step launches in its passes, and the median of their lengths."""
    ((count, median_ns),) = training.run.sql("""
        WITH phases AS (SELECT rank, ts_ns, name FROM outline WHERE kind = 'phase')
        SELECT count(*) / greatest(1, count(DISTINCT (w.rank, w.device, w.step))), median(w.dur_ns)
        FROM recorded_device_work w
        ASOF JOIN phases p ON p.rank = w.rank AND p.ts_ns <= coalesce(w.launch_ts_ns, w.ts_ns)
        WHERE w.kind = 'kernel' AND w.step IS NOT NULL AND p.name IN ('forward', 'backward')
    """).fetchall()
    return float(count or 0), float(median_ns or 0)


def _shortest_kernels(training: Training) -> tuple[dict[str, Any], ...]:
    rows = training.rows(f"""
        SELECT name, any_value(operator) AS operator, count(*) AS calls,
               round(avg(dur_ns))::BIGINT AS mean_ns
        FROM recorded_device_work WHERE kind = 'kernel' AND step IS NOT NULL
        GROUP BY name HAVING avg(dur_ns) < {TINY_KERNEL_NS} ORDER BY calls DESC, name LIMIT 5
    """)
    return tuple(rows)
