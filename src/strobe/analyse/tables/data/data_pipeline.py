"""Which stage of the input pipeline slows training down?

A batch passes through stages with queues between them. The time per batch is measured for each
stage of a PyTorch data loader: `reading` is the off-CPU time of fetching the items, `transform` the
CPU time, `no core` the time in which the worker was ready to run but had no core. For a pipeline
whose stages were not timed (MindData), only the queues are known.

The queues show which stage is the bottleneck. These rules apply in order:

1. the stage whose input queue is full and whose output queue is empty;
2. the leftmost stage after which all queues are nearly empty;
3. if all queues are full, training: the last stage, which is as it should be.

Stages without a queue of their own (MindData runs some inside the stage that follows) are listed
but not judged. Where branches meet, each path to training is judged separately, and the stage
furthest from training is the bottleneck.

If training hardly waits, there is no bottleneck. The stages inside one worker have no queues
between them; there, the slowest is the bottleneck.
"""

import re
from dataclasses import dataclass, field
from typing import Any

import duckdb
import numpy as np

from strobe.analyse import data_waits
from strobe.analyse.select import declared
from strobe.analyse.tables.data.data_steps import BOTTLENECK_RATIO
from strobe.analyse.tables.steps import steps
from strobe.model.schema import WORKERS, Column, Table
from strobe.store.run import Run
from strobe.units import percent

NAME = "data-pipeline"

# The limit at which MindData also calls a queue empty or full: a fifth of its capacity.
LOW_RATIO = 0.2
HIGH_RATIO = 0.8

# Prefix of the queues of a loader's pipeline.
_LOADER = re.compile(r"loader (\d+) ")

TRAINING = "training"
NO_CORE = "no core"

RESULT = Table(
    NAME,
    "Which stage of the input pipeline slows training down?",
    (
        Column("rank", "i64", "Rank of the process."),
        Column("loader", "i64", "Number of the data loader, from 1.", nullable=True),
        Column("position", "i64", "Position in the pipeline, from 1."),
        Column(
            "stage",
            "str",
            "sampling, reading, transform, no core, collate, transfer, pin, training.",
        ),
        Column("feeds", "str", "The stage that takes its output.", nullable=True),
        Column(
            "workers",
            "i64",
            "Worker processes, or threads of MindData; 0 for the training process itself.",
            True,
        ),
        Column("batches", "i64", "Batches measured.", nullable=True),
        Column("mean_ns", "i64", "Mean time per batch in this stage.", nullable=True),
        Column("share", "f64", "Share of the time of all stages except training.", nullable=True),
        Column("busy_ratio", "f64", "Share of its workers' time that it takes.", nullable=True),
        Column("queue", "str", "The queue that it writes to.", nullable=True),
        Column("queue_mean", "f64", "Mean length of that queue.", nullable=True),
        Column("capacity", "i64", "Capacity of that queue.", nullable=True),
        Column("use_ratio", "f64", "queue_mean divided by capacity.", nullable=True),
        Column("empty_ratio", "f64", "Share of measurements that found it empty.", nullable=True),
        Column("full_ratio", "f64", "Share of measurements that found it full.", nullable=True),
        Column("is_at_fault", "bool", "Whether it is the bottleneck."),
        Column("reason", "str", "Why it is the bottleneck, or why there is none.", nullable=True),
    ),
)

_QUEUES = """
    SELECT rank, name, avg(length) AS mean, max(capacity) AS capacity,
           avg(length) / nullif(max(capacity), 0) AS use,
           avg((length <= 0)::INT) AS empty, avg((length >= capacity)::INT) AS full
    FROM queues GROUP BY rank, name
"""

_LOADERS = """
    SELECT rank, loader, count(DISTINCT worker) FILTER (worker >= 0) AS workers,
           count(*) AS batches, avg(m.fetch_ns - transform_ns - queued_ns) AS reading,
           avg(transform_ns) AS transform, avg(queued_ns) AS "no core",
           avg(collate_ns) AS collate, avg(send_ns) AS transfer,
           max(ts_ns + fetch_ns + collate_ns) - min(ts_ns) AS span
    FROM (
        SELECT *, least(fetch_cpu_ns, fetch_ns) AS transform_ns,
               least(coalesce(fetch_queued_ns, 0), fetch_ns - transform_ns) AS queued_ns
        FROM batches
    ) m GROUP BY rank, loader
"""

