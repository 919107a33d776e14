"""Operator calls, filtered, grouped and ranked, each with its share.

What MegEngine's profile_analyze does, for any run. docs/explain/compared-with-megengine.md explains
where the numbers differ.
"""

import difflib
from dataclasses import dataclass, replace
from typing import Literal

import duckdb

from strobe.analyse.select import is_like, is_within, no_column, quoted
from strobe.analyse.tables.operators import operator_calls
from strobe.errors import UsageError
from strobe.model.schema import Column, Table
from strobe.store.columns import SQL_TYPES
from strobe.store.run import Run

_MOST_SIMILAR = 3

Clock = Literal["device", "host"]

AGGREGATES = ("sum", "mean", "max", "min")
GROUPS = {"type": "type", "name": "name", "scope": "scope", "rank": "rank::VARCHAR"}

_COUNTED = (
    Column("time_ns", "i64", "Time on the selected clock."),
    Column("share", "f64", "Its share of the time of all operators of the run.", True),
    Column("cumulative_share", "f64", "Share of this row and those above.", nullable=True),
    Column("computation_flops", "i64", "Floating-point operations.", nullable=True),
    Column("flops_per_s", "f64", "Floating-point operations per second.", nullable=True),
    Column("memory_bytes", "i64", "Bytes read and written.", nullable=True),
    Column("bytes_per_s", "f64", "Bytes per second.", nullable=True),
)
_LAST = (
    Column("cumulative_ns", "i64", "Time of this row and those above."),
    Column("clock", "str", "device or host."),
)
CALLS = Table(
    "operator-ranking",
    "The calls of operators that took longest.",
    (
        Column("name", "str", "Name of the operator, or its name in its graph."),
        Column("type", "str", "Type of the operator."),
        *_COUNTED,
        Column("input_shapes", "str", "Shapes of the inputs, as JSON.", nullable=True),
        Column("output_shapes", "str", "Shapes of the outputs, as JSON.", nullable=True),
        Column("scope", "str", "Full path of the module it worked for.", nullable=True),
        Column("step", "i64", "The step it began in.", nullable=True),
        Column("rank", "i64", "Rank of the process."),
        Column("id", "i64", "Its number in the source, otherwise that of its event."),
        *_LAST,
    ),
)
TOTALS = Table(
    "totals",
    "All operators of the run, regardless of the selection.",
    (
        Column("device_ns", "i64", "Time on devices; null where none was recorded.", True),
        Column("host_ns", "i64", "Self time on the host; null where none was recorded.", True),
        Column("operators", "i64", "Calls of operators."),
    ),
)
COPIES = Table(
    "copies",
    "The selected operators of type Copy, on the selected clock.",
    (
        Column("copies", "i64", "Number of calls."),
        Column("copy_ns", "i64", "Total time."),
        Column("copy_mean_ns", "i64", "Mean per call, rounded.", nullable=True),
        Column("copy_wait_ns", "i64", "Part of it spent waiting for inputs."),
        Column("copy_wait_mean_ns", "i64", "Mean per call, rounded.", nullable=True),
    ),
)

# The names of the columns in MegEngine.
_ALIASES = {
    "time": "time_ns", "computation": "computation_flops", "memory": "memory_bytes",
    "flops": "flops_per_s", "bandwidth": "bytes_per_s", "opr_id": "id",
    "cumulative": "cumulative_ns",
}  # fmt: skip


@dataclass(frozen=True)
class Choice:
    """The user's selection. Limits on time are inclusive and apply to each call, before
    grouping.
    """

    clock: Clock = "device"
    wait_only: bool = False
    types: tuple[str, ...] = ()
    pattern: str = ""  # a regular expression that the name must start with
    like: str = ""
    scope: str = ""
    input_dtype: str = ""
    rank: int | None = None
    min_ns: int | None = None
    max_ns: int | None = None
    aggregate: str = ""
    aggregate_by: str = ""
    order_by: str = "time"
    top: int = 0  # 0: all; negative: all but the last ones
    all_steps: bool = False

    @property
    def is_aggregated(self) -> bool:
        return bool(self.aggregate or self.aggregate_by)


