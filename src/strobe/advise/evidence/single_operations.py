"""Operations that a script calls one by one alongside a compiled program, or instead of one.

A part of the rule `tiny-operators`.
"""

import itertools

import numpy as np

from strobe.advise.evidence.stack_lines import TYPICAL_LOOKS, line_of, prepare_looks
from strobe.advise.finding import Evidence, Finding
from strobe.advise.fixes import fix
from strobe.advise.thresholds import MOST_ESTIMATED, SMALLEST_SHARE, speedup
from strobe.advise.training import Training
from strobe.analyse import recorded
from strobe.analyse.intervals import covered, hidden
from strobe.frameworks import of_all
from strobe.messages import Message, message
from strobe.model.journal import NOT_COMPILED, SINGLE_OPERATIONS
from strobe.units import count, duration, percent

# The part of the time of elementwise operations that is left if they are compiled together: an
# update by Adam passes some 30 times over arrays of the size of the parameters, and 7 times if it
# is compiled.
FUSED_RATIO = 0.25
# The stack of a sample in which operations are called one by one.
_CALLS_OPERATIONS = " OR ".join(
    f"contains(stack, '{path}')" for path in of_all(lambda framework: framework.single_operations)
)


def check(training: Training) -> Finding | None:
    """The cost of such operations, if it is large enough."""
    calls = _single_operations(training)
    found = _not_compiled(training, calls)
    if found is not None or calls < training.framework.loops.fewest_calls:
        return found
    gap_ns = float(np.median(training.steps["gap_ns"])) if training.step_count else 0.0
    ratio, compiled_ns = _recorded_calls(training) or (_sampled_ratio(training), 0.0)
    cost_ns = max(0.0, gap_ns * ratio - compiled_ns)
    share = min(MOST_ESTIMATED, cost_ns / max(1.0, training.typical_ns))
    if share < SMALLEST_SHARE:
        return None
    condition = f"phase = 'gap' AND ({_CALLS_OPERATIONS})"
    sampled = line_of(training, condition, looks=TYPICAL_LOOKS)
    line = str(sampled) if sampled else None
    return Finding(
        title=message(
            "tiny-operators.single-title", calls=count(round(calls)), share=percent(share)
        ),
        why=message(
            "tiny-operators.single-why",
            step=duration(training.typical_ns),
            cost=duration(cost_ns),
        ),
        share=share,
        expected_speedup=speedup(share),
        fixes=(
            fix("move-into-program", training.framework, line),
            message("tiny-operators.batches-in-numpy"),
        ),
        evidence=(Evidence("counters", ({"name": SINGLE_OPERATIONS, "a step": round(calls)},)),),
        where=line,
        is_certain=False,
    )


def _recorded_calls(training: Training) -> tuple[float, float] | None:
    """Of a typical step recorded in full: the part of its gap in which operations are called, and
    the time that a compiled program would need for them. None without such steps or calls."""
    recorded.prepare_outline(training.run)
    gaps = """
        SELECT rank, step, ts_ns, end_ns FROM outline
        WHERE kind = 'phase' AND name = 'gap' AND dur_ns > 0
            AND (rank, step) IN (SELECT rank, step FROM recorded_steps)
    """
    longest_gap_ns = training.framework.loops.longest_gap_ns
    # The thread that calls operations is the one with the most calls.
    calls = f"""
        SELECT rank, ts_ns, ts_ns + dur_ns + {longest_gap_ns} AS end_ns FROM (
            SELECT t.rank, e.ts_ns, e.dur_ns, count(*) OVER (PARTITION BY t.id) AS calls
            FROM events e JOIN tracks t ON t.id = e.track_id WHERE e.kind = 'runtime'
        ) QUALIFY calls = max(calls) OVER (PARTITION BY rank)
    """
    operators = """
        SELECT t.rank, e.ts_ns, e.ts_ns + e.dur_ns AS end_ns
        FROM events e JOIN tracks t ON t.id = e.track_id WHERE e.kind = 'op'
    """
    # Operators with known FLOPs take as long in a compiled program.
    products = f"{operators} AND e.id IN (SELECT event_id FROM op_args WHERE flops > 0)"
    by_step = "SELECT rank, step, sum(hidden_ns) AS ns, sum(end_ns - ts_ns) AS gap_ns FROM"
    ((ratio, compiled_ns),) = training.run.sql(f"""
        SELECT median(c.ns / c.gap_ns), median(p.ns + (w.ns - p.ns) * {FUSED_RATIO})
        FROM ({by_step} ({hidden(gaps, calls, "rank")}) GROUP BY ALL) c
        JOIN ({by_step} ({hidden(gaps, operators, "rank")}) GROUP BY ALL) w USING (rank, step)
        JOIN ({by_step} ({hidden(gaps, products, "rank")}) GROUP BY ALL) p USING (rank, step)
    """).fetchall()
    return None if not ratio else (float(ratio), float(compiled_ns))


