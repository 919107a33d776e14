"""Which threads and processes used the cores while training ran?

CPU times are those that the kernel reports for every thread of the training process and its child
processes; the rest of the busy cores belongs to other programs. Measured from the first sample
after the first step began to the last sample before the last step ended.
"""

from typing import Any

import duckdb

from strobe.analyse.select import declared
from strobe.analyse.tables.steps import steps
from strobe.model.journal import (
    CHILD_PROCESSES,
    DATA_THREADS,
    NO_CORE_OF,
    ON_CORE_OF,
    PYTHON_THREADS,
    STROBE_THREADS,
    TRAINING_THREADS,
)
from strobe.model.schema import Column, Table
from strobe.store.run import Run

NAME = "core-users"

RESULT = Table(
    NAME,
    "Which threads and processes used the cores while training ran?",
    (
        Column("rank", "i64", "Rank of the process."),
        Column(
            "who",
            "str",
            "training (its thread and those of the framework), data pipeline, Python threads, "
            "child processes, Strobe, other programs.",
        ),
        Column("cpu_ns", "i64", "Total CPU time."),
        Column("cores", "f64", "Mean number of cores in use."),
        Column(
            "share",
            "f64",
            "The same as a share of the cores that the process may use.",
            nullable=True,
        ),
        Column("no_core_ns", "i64", "Total time ready to run, but without a free core.", True),
    ),
)

_WHO = {
    TRAINING_THREADS: "training",
    DATA_THREADS: "data pipeline",
    PYTHON_THREADS: "Python threads",
    CHILD_PROCESSES: "child processes",
    STROBE_THREADS: "Strobe",
}
_NAMES = ", ".join(
    f"('{who}', '{ON_CORE_OF.format(role)}', '{NO_CORE_OF.format(role)}')"
    for role, who in _WHO.items()
)
_SQL = f"""
    WITH trained AS (
        SELECT rank, min(ts_ns) AS first_ns, max(ts_ns + dur_ns) AS end_ns
        FROM step_times GROUP BY rank
    ),
    inside AS (
        SELECT c.* FROM counters c JOIN trained t USING (rank)
        WHERE c.ts_ns BETWEEN t.first_ns AND t.end_ns
    ),
    grown AS (
        SELECT rank, name, max(value) - min(value) AS value, max(ts_ns) - min(ts_ns) AS span_ns
        FROM inside WHERE ends_with(name, '_total') GROUP BY rank, name
    ),
    usable AS (
        SELECT rank, max(value) / 1000 AS cores FROM counters
        WHERE name = 'cores_usable_milli' GROUP BY rank
    ),
    groups AS (
        SELECT g.rank, who, g.value AS cpu_ns, g.value / nullif(g.span_ns, 0) AS cores,
               n.value AS no_core_ns, g.span_ns
        FROM (VALUES {_NAMES}) roles(who, on_core, no_core)
        JOIN grown g ON g.name = on_core LEFT JOIN grown n ON n.name = no_core AND n.rank = g.rank
        WHERE g.span_ns > 0
    ),
    others AS (
        SELECT rank, 'other programs' AS who,
               greatest(0, avg(value) / 1000 - any_value(own.cores)) AS cores,
               any_value(own.span_ns) AS span_ns
        FROM inside JOIN (
            SELECT rank, sum(cores) AS cores, max(span_ns) AS span_ns FROM groups GROUP BY rank
        ) own USING (rank) WHERE name = 'cores_busy_milli' GROUP BY rank
    ),
    every AS (
        SELECT rank, who, cpu_ns, cores, no_core_ns FROM groups
        UNION ALL
        SELECT rank, who, round(cores * span_ns)::BIGINT, cores, NULL FROM others
    )
    SELECT rank, who, cpu_ns::BIGINT AS cpu_ns, every.cores, every.cores / usable.cores AS share,
           no_core_ns::BIGINT AS no_core_ns
    FROM every LEFT JOIN usable USING (rank)
"""


def run(run: Run, **options: Any) -> duckdb.DuckDBPyRelation:
    steps.prepare(run)
    return declared(run.connection, RESULT, _SQL, "rank, cpu_ns DESC, who", **options)