# How long training waited for each loader in the counted steps; 0 is for loaders without a number.
_WAITED = f"""
    SELECT rank, loader, sum(dur_ns) AS waited, count(*) FILTER (NOT is_start) AS waits
    FROM data_waits SEMI JOIN ({steps.COUNTED}) USING (rank, step) GROUP BY rank, loader
"""
_TRAINED = f"""
    SELECT rank, sum(dur_ns - recorder_ns) AS total, sum(data_ns) AS waited
    FROM ({steps.COUNTED}) GROUP BY rank
"""


@dataclass
class Queue:
    name: str
    mean: float
    capacity: int | None
    use: float | None
    empty: float
    full: float | None


@dataclass
class Stage:
    """A stage, or several consecutive ones in one process; `output` is the queue that they fill."""

    parts: dict[str, float | None]  # mean ns per batch, by name
    output: Queue | None = None
    workers: int | None = None
    feeds: str | None = None  # the stage that takes from it; null: the next one
    busy: dict[str, float] = field(default_factory=dict)


def at_fault(stages: list[Stage]) -> tuple[int, str]:
    """The bottleneck of a pipeline, judged by its queues, and the reason; -1 for none."""
    uses = [s.output.use if s.output else None for s in stages[:-1]]
    known = [use for use in uses if use is not None]
    if not known:
        return -1, "no queue is known"
    for place in range(1, len(uses)):
        before, after = uses[place - 1] or 0.0, uses[place]
        if before >= HIGH_RATIO and after is not None and after <= LOW_RATIO:
            return place, f"its input queue is {before:.0%} full, its output queue {after:.0%}"
    if uses[-1] is not None and uses[-1] <= LOW_RATIO:
        place = len(uses) - 1
        while place and (use := uses[place - 1]) is not None and use <= LOW_RATIO:
            place -= 1
        return place, f"all queues behind it are nearly empty: {uses[-1]:.0%} full"
    if uses[-1] is not None and uses[-1] >= HIGH_RATIO:
        return -1, f"the queue before training is {uses[-1]:.0%} full: training is the slowest"
    return -1, "the queue before training is neither empty nor full"


def run(run: Run, **options: Any) -> duckdb.DuckDBPyRelation:
    steps.prepare(run)
    data_waits.prepare(run)
    if not run.has("data_pipeline_rows"):
        rows = [*_loader_pipelines(run), *_queue_pipelines(run)]
        columns = {c.name: _column(c, [row.get(c.name) for row in rows]) for c in RESULT.columns}
        run.keep("data_pipeline_rows", columns)
    query = "FROM data_pipeline_rows"
    return declared(run.connection, RESULT, query, "rank, loader, position", **options)


def _loader_pipelines(run: Run) -> list[dict[str, Any]]:
    """The pipelines of data loaders whose batches were timed."""
    queues = _queues(run)
    waited = {(r["rank"], r["loader"]): r for r in _rows(run, _WAITED)}
    trained = {r["rank"]: r for r in _rows(run, _TRAINED)}
    result = []
    for row in _rows(run, _LOADERS):
        rank, loader = row["rank"], row["loader"]
        mine = queues.get(rank, {})
        waits = waited.get((rank, loader), {"waited": 0, "waits": 0})
        total = trained.get(rank, {"total": 0, "waited": 0})
        working = (total["total"] - total["waited"]) / waits["waits"] if waits["waits"] else None
        stages = [_worker_stage(row, mine.get(f"loader {loader} ready batches"))]
        if (orders := _orders(loader, mine)) is not None:
            stages.insert(0, Stage({"sampling": None}, orders))
        if (pinned := mine.get(f"loader {loader} pinned")) is not None:
            stages.append(Stage({"pin": None}, pinned))
        stages.append(Stage({TRAINING: working}))
        # With one loader this equals the share of `data` in step-statistics exactly.
        of_all = waits["waited"] / max(
            1, sum(w["waited"] for k, w in waited.items() if k[0] == rank)
        )
        share = of_all * total["waited"] / total["total"] if total["total"] else 0.0
        result += _pipeline_rows(rank, loader, row["batches"], stages, share)
    return result


