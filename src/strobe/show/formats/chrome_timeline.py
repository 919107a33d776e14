"""The timeline as Chrome trace JSON, which Perfetto and chrome://tracing open.

A process for each rank, a track for each thread and stream, steps and phases on a track of their
own, counters, and arrows from forward to backward and from launch to kernel.

`strobe import` makes the same run of it again: an event's arguments hold the rest of its row and
its rows in the tables of arguments; the other tables lie, a column at a time, in the arguments of
the ranks' labels, where viewers do not look.
Spec: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

import json
import math
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

from strobe.model.schema import RANK_SHIFT, SCHEMA_VERSION, STORED_TABLES, Column, Table
from strobe.show.atomic import whole_file
from strobe.store.run import Run
from strobe.timeline.curves import CURVES

NAME = "chrome_timeline.json"
DOC = "the timeline, for ui.perfetto.dev, chrome://tracing and strobe import"

_BATCH_LINES = 20_000
_ROWS_A_LABEL = 4_000
_OF_EVENTS = tuple(table for table in STORED_TABLES if table.name.endswith("_args"))
_IN_LABELS = tuple(
    table for table in STORED_TABLES if table not in _OF_EVENTS and table.name != "events"
)

# Perfetto reads thread ids as 32-bit numbers, ours are wider: number the tracks of each rank.
_ROWS = """
    SELECT t.rank, t.id AS track_id, t.device, t.name, t.thread,
           row_number() OVER (PARTITION BY t.rank ORDER BY
               t.device <> 'steps', t.device, t.thread NULLS FIRST, t.id) AS tid
    FROM tracks t WHERE t.id IN (SELECT track_id FROM events)
"""
_PLACED = """
    SELECT e.*, r.rank, r.tid FROM events e JOIN timeline_rows r ON r.track_id = e.track_id
