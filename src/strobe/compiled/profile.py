"""`strobe.profile_compiled`: what each operator of a compiled function costs, without a training.

The function is called, first to be compiled and then under its framework's own profiler; what that
recorded is read as any trace is. The answer has the form that MegEngine gives profiles of its
static graphs (`get_profile()`), which `strobe operators` reads.
"""

import importlib
import json
import os
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from strobe.errors import MissingData, UsageError

# Packages, and the module that knows their compiled functions: `is_compiled` and `record`.
_KINDS = {
    "jax": "strobe.compiled.jax", "mindspore": "strobe.compiled.mindspore",
    "torch": "strobe.compiled.torch",
}  # fmt: skip

# How each call under the profiler is named in its trace, with its number.
RUN = "strobe run of a compiled function "

# Of an operator that a loop inside the graph runs more often than this, the calls are put together.
_MOST_CALLS_TOLD = 16
_NS_PER_S = 1e9

_SQL = f"""
    WITH runs AS (
        SELECT row_number() OVER (ORDER BY ts_ns) - 1 AS run, ts_ns, ts_ns + dur_ns AS end_ns
        FROM events WHERE kind = 'annotation' AND starts_with(name, '{RUN}')
    )
    SELECT r.run, r.ts_ns AS run_ns, r.end_ns - r.ts_ns AS run_dur_ns, e.ts_ns, e.dur_ns,
           t.name AS thread, c.*
    FROM operator_calls c JOIN events e ON e.id = c.event_id JOIN tracks t ON t.id = e.track_id
    ASOF JOIN runs r ON r.ts_ns <= e.ts_ns
    WHERE e.ts_ns < r.end_ns ORDER BY r.run, e.ts_ns, e.id
"""


class Operator(NamedTuple):
    """One operator of the graph: a row for each run it was seen in."""

    name: str
    type: str
    rows: list[dict[str, Any]]


def profile_compiled(
    function: Any, *args: Any, repeat: int = 10,
    output_path: str | os.PathLike[str] | None = None, **kwargs: Any,
) -> dict[str, Any]:  # fmt: skip
    """Call a function of jax.jit or torch.compile `repeat` times with these arguments, and tell for
    each operator of its graph the mean time, FLOPs, bytes and shapes.

    The answer is also saved as JSON: to `output_path`, else to `NAME.compiled.json`.
    """
    if not isinstance(repeat, int) or repeat < 1:
        raise UsageError.of("errors/python.bad-repeat", value=repr(repeat))
    home = _home_of(function)
    name = str(getattr(function, "__name__", None) or type(function).__name__)
    with tempfile.TemporaryDirectory(prefix="strobe-compiled-") as folder:
        trace = home.record(function, args, kwargs, repeat, Path(folder))
        rows = _rows(trace)
    if not rows:
        raise MissingData.of("errors/python.no-operators", name=name)
    answer = _document(name, home.FRAMEWORK, rows)
    plain = re.sub(r"\W+", "_", name)
    target = Path(output_path) if output_path is not None else Path(f"{plain}.compiled.json")
    _write(target, answer)
    return answer


def _home_of(function: Any) -> Any:
    for package, path in _KINDS.items():
        if package in sys.modules:
            home = importlib.import_module(path)
            if home.is_compiled(function):
                return home
    raise UsageError.of("errors/python.not-compiled", value=repr(function)[:150])