def _orders(loader: int, queues: dict[str, Queue]) -> Queue | None:
    """The queues in which training requests batches from its workers, as one."""
    of_workers = [
        queue
        for name, queue in queues.items()
        if name.startswith(f"loader {loader} worker ") and name.endswith(" orders")
    ]
    if not of_workers:
        return None
    mean, count = sum(queue.mean for queue in of_workers), len(of_workers)
    capacity = sum(queue.capacity or 0 for queue in of_workers)
    return Queue(
        f"loader {loader} orders", mean, capacity or None, mean / capacity if capacity else None,
        sum(queue.empty for queue in of_workers) / count,
        sum(queue.full or 0.0 for queue in of_workers) / count,
    )  # fmt: skip


def _worker_stage(row: dict[str, Any], output: Queue | None) -> Stage:
    names = ("reading", "transform", "no core", "collate", "transfer")
    parts = {name: row[name] for name in names}
    workers = row["workers"]
    time_ns = row["span"] * max(1, workers)
    busy = {
        name: min(1.0, value * row["batches"] / time_ns)
        for name, value in parts.items()
        if value is not None and time_ns
    }
    return Stage(parts, output, workers, busy=busy)


def _pipeline_rows(
    rank: int, loader: int | None, batches: int | None, stages: list[Stage], share: float | None,
    judged: tuple[int, str] | None = None,
) -> list[dict[str, Any]]:  # fmt: skip
    place, reason = judged or _judged(stages, share)
    times = [time for stage in stages[:-1] for time in stage.parts.values() if time is not None]
    rows: list[dict[str, Any]] = []
    for number, stage in enumerate(stages):
        # Being without a core is no stage's own fault.
        parts = [name for name in stage.parts if name != NO_CORE]
        slowest = max(parts, key=lambda name: stage.parts[name] or 0.0)
        for index, (name, mean) in enumerate(stage.parts.items()):
            is_last = index == len(stage.parts) - 1
            fault = number == place and name == slowest
            rows.append({
                "rank": rank, "loader": loader, "position": len(rows) + 1, "stage": name,
                "feeds": stage.feeds if is_last else None, "workers": stage.workers,
                "batches": batches,
                "mean_ns": None if mean is None else round(mean),
                "share": None if mean is None or name == TRAINING or not sum(times)
                else mean / sum(times),
                "busy_ratio": stage.busy.get(name),
                **(_queue_columns(stage.output) if is_last and stage.output else {}),
                "is_at_fault": fault,
                "reason": reason if fault or (place < 0 and name == TRAINING) else None,
            })  # fmt: skip
    for row, following in zip(rows, rows[1:], strict=False):
        row["feeds"] = row["feeds"] or following["stage"]
    return rows


def _judged(stages: list[Stage], share: float | None) -> tuple[int, str]:
    if share is not None and share < BOTTLENECK_RATIO:
        return -1, f"training waits for data {percent(share)} of its time"
    place, reason = at_fault(stages)
    if place < 0 and share is not None and _are_timed_by_queues(stages):
        return _bottleneck_of_timed_queues(stages)
    if place < 0 and share is not None and all(stage.output is None for stage in stages):
        return 0, f"training builds its batches itself, which takes {percent(share)} of its time"
    return place, reason


def _are_timed_by_queues(stages: list[Stage]) -> bool:
    outputs = [stage.output for stage in stages[:-1]]
    are_timed = any(time is not None for stage in stages for time in stage.parts.values())
    return bool(outputs) and not are_timed and None not in outputs


def _bottleneck_of_timed_queues(stages: list[Stage]) -> tuple[int, str]:
    """The bottleneck if training waits although the last queue has batches.

    MindData's queue counts batches that are still being built. It is the leftmost stage after which
    all queues but that one are nearly empty.
    """
    uses = [stage.output.use or 0.0 for stage in stages[:-1] if stage.output is not None]
    place = len(uses) - 1
    while place and uses[place - 1] <= LOW_RATIO:
        place -= 1
    if place < len(uses) - 1:
        return place, f"training waits, and its queue is {uses[place]:.0%} full"
    if place and uses[place - 1] >= HIGH_RATIO:
        return place, f"training waits, and its input queue is {uses[place - 1]:.0%} full"
    return -1, "the queues before training are neither empty nor full"


def _queue_columns(queue: Queue) -> dict[str, Any]:
    return {
        "queue": queue.name, "queue_mean": queue.mean, "capacity": queue.capacity,
        "use_ratio": queue.use, "empty_ratio": queue.empty, "full_ratio": queue.full,
    }  # fmt: skip