"""


def _us(ns: str) -> str:
    """SQL: nanoseconds as microseconds with every digit; as a double they would be rounded."""
    return f"""(CASE WHEN {ns} < 0 THEN '-' ELSE '' END
        || printf('%d.%03d', abs({ns}) // 1000, abs({ns}) % 1000))"""


def _object(table: Table, alias: str) -> str:
    """SQL: a row as a JSON object of what is known; null where there is no row."""
    fields = ", ".join(_field(column, alias) for column in table.columns[1:])
    return f"""CASE WHEN {alias}.event_id IS NOT NULL
        THEN ',"{table.name}":{{' || concat_ws(',', {fields}) || '}}' ELSE '' END"""


def _field(column: Column, alias: str) -> str:
    value = f'{alias}."{column.name}"'
    if column.type == "f64":
        value = f"CASE WHEN isfinite({value}) THEN {value} END"
    return f"""'"{column.name}":' || to_json({value})"""


_THREADS = """
    SELECT '{"ph":"M","pid":' || rank || ',"tid":' || tid
           || ',"name":"thread_name","args":{"name":' || to_json(CASE
               WHEN device IN ('steps', 'cpu') THEN name ELSE device || ' ' || name END)
           || ',"track":' || track_id || '}},' || chr(10)
           || '{"ph":"M","pid":' || rank || ',"tid":' || tid
           || ',"name":"thread_sort_index","args":{"sort_index":' || tid || '}}'
    FROM timeline_rows ORDER BY rank, tid
"""
# A parent comes before the child that starts with it: viewers nest by order.
_EVENTS = f"""
    SELECT CASE WHEN p.kind = 'mark' AND dur_ns = 0 THEN '{{"ph":"i"' ELSE '{{"ph":"X"' END
           || ',"pid":' || rank || ',"tid":' || tid
           || ',"name":' || to_json(p.name) || ',"cat":"' || p.kind || '","ts":' || {_us("ts_ns")}
           || CASE WHEN p.kind = 'mark' AND dur_ns = 0 THEN ',"s":"t"'
                   ELSE ',"dur":' || {_us("dur_ns")} END
           || ',"args":{{"id":' || id
           || coalesce(',"step":' || step, '')
           || coalesce(',"scope":' || to_json(scope), '')
           || coalesce(',"parent":' || parent_id, '')
           || coalesce(',"launcher":' || launcher_id, '')
           || {" || ".join(_object(table, f"a{n}") for n, table in enumerate(_OF_EVENTS))} || '}}}}'
    FROM ({_PLACED}) p
    {" ".join(f"LEFT JOIN {t.name} a{n} ON a{n}.event_id = id" for n, t in enumerate(_OF_EVENTS))}
    ORDER BY rank, tid, ts_ns, dur_ns DESC, id
"""
_ARROWS = f"""
    WITH placed AS ({_PLACED}),
    arrows AS (
        SELECT from_id, to_id, kind FROM links
        UNION ALL
        SELECT launcher_id, id, 'launch' FROM events WHERE launcher_id IS NOT NULL
    ),
    numbered AS (
        SELECT row_number() OVER (ORDER BY a.kind, a.from_id, a.to_id) AS number, a.kind,
               f.rank AS from_rank, f.tid AS from_tid, f.ts_ns AS from_ns,
               t.rank AS to_rank, t.tid AS to_tid, t.ts_ns AS to_ns
        FROM arrows a JOIN placed f ON f.id = a.from_id JOIN placed t ON t.id = a.to_id
    )
    SELECT '{{"ph":"s","pid":' || from_rank || ',"tid":' || from_tid || ',"id":' || number
           || ',"name":' || to_json(kind) || ',"cat":' || to_json(kind)
           || ',"ts":' || {_us("from_ns")} || '}},' || chr(10)
           || '{{"ph":"f","pid":' || to_rank || ',"tid":' || to_tid || ',"bp":"e","id":' || number
           || ',"name":' || to_json(kind) || ',"cat":' || to_json(kind)
           || ',"ts":' || {_us("to_ns")} || '}}'
    FROM numbered ORDER BY number
"""
_COUNTERS = f"""
    SELECT '{{"ph":"C","pid":' || rank || ',"name":' || to_json(name) || ',"ts":' || {_us("ts_ns")}
           || ',"args":{{"value":' || value || '}}}}'
    FROM ({CURVES}) ORDER BY rank, name, ts_ns
"""


def write(run: Run, path: Path) -> None:
    run.connection.execute(f"CREATE OR REPLACE TABLE timeline_rows AS {_ROWS}")
    ranks = [rank for (rank,) in run.sql("SELECT DISTINCT rank FROM tracks ORDER BY 1").fetchall()]
    # The first key is what `strobe import` knows the file by, the second who is in it.
    about = {
        "strobe_timeline": 1, "ranks": ranks, "started_unix_ns": run.manifest.started_unix_ns,
        "schema_version": SCHEMA_VERSION, "strobe_version": run.manifest.strobe_version,
        "recorded_by": run.manifest.recorded_by, "command": run.manifest.command,
    }  # fmt: skip
    with whole_file(path) as out:
        out.write(f'{{"displayTimeUnit":"ms","otherData":{_json(about)},"traceEvents":[')
        separator = "\n"
        for line in _processes(run, ranks):
            out.write(separator + line)
            separator = ",\n"
        for query in (_THREADS, _EVENTS, _ARROWS, _COUNTERS):
            separator = _write_lines(run, query, out, separator)
        out.write("\n]}\n")


def _processes(run: Run, ranks: list[int]) -> Iterator[str]:
    known = {rank.rank: asdict(rank) for rank in run.manifest.ranks}
    for rank in ranks:
        name = {"name": f"rank {rank}", "strobe": known.get(rank, {})}
        yield _metadata(rank, "process_name", name)
        yield _metadata(rank, "process_sort_index", {"sort_index": rank})
    for table in _IN_LABELS if ranks else ():
        rank_of = "rank" if "rank" in table.column_names else f"from_id >> {RANK_SHIFT}"
        query = f"SELECT coalesce({rank_of}, {ranks[0]}) AS of_rank, * FROM {table.name}"
        yield from _labels(run, table, f"{query} ORDER BY ALL")


def _labels(run: Run, table: Table, query: str) -> Iterator[str]:
    """Rows of a table, some thousands at a time, each of one rank."""
    cursor = run.connection.cursor()
    try:
        cursor.execute(query)
        while batch := cursor.fetchmany(_ROWS_A_LABEL):
            for rank in sorted({row[0] for row in batch}):
                rows = [row[1:] for row in batch if row[0] == rank]
                columns = dict(zip(table.column_names, zip(*rows, strict=True), strict=True))
                held = {"table": table.name, "columns": columns}
                yield _metadata(rank, "process_labels", {"labels": "strobe", "strobe": held})
    finally:
        cursor.close()


def _metadata(rank: int, name: str, args: dict[str, Any]) -> str:
    return f'{{"ph":"M","pid":{rank},"name":"{name}","args":{_json(args)}}}'


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError:
        return json.dumps(_finite(value), ensure_ascii=False, separators=(",", ":"))


def _finite(value: Any) -> Any:
    """Numbers that JSON does not know, as text."""
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _write_lines(run: Run, query: str, out: TextIO, separator: str) -> str:
    cursor = run.connection.cursor()
    try:
        cursor.execute(query)
        while batch := cursor.fetchmany(_BATCH_LINES):
            out.write(separator + ",\n".join(line for (line,) in batch))
            separator = ",\n"
    finally:
        cursor.close()
    return separator
