"""What two runs were given and used: command, versions, threads, loaders, queues, memory."""

import json
from typing import Any

from strobe.analyse.tables.memory import memory
from strobe.store.run import Run

# Options that say what to record, and nothing about the training.
_OF_RECORDING = ("light", "steps", "every", "whole", "record_shapes", "profile_memory",
                 "with_stack", "modules", "timeline_limit", "sample_stacks",
                 "sample_ms")  # fmt: skip

# Busy cores that the training processes do not use: other programs, and data workers.
OTHERS = "processor, cores_used by all else"

# CPU time of each rank's process, in cores.
_CORES = """
    SELECT (max(value) - min(value)) / nullif(max(ts_ns) - min(ts_ns), 0) AS cores
    FROM counters WHERE name = 'process_cpu_ns_total' GROUP BY rank
"""

_RECORDED_WITH = "recorded with "

Value = str | None
Rows = list[tuple[str, Value, Value]]


def settings(a: Run, b: Run) -> Rows:
    """Every setting in which the runs differ: its name, its value in A, its value in B."""
    one, other = _settings(a), _settings(b)
    names = list(dict.fromkeys([*one, *other]))
    if not a.manifest.options or not b.manifest.options:  # a trace does not say how it was recorded
        names = [name for name in names if not name.startswith(_RECORDED_WITH)]
    return [
        (name, one.get(name), other.get(name)) for name in names if one.get(name) != other.get(name)
    ]


def _settings(run: Run) -> dict[str, str]:
    manifest = run.manifest
    found: dict[str, str] = {}
    if manifest.recorded_by != "strobe import":
        found["command"] = " ".join(manifest.command)
    for rank in manifest.ranks[:1]:
        found |= {name: version for name, version in rank.frameworks.items() if version}
        found["devices"] = ", ".join(rank.devices)
    found["ranks"] = str(len(manifest.ranks))
    found["host"] = manifest.host
    found["python"] = manifest.python
    found |= {f"{_RECORDED_WITH}{name}": str(manifest.options[name])
              for name in _OF_RECORDING if name in manifest.options}  # fmt: skip
    found |= _counted(run, "intra_op_threads", "threads of an operator")
    found |= _counted(run, "inter_op_threads", "operators at once")
    for number, details in run.sql(
        "SELECT number, any_value(details) FROM places WHERE what = 'data loader' GROUP BY number"
    ).fetchall():
        found |= _details(f"data loader {number}", details)
    found |= _hyperparameters(run)
    return {name: value for name, value in found.items() if value}


def _hyperparameters(run: Run) -> dict[str, str]:
    """Those of the run, or of its first rank; of several values, the last."""
    rows = run.sql("""
        SELECT name, value FROM hyperparameters
        WHERE rank IS NULL OR rank = (SELECT min(rank) FROM hyperparameters)
    """).fetchall()
    return {f"hyperparameter {name}": value for name, value in rows}


def _counted(run: Run, counter: str, name: str) -> dict[str, str]:
    ((value,),) = run.sql(
        "SELECT max(value) FROM counters WHERE name = $name", {"name": counter}
    ).fetchall()
    return {} if value is None else {name: f"{value:g}"}


def _details(name: str, text: str | None) -> dict[str, str]:
    try:
        details: Any = json.loads(text or "{}")
    except ValueError:
        return {}
    if not isinstance(details, dict):
        return {}
    return {f"{name}: {key}": str(value) for key, value in details.items()}


def amounts(a: Run, b: Run) -> list[tuple[str, float | None, float | None]]:
    """Measured amounts that either run has; the name ends with the unit."""
    one, other = _amounts(a), _amounts(b)
    names = list(dict.fromkeys([*one, *other]))
    return [(name, one.get(name), other.get(name)) for name in names]


def _amounts(run: Run) -> dict[str, float]:
    found: dict[str, float] = {}
    queries = (
        ("resident memory, peak_bytes",
         "SELECT max(value) FROM counters WHERE name = 'rss_bytes'"),
        ("processor, cores_used", f"SELECT sum(cores) FROM ({_CORES})"),
        (OTHERS, f"""
            SELECT CASE WHEN count(*) > 0 THEN
                greatest(0, avg(value) / 1000 - (SELECT sum(cores) FROM ({_CORES}))) END
            FROM counters WHERE name = 'cores_busy_milli'"""),
        ("making a batch: items, mean_ns", "SELECT avg(fetch_ns) FROM batches"),
        ("making a batch: collate, mean_ns", "SELECT avg(collate_ns) FROM batches"),
        ("making a batch: sending, mean_ns", "SELECT avg(send_ns) FROM batches"),
    )  # fmt: skip
    for name, query in queries:
        ((value,),) = run.sql(query).fetchall()
        if value is not None:
            found[name] = float(value)
    for name, length, empty in run.sql("""
        SELECT name, avg(length), avg((length = 0)::INT) FROM queues GROUP BY name ORDER BY name
    """).fetchall():
        found[f"queue {name}, mean_length"] = float(length)
        found[f"queue {name}, empty_share"] = float(empty)
    peak = memory.RESULT.column_names.index("peak_bytes")
    device = memory.RESULT.column_names.index("device")
    for row in memory.run(run).fetchall():
        key = f"{row[device]} memory of operators, peak_bytes"
        found[key] = max(found.get(key, 0.0), float(row[peak] or 0))
    return found