def _rows(trace: Path) -> list[dict[str, Any]]:
    from strobe.analyse.tables.operators import operator_calls
    from strobe.ingest.importing.importer import import_traces
    from strobe.reading import open_run

    folder = trace.parent / "run"
    import_traces([trace], folder)
    with open_run(folder) as opened:
        calls = operator_calls.run(opened.run, all_steps=True)
        found = calls.query("operator_calls", _SQL)
        assert found is not None  # as it is for statements without rows
        names = list(found.columns)
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def _document(name: str, framework: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    operators = list(_operators(rows))
    runs = {row["run"]: row["run_dur_ns"] for row in rows}
    sections: dict[str, dict[str, Any]] = {"host": {}, "device": {}, "opr_footprint": {}}
    graph = {}
    for number, operator in enumerate(operators):
        key = str(number)
        graph[key] = {"node_type": "operator", "id": key, "name": operator.name,
                      "type": operator.type, "input": [], "output": []}  # fmt: skip
        sections["host"][key] = _host_times(operator)
        if any(row["device_ns"] for row in operator.rows):
            sections["device"][key] = _device_times(operator)
        sections["opr_footprint"][key] = _footprint(operator)
    return {
        "graph_exec": {"operator": graph, "var": {}},
        "profiler": sections,
        "strobe": {
            "function": name, "framework": framework, "repeat": len(runs),
            "run_ns": [runs[number] for number in sorted(runs)],
        },
    }  # fmt: skip


def _operators(rows: list[dict[str, Any]]) -> Iterator[Operator]:
    """The same call of every run is one operator, in the order of the first run."""
    found: dict[tuple[str, str, int], list[dict[str, Any]]] = defaultdict(list)
    often: dict[tuple[int, str, str], int] = defaultdict(int)
    for row in rows:
        often[row["run"], row["name"], row["type"]] += 1
    seen: dict[tuple[int, str, str], int] = defaultdict(int)
    for row in rows:
        call = (row["run"], row["name"], row["type"])
        place = seen[call] if often[call] <= _MOST_CALLS_TOLD else 0
        seen[call] += 1
        found[row["name"], row["type"], place].append(row)
    for (name, kind, _), of_operator in found.items():
        scope = of_operator[0]["scope"]
        path = f"{scope}.{name}" if scope and scope not in name else name
        yield Operator(path, kind, of_operator)


def _mean(operator: Operator, column: str) -> float:
    """In one run, all calls of it that were put together counted."""
    runs = {row["run"] for row in operator.rows}
    return sum(row[column] or 0 for row in operator.rows) / len(runs)


def _start_ns(operator: Operator) -> float:
    """The mean over all runs, as lengths are: what follows another in each run does so here."""
    firsts: dict[Any, int] = {}
    for row in operator.rows:
        began_ns = row["ts_ns"] - row["run_ns"]
        firsts[row["run"]] = min(firsts.get(row["run"], began_ns), began_ns)
    return sum(firsts.values()) / len(firsts)


def _host_times(operator: Operator) -> dict[str, Any]:
    start = _start_ns(operator) / _NS_PER_S
    length, wait = (_mean(operator, name) / _NS_PER_S for name in ("host_ns", "host_wait_ns"))
    thread = str(operator.rows[0]["thread"])
    return {thread: {"start": start, "kern": start + min(wait, length), "end": start + length}}


def _device_times(operator: Operator) -> dict[str, Any]:
    start = _start_ns(operator) / _NS_PER_S
    length, wait = (_mean(operator, name) / _NS_PER_S for name in ("device_ns", "device_wait_ns"))
    return {"gpu0:0": {"start": start, "kern": start + wait, "end": start + length}}


def _footprint(operator: Operator) -> dict[str, Any]:
    row = operator.rows[0]
    found: dict[str, Any] = {}
    for name, column in (("in_shapes", "input_shapes"), ("out_shapes", "output_shapes"),
                         ("in_dtypes", "input_dtypes")):  # fmt: skip
        if row[column]:
            found[name] = json.loads(row[column])
    for name, column in (("computation", "flops"), ("memory", "bytes")):
        if row[column] is not None:
            found[name] = round(_mean(operator, column))
    return found


def _write(target: Path, answer: dict[str, Any]) -> None:
    temporary = target.with_name(f".{target.name}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(json.dumps(answer, indent=1), encoding="utf-8")
        temporary.replace(target)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise UsageError.of(
            "errors/python.cannot-write", path=target, reason=error.strerror or error
        ) from None