def _sampled_ratio(training: Training) -> float:
    """The part of gaps in which samples show that operations are called."""
    prepare_looks(training)
    ((inside_ns, total_ns),) = training.run.sql(f"""
        SELECT coalesce(sum(dur_ns) FILTER ({_CALLS_OPERATIONS}), 0)::DOUBLE,
               coalesce(sum(dur_ns), 0)::DOUBLE
        FROM {TYPICAL_LOOKS} WHERE phase = 'gap'
    """).fetchall()
    return float(inside_ns / max(1.0, total_ns))


def _not_compiled(training: Training, calls: float) -> Finding | None:
    """The cost of a gradient that is not compiled, if it is large enough."""
    (row,) = training.rows(f"""
        WITH calling AS (
            SELECT s.rank, s.step, e.ts_ns, e.ts_ns + e.dur_ns AS end_ns, e.name FROM events e
            JOIN tracks t ON t.id = e.track_id
            ASOF JOIN step_times s ON s.rank = t.rank AND s.ts_ns <= e.ts_ns
            WHERE e.kind = 'runtime' AND ends_with(e.name, '{NOT_COMPILED}')
        ),
        each AS (SELECT rank, step, sum(end_ns - ts_ns) AS ns FROM calling GROUP BY rank, step)
        SELECT (SELECT median(ns) FROM each) AS ns,
               (SELECT mode(name ORDER BY name) FROM calling) AS name
    """)
    if row["ns"] is None:
        return None
    share = min(
        MOST_ESTIMATED, max(0.0, row["ns"] - _computed_ns(training)) / max(1.0, training.typical_ns)
    )
    if share < SMALLEST_SHARE:
        return None
    name = row["name"].removesuffix(NOT_COMPILED).rpartition("gradient of ")[2]
    update = training.place("update")
    line = str(update) if update else None
    return Finding(
        title=message("tiny-operators.not-compiled-title", name=name, share=percent(share)),
        why=_why_not_compiled(float(row["ns"]), round(calls)),
        share=share,
        expected_speedup=speedup(share),
        fixes=(
            fix("compile-gradient-and-update", training.framework, line, function=name),
            fix("compile-gradient", training.framework, function=name),
        ),
        evidence=(Evidence("counters", ({"name": SINGLE_OPERATIONS, "a step": round(calls)},)),),
        where=line,
        is_certain=False,
    )


def _why_not_compiled(gradient_ns: float, calls: int) -> Message:
    time = duration(gradient_ns)
    if calls < 2:  # they were not counted
        return message("tiny-operators.not-compiled-why-uncounted", time=time)
    return message("tiny-operators.not-compiled-why", time=time, calls=count(calls))


def _computed_ns(training: Training) -> float:
    """The time in which operators run in a typical step recorded in full."""
    operators = """
        SELECT t.rank, e.step, e.ts_ns, e.ts_ns + e.dur_ns AS end_ns
        FROM events e JOIN tracks t ON t.id = e.track_id
        WHERE e.kind = 'op' AND e.step IS NOT NULL
    """
    found = training.run.sql(f"""
        SELECT median(covered_ns) FROM ({covered(operators, "rank, step")})
    """).fetchall()
    return float(found[0][0] or 0.0)


def _single_operations(training: Training) -> float:
    """The number of operations per step, in the steps that are judged."""
    rows = training.rows(
        "SELECT s.rank, s.step, max(c.value) AS passed FROM counters c JOIN step_times s"
        " ON s.rank = c.rank AND c.ts_ns BETWEEN s.ts_ns AND s.ts_ns + s.dur_ns"
        " WHERE c.name = $name GROUP BY ALL ORDER BY s.rank, s.step",
        {"name": SINGLE_OPERATIONS},
    )
    passed = [
        (after["passed"] - before["passed"]) / (after["step"] - before["step"])
        for before, after in itertools.pairwise(rows)
        if before["rank"] == after["rank"] and training.judges(after["rank"], after["step"])
    ]
    return float(np.median(passed)) if passed else 0.0
