"""The timeline as Chrome trace JSON, which Perfetto and chrome://tracing open.

A process for each rank, a track for each thread and stream, steps and phases on a track of their
own, counters, and arrows from forward to backward and from launch to kernel.
Spec: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

import json
from pathlib import Path
from typing import TextIO

from strobe.analyse.memory import LIVE
from strobe.show.atomic import whole_file
from strobe.store.run import Run

NAME = "chrome_timeline.json"
DOC = "the timeline, for ui.perfetto.dev and chrome://tracing"

_BATCH_LINES = 20_000

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


_PROCESSES = """
    SELECT '{"ph":"M","name":"process_name","pid":' || rank || ',"args":{"name":"rank '
           || rank || '"}},' || chr(10)
           || '{"ph":"M","name":"process_sort_index","pid":' || rank
           || ',"args":{"sort_index":' || rank || '}}'
    FROM (SELECT DISTINCT rank FROM tracks) ORDER BY rank
"""
_THREADS = """
    SELECT '{"ph":"M","name":"thread_name","pid":' || rank || ',"tid":' || tid
           || ',"args":{"name":' || to_json(CASE
               WHEN device IN ('steps', 'cpu') THEN name ELSE device || ' ' || name END)
           || '}},' || chr(10)
           || '{"ph":"M","name":"thread_sort_index","pid":' || rank || ',"tid":' || tid
           || ',"args":{"sort_index":' || tid || '}}'
    FROM timeline_rows ORDER BY rank, tid
"""
# A parent comes before the child that starts with it: viewers nest by order.
_EVENTS = f"""
    SELECT CASE WHEN kind = 'mark' AND dur_ns = 0 THEN '{{"ph":"i","s":"t"' ELSE '{{"ph":"X"' END
           || ',"name":' || to_json(name) || ',"cat":"' || kind || '","pid":' || rank
           || ',"tid":' || tid || ',"ts":' || {_us("ts_ns")}
           || CASE WHEN kind = 'mark' AND dur_ns = 0 THEN ''
                   ELSE ',"dur":' || {_us("dur_ns")} END
           || ',"args":{{"id":' || id
           || coalesce(',"step":' || step, '')
           || coalesce(',"scope":' || to_json(nullif(scope, '')), '')
           || coalesce(',"input shapes":' || to_json(input_shapes), '')
           || coalesce(',"input types":' || to_json(input_dtypes), '')
           || coalesce(',"flops":' || flops, '') || coalesce(',"bytes":' || bytes, '') || '}}}}'
    FROM ({_PLACED}) LEFT JOIN op_args ON event_id = id
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
    SELECT '{{"ph":"s","id":' || number || ',"name":' || to_json(kind) || ',"cat":' || to_json(kind)
           || ',"pid":' || from_rank || ',"tid":' || from_tid || ',"ts":' || {_us("from_ns")}
           || '}},' || chr(10)
           || '{{"ph":"f","bp":"e","id":' || number || ',"name":' || to_json(kind) || ',"cat":'
           || to_json(kind) || ',"pid":' || to_rank || ',"tid":' || to_tid
           || ',"ts":' || {_us("to_ns")} || '}}'
    FROM numbered ORDER BY number
"""
_COUNTERS = f"""
    SELECT '{{"ph":"C","name":' || to_json(name) || ',"pid":' || rank || ',"ts":' || {_us("ts_ns")}
           || ',"args":{{"value":' || value || '}}}}'
    FROM (
        SELECT rank, ts_ns, name, value FROM counters WHERE NOT ends_with(name, '_total')
        UNION ALL
        SELECT rank, ts_ns, name || ' per second', 1e9 * growth / span_ns FROM (
            SELECT rank, ts_ns, replace(name, '_total', '') AS name,
                   value - lag(value) OVER w AS growth, ts_ns - lag(ts_ns) OVER w AS span_ns
            FROM counters WHERE ends_with(name, '_total')
            WINDOW w AS (PARTITION BY rank, name ORDER BY ts_ns)
        ) WHERE span_ns > 0
        UNION ALL
        SELECT rank, ts_ns, 'queue ' || name, length FROM queues
        UNION ALL
        SELECT rank, ts_ns, 'allocated bytes ' || device, live_bytes FROM ({LIVE})
    )
    WHERE isfinite(value) ORDER BY rank, name, ts_ns
"""


def write(run: Run, path: Path) -> None:
    run.connection.execute(f"CREATE OR REPLACE TABLE timeline_rows AS {_ROWS}")
    about = {"recorded_by": run.manifest.recorded_by, "command": run.manifest.command}
    with whole_file(path) as out:
        out.write(f'{{"displayTimeUnit":"ms","otherData":{json.dumps(about, ensure_ascii=False)},')
        out.write('"traceEvents":[')
        separator = "\n"
        for query in (_PROCESSES, _THREADS, _EVENTS, _ARROWS, _COUNTERS):
            separator = _write_lines(run, query, out, separator)
        out.write("\n]}\n")


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
