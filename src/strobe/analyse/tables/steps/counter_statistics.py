"""What did the host's counters show: memory, busy cores, page faults?

Counters that end in `_total` only grow; their mean, minimum, maximum and p95 are those of the
growth per second between samples, and `last` is the final value.
"""

from typing import Any

import duckdb

from strobe.analyse.select import declared
from strobe.model.schema import Column, Table
from strobe.store.run import Run

NAME = "counter-statistics"

RESULT = Table(
    NAME,
    "What did the host's counters show: memory, busy cores, page faults?",
    (
        Column("rank", "i64", "Rank of the process that measured it."),
        Column("name", "str", "What was measured; the name ends with the unit."),
        Column("samples", "i64", "Number of measurements."),
        Column("is_rate", "bool", "Whether the figures are growth per second."),
        Column("mean", "f64", "Mean; for a rate, growth over the whole time.", nullable=True),
        Column("min", "f64", "Minimum.", nullable=True),
        Column("max", "f64", "Maximum.", nullable=True),
        Column("p95", "f64", "95th percentile.", nullable=True),
        Column("last", "f64", "The last value measured."),
    ),
)

_SQL = """
    WITH ordered AS (
        SELECT rank, name, ts_ns, value, ends_with(name, '_total') AS is_rate,
               lag(value) OVER w AS before, ts_ns - lag(ts_ns) OVER w AS span_ns
        FROM counters WINDOW w AS (PARTITION BY rank, name ORDER BY ts_ns)
    ),
    figures AS (
        SELECT *, CASE WHEN is_rate THEN 1e9 * (value - before) / nullif(span_ns, 0)
                       ELSE value END AS figure
        FROM ordered
    )
    SELECT rank, name, count(*) AS samples, is_rate,
           CASE WHEN is_rate
                THEN 1e9 * (arg_max(value, ts_ns) - arg_min(value, ts_ns))
                     / nullif(max(ts_ns) - min(ts_ns), 0)
                ELSE avg(value) END AS mean,
           min(figure) AS min, max(figure) AS max, quantile_cont(figure, 0.95) AS p95,
           arg_max(value, ts_ns) AS last
    FROM figures GROUP BY rank, name, is_rate
"""


def run(run: Run, **options: Any) -> duckdb.DuckDBPyRelation:
    return declared(run.connection, RESULT, _SQL, "rank, name", **options)
