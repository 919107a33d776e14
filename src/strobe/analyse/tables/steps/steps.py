"""How long did each step take, and what was it made of?

The parts gap, forward, backward, all_reduce, update, rest and recorder tile a step: they add up to
its length exactly. An outlier is longer than the median of its rank's steps by five standard
deviations (estimated from the median absolute deviation, which outliers cannot inflate) and by at
least 20%, without Strobe's own part.

Every average and every share of step time, in the summary, the tables, the pages and the advice, is
taken over the same steps: those with `is_counted`. The first three steps include warm-up, and full
recording slows steps down, so both are left out if enough others remain.
"""

from typing import Any

import duckdb

from strobe.analyse import recorded
from strobe.analyse.select import declared
from strobe.model.schema import PHASES, Column, Table
from strobe.store.run import Run

NAME = "steps"

# 1.4826 times the median absolute deviation estimates the standard deviation of normal noise.
OUTLIER_DEVIATIONS = 5 * 1.4826
# If steps hardly vary, every hiccup would be an outlier.
OUTLIER_RATIO = 0.2

# The first steps of a process fill caches, memory pools and thread pools that later ones use.
WARM_UP_STEPS = 3
# With fewer others than this, slowed steps and warm-up steps count too.
ENOUGH_STEPS = 5

RESULT = Table(
    NAME,
    "How long did each step take, and what was it made of?",
    (
        Column("rank", "i64", "Rank of the process."),
        Column("step", "i64", "Number of the step, counted from 1."),
        Column("ts_ns", "i64", "Start, in nanoseconds since the run began."),
        Column("dur_ns", "i64", "Duration; the sum of the seven parts below."),
        Column("gap_ns", "i64", "Between steps, up to the first forward, and every wait for data."),
        Column(
            "forward_ns",
            "i64",
            "From the start of the forward pass to the backward pass, the loss included.",
        ),
        Column("backward_ns", "i64", "Inside the backward pass."),
        Column("all_reduce_ns", "i64", "Exchange of gradients not hidden by the backward pass."),
        Column(
            "update_ns", "i64", "From the end of backward to the end of the optimizer's update."
        ),
        Column("rest_ns", "i64", "Whatever is between the other parts."),
        Column("recorder_ns", "i64", "Strobe's own work: starting and ending a full recording."),
        Column("data_ns", "i64", "The part of the gap spent waiting for data."),
        Column("is_outlier", "bool", "Much longer than the rank's median step."),
        Column("is_recorded", "bool", "Whether all its operators were recorded."),
        Column("is_slowed", "bool", "Whether full recording ran in it, which slows it down."),
        Column("is_counted", "bool", "Whether averages and shares of step time include it."),
    ),
)

_PARTS = ", ".join(
    f"coalesce(sum(dur_ns) FILTER (name = '{phase}'), 0)::BIGINT AS {phase}_ns" for phase in PHASES
)
# Sweep over the moments at which a gap or a wait begins or ends: between two neighbours there is a
# wait inside a gap, or not. (A join of gaps with waits would compare every step with every other.)
_WAITS = """
    SELECT rank, step, sum(next_ns - ts_ns)::BIGINT AS covered_ns FROM (
        SELECT rank, ts_ns, sum(gap) OVER w AS gaps, sum(wait) OVER w AS waits,
               last_value(begun IGNORE NULLS) OVER w AS step,
               lead(ts_ns) OVER (PARTITION BY rank ORDER BY ts_ns, gap, wait) AS next_ns
        FROM (
            SELECT rank, unnest([ts_ns, ts_ns + dur_ns]) AS ts_ns, unnest([1, -1]) AS gap,
                   0 AS wait, unnest([step, NULL]) AS begun
            FROM phases WHERE name = 'gap' AND dur_ns > 0
            UNION ALL
            SELECT rank, unnest([ts_ns, end_ns]), 0, unnest([1, -1]), NULL
            FROM outline WHERE kind = 'data'
        )
        WINDOW w AS (PARTITION BY rank ORDER BY ts_ns, gap, wait ROWS UNBOUNDED PRECEDING)
    ) WHERE gaps > 0 AND waits > 0 GROUP BY rank, step
"""
_SQL = f"""
    WITH spans AS ({recorded.steps("outline")}),
    phases AS (SELECT rank, step, name, ts_ns, dur_ns FROM outline WHERE kind = 'phase'),
    parts AS (SELECT rank, step, {_PARTS} FROM phases GROUP BY rank, step),
    waits AS ({_WAITS}),
    trained AS (
        SELECT rank, step, dur_ns - coalesce(recorder_ns, 0) AS trained_ns
        FROM spans LEFT JOIN parts USING (rank, step)
    ),
    medians AS (SELECT rank, median(trained_ns) AS median_ns FROM trained GROUP BY rank),
    deviations AS (
        SELECT rank, median_ns, median(abs(trained_ns - median_ns)) AS mad_ns
        FROM trained JOIN medians USING (rank) GROUP BY rank, median_ns
    ),
    every AS (
        SELECT s.rank, s.step, s.ts_ns, s.dur_ns,
               {", ".join(f"coalesce({phase}_ns, 0) AS {phase}_ns" for phase in PHASES)},
               coalesce(w.covered_ns, 0) AS data_ns,
               s.dur_ns - coalesce(recorder_ns, 0) > d.median_ns + greatest(
                   {OUTLIER_DEVIATIONS} * d.mad_ns, {OUTLIER_RATIO} * d.median_ns) AS is_outlier,
               s.id IN (SELECT id FROM recorded_steps) AS is_recorded,
               -- Setting up the recorder, in the first step, is in recorder_ns and nowhere else.
               s.id IN ({recorded.touched_steps("outline")})
                   OR (coalesce(recorder_ns, 0) > 0 AND s.step > 1) AS is_slowed
        FROM spans s
        JOIN deviations d USING (rank)
        LEFT JOIN parts p USING (rank, step)
        LEFT JOIN waits w USING (rank, step)
    ),
    -- Grouped, not by window functions: of two, one over the other, DuckDB makes a join that
    -- compares every step with every other.
    short AS (
        SELECT rank FROM every GROUP BY rank HAVING count(*) <= {WARM_UP_STEPS + ENOUGH_STEPS}
    ),
    settled AS (
        SELECT rank, step, is_slowed FROM every
        WHERE step > {WARM_UP_STEPS} OR rank IN (FROM short)
    ),
    undisturbed AS (
        SELECT rank FROM settled GROUP BY rank
        HAVING count(*) FILTER (NOT is_slowed) >= {ENOUGH_STEPS}
    )
    SELECT *, (step > {WARM_UP_STEPS} OR rank IN (FROM short))
              AND NOT (is_slowed AND rank IN (FROM undisturbed)) AS is_counted
    FROM every
"""

# The steps that every average and share is taken over.
COUNTED = "SELECT * FROM step_times WHERE is_counted"


def prepare(run: Run) -> None:
    """Create `step_times` in the run's connection, once: the rows of this analysis."""
    recorded.prepare_outline(run)
    run.make("step_times", _SQL)


def run(run: Run, **options: Any) -> duckdb.DuckDBPyRelation:
    prepare(run)
    return declared(run.connection, RESULT, "FROM step_times", "rank, step", **options)
