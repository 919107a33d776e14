"""Which of your own lines did the training thread spend its time in?

The training thread is sampled every few tens of milliseconds. Each sample represents the time since
the one before it, and counts for the innermost line of user code and for the current part of the
step. So the times are estimates: with n samples, the relative error is about one over the square
root of n.
"""

from typing import Any

import duckdb

from strobe.analyse.select import declared
from strobe.analyse.tables.steps import steps
from strobe.model.schema import PHASES, Column, Table
from strobe.store.run import Run

NAME = "python-lines"

# Waiting for data is part of the gap; here it is shown separately.
PARTS = (*PHASES, "data")

RESULT = Table(
    NAME,
    "Which of your own lines did the training thread spend its time in?",
    (
        Column("rank", "i64", "Rank of the process."),
        Column("place", "str", "Innermost line of user code: train.py:31.", True),
        Column("function", "str", "Function that contains the line.", nullable=True),
        Column("samples", "i64", "Number of samples at this line."),
        Column("total_ns", "i64", "Time that these samples represent."),
        Column("share_ratio", "f64", "The same as a share of all samples of the rank."),
        Column("cpu_ratio", "f64", "Share of that time in which it computed, not waited.", True),
        *(
            Column(f"{part}_ns", "i64", f"Time of that in the part {part} of steps.")
            for part in PARTS
        ),
        Column("below", "str", "What the line was most often waiting for: innermost frame.", True),
    ),
)

# dataloader.py:1284 _try_get_data
_BELOW = """
    regexp_extract(stack ->> '$[0][0]', '[^/]*$') || ':' || (stack ->> '$[0][1]') || ' '
    || (stack ->> '$[0][2]')
"""

_TIMES = f"""
    WITH looks AS (
        SELECT *, ts_ns - lag(ts_ns) OVER w AS dur_ns,
               least(cpu_ns - lag(cpu_ns) OVER w, ts_ns - lag(ts_ns) OVER w) AS on_cpu_ns
        FROM samples WHERE thread = 'training'
        WINDOW w AS (PARTITION BY rank ORDER BY ts_ns)
    ),
    phases AS (SELECT rank, step, name, ts_ns, end_ns FROM outline WHERE kind = 'phase'),
    waits AS (SELECT rank, ts_ns, end_ns FROM outline WHERE kind = 'data'),
    in_phase AS (
        SELECT l.*, p.step, p.name AS phase
        FROM looks l ASOF JOIN phases p ON p.rank = l.rank AND p.ts_ns <= l.ts_ns
        WHERE l.ts_ns < p.end_ns AND l.dur_ns IS NOT NULL
    )
    SELECT l.* EXCLUDE (phase, thread), {_BELOW} AS below,
           CASE WHEN l.phase = 'gap' AND l.ts_ns < w.end_ns THEN 'data' ELSE l.phase END AS phase
    FROM in_phase l ASOF LEFT JOIN waits w ON w.rank = l.rank AND w.ts_ns <= l.ts_ns
"""

_IN_PARTS = ", ".join(
    f"coalesce(sum(dur_ns) FILTER (phase = '{part}'), 0)::BIGINT AS {part}_ns" for part in PARTS
)
_SQL = f"""
    SELECT rank, place, function, count(*) AS samples, sum(dur_ns)::BIGINT AS total_ns,
           sum(dur_ns) / sum(sum(dur_ns)) OVER (PARTITION BY rank) AS share_ratio,
           sum(on_cpu_ns) / nullif(sum(dur_ns) FILTER (on_cpu_ns IS NOT NULL), 0) AS cpu_ratio,
           {_IN_PARTS}, mode(below ORDER BY below) AS below
    FROM sample_times GROUP BY rank, place, function
"""


def prepare(run: Run) -> None:
    """Create `sample_times`: the samples of the training thread inside steps, each with its step,
    its part of the step, the time it represents, and its innermost frame.
    """
    steps.prepare(run)
    run.make("sample_times", _TIMES)


def run(run: Run, **options: Any) -> duckdb.DuckDBPyRelation:
    prepare(run)
    return declared(run.connection, RESULT, _SQL, "total_ns DESC, rank, place", **options)