def totals(run: Run, *, all_steps: bool = False) -> dict[str, int | None]:
    """By the columns of TOTALS. A clock that measured no time was not recorded."""
    calls = _calls(run, all_steps)
    (found,) = run.sql(
        f"SELECT nullif(sum(device_ns), 0), nullif(sum(host_ns), 0), count(*) FROM {calls}"
    ).fetchall()
    return dict(zip(TOTALS.column_names, found, strict=True))


def copies(run: Run, choice: Choice) -> dict[str, int | None]:
    """By the columns of COPIES."""
    time, wait = f"{choice.clock}_ns", f"{choice.clock}_wait_ns"
    where = _conditions(replace(choice, wait_only=False, min_ns=None, max_ns=None))
    (found,) = run.sql(f"""
        SELECT count(*), coalesce(sum({time}), 0), round(avg({time}))::BIGINT,
               coalesce(sum({wait}), 0), round(avg({wait}))::BIGINT
        FROM {_calls(run, choice.all_steps)}
        WHERE {where} AND lower(rtrim(type, '_')) = 'copy'
    """).fetchall()
    return dict(zip(COPIES.column_names, found, strict=True))


def ranked(run: Run, choice: Choice) -> tuple[Table, list[tuple[object, ...]], int]:
    """The requested rows, as a table of its own, and how many there are."""
    table = table_of(choice)
    calls = _calls(run, choice.all_steps)
    whole = f"(SELECT nullif(sum({choice.clock}_ns), 0) FROM {calls})"
    source = f"SELECT * FROM {calls} WHERE {_conditions(choice)}"
    rows = _aggregated(choice, source) if choice.is_aggregated else _single(choice, source)
    order = _order(table, choice)
    query = f"""
        SELECT *, time_ns / {whole} AS share, sum(time_ns) OVER ordered AS cumulative_ns,
               sum(time_ns) OVER ordered / {whole} AS cumulative_share, '{choice.clock}' AS clock
        FROM ({rows}) WINDOW ordered AS (ORDER BY {order} ROWS UNBOUNDED PRECEDING)
    """
    columns = ", ".join(f'"{c.name}"::{SQL_TYPES[c.type]} AS "{c.name}"' for c in table.columns)
    try:
        ((count,),) = run.sql(f"SELECT count(*) FROM ({rows})").fetchall()
        limit = choice.top if choice.top > 0 else max(0, count + choice.top)
        found = run.sql(f"SELECT {columns} FROM ({query}) ORDER BY {order} LIMIT {limit}")
        return table, found.fetchall(), count
    except duckdb.InvalidInputException as error:
        if not choice.pattern:
            raise
        raise UsageError.of(
            "errors/names.bad-pattern", pattern=repr(choice.pattern), reason=error
        ) from error


def similar_types(run: Run, choice: Choice) -> list[str]:
    """Types of the run with names similar to those requested, most similar first."""
    found = run.sql(f"SELECT DISTINCT type FROM {_calls(run, choice.all_steps)} ORDER BY type")
    names = {name.lower().strip("_"): name for (name,) in found.fetchall()}
    near = [
        name
        for wanted in choice.types
        for name in difflib.get_close_matches(wanted.lower(), names, _MOST_SIMILAR)
    ]
    return [names[name] for name in dict.fromkeys(near)]


def table_of(choice: Choice) -> Table:
    if not choice.is_aggregated:
        return CALLS
    by, how = choice.aggregate_by or "all", choice.aggregate or "sum"
    return Table(
        "operator-ranking",
        f"Calls of operators by {by}: the {how} of each column.",
        (
            Column(by, "str", "What the calls have in common.", nullable=True),
            Column("calls", "i64", "Number of calls."),
            *_COUNTED,
            *_LAST,
        ),
    )


