"""Operations that a script calls one by one where a compiled program trains, or should.

A part of the rule `tiny-operators`.
"""

import itertools

import numpy as np

from strobe.advise.evidence.stack_lines import TYPICAL_LOOKS, line_of, prepare_looks
from strobe.advise.finding import Evidence, Finding
from strobe.advise.training import Training
from strobe.analyse import recorded
from strobe.analyse.intervals import covered, hidden
from strobe.model.journal import NOT_COMPILED, SINGLE_OPERATIONS
from strobe.units import percent

FEWEST_CALLS = 100
WORTH_TELLING_RATIO = 0.05
# Python between two calls; what is longer has another reason.
LONGEST_GAP_NS = 100_000
# Of what operations on elements take one by one, what is left where they are compiled together: an
# update by Adam goes through arrays of the size of the parameters some 30 times, compiled 7 times.
FUSED_RATIO = 0.25
# In the files of a framework that calls operations one by one, as part of a path.
_CALLS_OPERATIONS = "/jax/"


def check(training: Training) -> Finding | None:
    """Beside a compiled program, or instead of one."""
    calls = _single_operations(training)
    found = _not_compiled(training, calls)
    if found is not None or calls < FEWEST_CALLS:
        return found
    gap_ns = float(np.median(training.steps["gap_ns"])) if training.step_count else 0.0
    ratio, worked_ns = _calling(training) or (_seen_calling(training), 0.0)
    cost_ns = max(0.0, gap_ns * ratio - worked_ns)
    share = min(0.95, cost_ns / max(1.0, training.typical_ns))
    if share < WORTH_TELLING_RATIO:
        return None
    condition = f"phase = 'gap' AND stack LIKE '%{_CALLS_OPERATIONS}%'"
    seen = line_of(training, condition, looks=TYPICAL_LOOKS)
    return Finding(
        title=f"{calls:,.0f} operations a step are called one by one, outside of the compiled "
        f"program: {percent(share)} of step time",
        share=share,
        expected_speedup=1 / (1 - share),
        fixes=(
            f"put what is called{f' at {seen}' if seen else ''} into the compiled function that "
            "trains (jax.jit): the update too, and jax.tree.map over parameters",
            "make batches with numpy, and give them to the compiled function whole",
        ),
        evidence=(Evidence("counters", ({"name": SINGLE_OPERATIONS, "a step": round(calls)},)),),
        where=str(seen) if seen else None,
        is_certain=False,
    )


def _calling(training: Training) -> tuple[float, float] | None:
    """Of the typical step recorded in full: the part of its gap that goes into calling operations,
    and how long a compiled program has to run instead. None if there is none."""
    recorded.prepare_outline(training.run)
    gaps = """
        SELECT rank, step, ts_ns, end_ns FROM outline
        WHERE kind = 'phase' AND name = 'gap' AND dur_ns > 0
            AND (rank, step) IN (SELECT rank, step FROM recorded_steps)
    """
    # Of all threads the one with most of them is the one that calls.
    calls = f"""
        SELECT rank, ts_ns, ts_ns + dur_ns + {LONGEST_GAP_NS} AS end_ns FROM (
            SELECT t.rank, e.ts_ns, e.dur_ns, count(*) OVER (PARTITION BY t.id) AS calls
            FROM events e JOIN tracks t ON t.id = e.track_id WHERE e.kind = 'runtime'
        ) QUALIFY calls = max(calls) OVER (PARTITION BY rank)
    """
    operators = """
        SELECT t.rank, e.ts_ns, e.ts_ns + e.dur_ns AS end_ns
        FROM events e JOIN tracks t ON t.id = e.track_id WHERE e.kind = 'op'
    """
    # Those that FLOPs are known of take as long wherever they run.
    products = f"{operators} AND e.id IN (SELECT event_id FROM op_args WHERE flops > 0)"
    by_step = "SELECT rank, step, sum(hidden_ns) AS ns, sum(end_ns - ts_ns) AS gap_ns FROM"
    ((ratio, worked_ns),) = training.run.sql(f"""
        SELECT median(c.ns / c.gap_ns), median(p.ns + (w.ns - p.ns) * {FUSED_RATIO})
        FROM ({by_step} ({hidden(gaps, calls, "rank")}) GROUP BY ALL) c
        JOIN ({by_step} ({hidden(gaps, operators, "rank")}) GROUP BY ALL) w USING (rank, step)
        JOIN ({by_step} ({hidden(gaps, products, "rank")}) GROUP BY ALL) p USING (rank, step)
    """).fetchall()
    return None if not ratio else (float(ratio), float(worked_ns))


def _seen_calling(training: Training) -> float:
    """The part of gaps in which the loop was seen to call operations."""
    prepare_looks(training)
    ((inside_ns, total_ns),) = training.run.sql(f"""
        SELECT coalesce(sum(dur_ns) FILTER (stack LIKE '%{_CALLS_OPERATIONS}%'), 0)::DOUBLE,
               coalesce(sum(dur_ns), 0)::DOUBLE
        FROM {TYPICAL_LOOKS} WHERE phase = 'gap'
    """).fetchall()
    return float(inside_ns / max(1.0, total_ns))


def _not_compiled(training: Training, calls: float) -> Finding | None:
    """Where the gradient itself is taken operation by operation."""
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
    share = min(0.95, max(0.0, row["ns"] - _computed_ns(training)) / max(1.0, training.typical_ns))
    if share < WORTH_TELLING_RATIO:
        return None
    name = row["name"].removesuffix(NOT_COMPILED).rpartition("gradient of ")[2]
    seen = training.place("update")
    return Finding(
        title=f"the gradient of {name} is taken operation by operation, {calls:,.0f} of them a "
        f"step: calling them takes {percent(share)} of step time",
        share=share,
        expected_speedup=1 / (1 - share),
        fixes=(
            f"compile what a step does: jax.jit on a function that takes the gradient of {name} "
            "and updates the parameters",
            f"or at least the gradient: jax.jit(jax.value_and_grad({name}))",
        ),
        evidence=(Evidence("counters", ({"name": SINGLE_OPERATIONS, "a step": round(calls)},)),),
        where=str(seen) if seen else None,
        is_certain=False,
    )


def _computed_ns(training: Training) -> float:
    """Of a typical step recorded in full: the time in which operators ran."""
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
    """A step, in the steps judged."""
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