def _queue_pipelines(run: Run) -> list[dict[str, Any]]:
    """Pipelines of which only the queues are known, named `FROM to TO` after their loader."""
    result = []
    workers = _workers(run)
    for rank, queues in _queues(run).items():
        links: dict[int | None, dict[str, str]] = {}
        for name in dict.fromkeys([*queues, *workers.get(rank, {})]):
            source, joint, taker = name.partition(" to ")
            if joint:
                links.setdefault(_loader_of(name), {})[source] = taker
        if "device queue" in queues:
            links.setdefault(None, {})
        for loader, target in links.items():
            last = [Stage({TRAINING: None})]
            if loader is None and "device queue" in queues:
                last.insert(0, Stage({"transfer": None}, queues["device queue"]))
            stages = {
                name: Stage(
                    {_LOADER.sub("", name): None}, queues.get(f"{name} to {target[name]}"),
                    workers.get(rank, {}).get(f"{name} to {target[name]}"),
                    _LOADER.sub("", target[name]) if target[name] in target else None,
                )
                for name in _in_order(target)
            }  # fmt: skip
            share = _waiting_share(run, rank)
            judged = _judged_by_ways(stages, target, last, share)
            result += _pipeline_rows(rank, loader, None, [*stages.values(), *last], share, judged)
    return result


def _workers(run: Run) -> dict[int, dict[str, int | None]]:
    """The number of workers of each MindData operation, by rank and the name of its queue."""
    found: dict[int, dict[str, int | None]] = {}
    for row in _rows(run, f"SELECT * FROM counters WHERE contains(name, '{WORKERS}')"):
        name = row["name"].replace(WORKERS, "", 1)
        found.setdefault(row["rank"], {})[name] = int(row["value"]) or None
    return found


def _loader_of(name: str) -> int | None:
    found = _LOADER.match(name)
    return int(found.group(1)) if found else None


def _way(name: str, target: dict[str, str]) -> list[str]:
    """The operations from this one to the one that feeds training."""
    found = [name]
    while target[found[-1]] in target and target[found[-1]] not in found:
        found.append(target[found[-1]])
    return found


def _in_order(target: dict[str, str]) -> list[str]:
    """Each operation before the one that takes from it, the furthest from training first."""
    return sorted(target, key=lambda name: (-len(_way(name, target)), name))


def _judged_by_ways(
    stages: dict[str, Stage], target: dict[str, str], last: list[Stage], share: float | None
) -> tuple[int, str]:
    """Of the bottlenecks on each path to training, the one furthest from it: where paths meet, the
    one whose queue is empty stalls the others.
    """
    in_order = [*stages.values(), *last]
    first = [name for name in stages if name not in target.values()]
    found = []
    for name in first:
        way = [stages[name] for name in _way(name, target) if stages[name].output is not None]
        place, reason = _judged([*way, *last], share)
        rest = len(in_order) - in_order.index([*way, *last][place]) if place >= 0 else -1
        found.append((rest, reason))
    if not found:
        return _judged(last, share)
    rest, reason = max(found, key=lambda one: one[0])
    return (len(in_order) - rest if rest >= 0 else -1), reason


def _waiting_share(run: Run, rank: int) -> float | None:
    found = next((row for row in _rows(run, _TRAINED) if row["rank"] == rank), None)
    return found["waited"] / found["total"] if found and found["waited"] else None


def _queues(run: Run) -> dict[int, dict[str, Queue]]:
    found: dict[int, dict[str, Queue]] = {}
    for row in _rows(run, _QUEUES):
        queue = Queue(*(row[n] for n in ("name", "mean", "capacity", "use", "empty", "full")))
        found.setdefault(row["rank"], {})[queue.name] = queue
    return found


def _rows(run: Run, query: str) -> list[dict[str, Any]]:
    relation = run.sql(query)
    return [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]


def _column(column: Column, values: list[Any]) -> Any:
    if column.type == "str":
        return np.array(values, dtype=object)
    filled = np.array([0 if value is None else value for value in values])
    kind = {"i64": np.int64, "f64": np.float64, "bool": np.bool_}[column.type]
    return np.ma.masked_array(filled.astype(kind), mask=[value is None for value in values])