def _calls(run: Run, all_steps: bool) -> str:
    """The name of a table with every call, created once."""
    name = f"ranked_calls_{'all' if all_steps else 'recorded'}"
    known = run.sql(f"SELECT 1 FROM duckdb_tables() WHERE table_name = '{name}'").fetchall()
    if not known:
        operator_calls.run(run, all_steps=all_steps).create(name)
    return name


def _time(choice: Choice) -> str:
    return f"{choice.clock}_wait_ns" if choice.wait_only else f"{choice.clock}_ns"


def _conditions(choice: Choice) -> str:
    time = _time(choice)
    conditions = [f"{time} IS NOT NULL"]
    if choice.types:
        wanted = ", ".join(f"lower({quoted(text)})" for text in choice.types)
        conditions.append(f"(lower(type) IN ({wanted}) OR lower(name) IN ({wanted}))")
    if choice.pattern:
        conditions.append(f"regexp_matches(name, {quoted(f'^(?:{choice.pattern})')})")
    if choice.like:
        conditions.append(is_like("name", choice.like))
    if choice.scope:
        conditions.append(is_within("scope", quoted(choice.scope.rstrip("."))))
    if choice.input_dtype:
        wanted = quoted(f'"{choice.input_dtype.lower()}"')
        conditions.append(f"contains(lower(input_dtypes), {wanted})")
    limits = ((time, ">=", choice.min_ns), (time, "<=", choice.max_ns), ("rank", "=", choice.rank))
    conditions += [f"{name} {sign} {n}" for name, sign, n in limits if n is not None]
    return " AND ".join(conditions)


def _single(choice: Choice, source: str) -> str:
    # Work is that of a whole call, so the rate is over the whole call; a wait has no other.
    over = _time(choice) if choice.wait_only else f"{choice.clock}_total_ns"
    return f"""
        SELECT name, type, {_time(choice)} AS time_ns, flops AS computation_flops,
               1e9 * flops / nullif({over}, 0) AS flops_per_s, bytes AS memory_bytes,
               1e9 * bytes / nullif({over}, 0) AS bytes_per_s, {over} AS over_ns, input_shapes,
               output_shapes, scope, step, rank, coalesce(call, event_id) AS id
        FROM ({source})
    """


def _aggregated(choice: Choice, source: str) -> str:
    """Unknown values of a call are left out; its time is always known."""
    how = {"mean": "avg"}.get(choice.aggregate, choice.aggregate or "sum")
    by = choice.aggregate_by or "all"
    group = GROUPS.get(by, "'all'")
    # Calls of one operator are not nested in each other; calls of a module or a rank are.
    over = "over_ns" if by in ("type", "name") else "time_ns"
    if how in ("sum", "avg"):
        rates = [
            f"1e9 * sum({work}) / nullif(sum({over}), 0)"
            for work in ("computation_flops", "memory_bytes")
        ]
    else:
        rates = [f"{how}(flops_per_s)", f"{how}(bytes_per_s)"]
    return f"""
        SELECT {group} AS "{by}", count(*) AS calls, round({how}(time_ns)) AS time_ns,
               round({how}(computation_flops)) AS computation_flops, {rates[0]} AS flops_per_s,
               round({how}(memory_bytes)) AS memory_bytes, {rates[1]} AS bytes_per_s
        FROM ({_single(choice, source)}) GROUP BY ALL HAVING count(*) > 0
    """


def _order(table: Table, choice: Choice) -> str:
    word = choice.order_by.strip()
    name = word.lstrip("+-").lower()
    name = _ALIASES.get(name, name)
    orderable = [c for c in table.columns if not c.name.startswith(("cumulative", "share"))]
    if name in ("share", "cumulative_ns", "cumulative_share"):
        name = "time_ns"
    if name not in [column.name for column in orderable]:
        raise no_column(table, word.lstrip("+-"))
    direction = "ASC" if word.startswith("+") else "DESC"
    settled = f'"{choice.aggregate_by or "all"}"' if choice.is_aggregated else "rank, id"
    return f'"{name}" {direction} NULLS LAST, {settled}'
