"""Which operation of a pipeline stalls training, where only the queues between them are known."""

import math
import re
from typing import Any, NamedTuple

from strobe.advise.data.loader import Loader
from strobe.advise.evidence.stack_lines import WAITING_CPU_RATIO
from strobe.advise.fixes import at_line
from strobe.advise.training import Lines, Training
from strobe.analyse.tables.data import data_pipeline
from strobe.analyse.tables.data.data_pipeline import HIGH_RATIO, LOW_RATIO
from strobe.frameworks import FRAMEWORKS
from strobe.messages import Message, message
from strobe.units import percent

# What an operation does to a batch; a source of data reads.
_STAGES = {name: stage for one in FRAMEWORKS for name, stage in one.pipeline_stages.items()}
_LABEL = re.compile(r"(\w+?)(?:Op)?_(\d+)\Z")

# The fix sets up to this many workers on any machine: even on one core, one of two can wait for
# the disk.
_FEW_WORKERS = 2

# The counters of what operations compute are named by the loader and the operation's number in it.
_UTILIZATION = re.compile(r"loader (\d+) operation (\d+) user_utilization")


class Busiest(NamedTuple):
    operation: str  # with the functions that it calls
    where: str | None


class Slowest(NamedTuple):
    stage: str
    why: Message
    fixes: tuple[Message, ...]
    where: str | None
    recovered: float = 1.0  # part of the waiting that the first fix removes


def busiest(training: Training, loader: Loader) -> Busiest | None:
    """The operation that computes most; None if that was not recorded."""
    used = training.rows(
        "SELECT name, avg(value) AS percent FROM counters WHERE rank = $rank GROUP BY name"
        " HAVING contains(name, ' operation ') ORDER BY percent DESC, name",
        {"rank": loader.rank},
    )
    found = (_UTILIZATION.match(row["name"]) for row in used if row["percent"])
    number = next((m.group(2) for m in found if m and int(m.group(1)) == loader.number), None)
    labels = [row["stage"] for row in _rows(training, loader)]
    label = next((each for each in labels if each.rpartition("_")[2] == number), None)
    operation = operation_of(label) if label else None
    if label is None or operation is None:
        return None
    settings = _settings(loader, labels, label)
    return Busiest(_with_functions(operation, settings), _line(settings))


def slowest(training: Training, loader: Loader) -> Slowest | None:
    """The operation at fault; None if the queues do not show it, or were not recorded."""
    rows = _rows(training, loader)
    at_fault = next((row for row in rows if row["is_at_fault"]), None)
    operation = operation_of(at_fault["stage"]) if at_fault is not None else None
    if at_fault is None or operation is None:
        return None
    settings = _settings(loader, [row["stage"] for row in rows], at_fault["stage"])
    line = _line(settings)
    stage = _STAGES.get(operation, "reading")
    computes = stage != "reading" and _computes(loader)
    now = settings.get("workers") or 1
    workers = _workers(loader, now)
    return Slowest(
        stage=stage,
        why=message(
            "data-starvation.slow-operation",
            operation=_with_functions(operation, settings),
            at=at_line(line),
            queues=queue_levels(rows, at_fault),
        ),
        fixes=fixes_of(operation, settings, line, workers, computes),
        where=line,
        recovered=loader.recovered_by(loader.step_ns, workers / now, computes),
    )


def operation_of(label: str) -> str | None:
    """Map of MapOp_1; None for a stage that is not an operation of a pipeline."""
    match = _LABEL.match(label)
    return match.group(1) if match else None


def queue_levels(rows: list[dict[str, Any]], at_fault: dict[str, Any]) -> Message:
    """How full the queues around the operation at fault are. `rows` are the stages of its pipeline,
    in the table `data-pipeline`, which judges them in this order."""
    before = max(_levels_before(rows, at_fault), default=0.0)
    after = _levels_after(rows, at_fault) or [0.0]
    if before >= HIGH_RATIO and after[0] <= LOW_RATIO:
        return message("data-starvation.input-full-output-empty",
                       input=percent(before), output=percent(after[0]))  # fmt: skip
    if before >= HIGH_RATIO:
        return message("data-starvation.input-full", input=percent(before))
    if after[-1] <= LOW_RATIO:
        return message("data-starvation.all-empty", last=percent(after[-1]))
    return message("data-starvation.output-empty", output=percent(after[0]))


def _levels_before(rows: list[dict[str, Any]], stage: dict[str, Any]) -> list[float]:
    """How full the queues are that a stage takes from: several where branches meet."""
    found = []
    for row in rows:
        if row["feeds"] != stage["stage"] or row["position"] >= stage["position"]:
            continue
        if row["use_ratio"] is None:
            found += _levels_before(rows, row)
        else:
            found.append(float(row["use_ratio"]))
    return found


def _levels_after(rows: list[dict[str, Any]], row: dict[str, Any]) -> list[float]:
    """How full the queues from a stage to training are, its own first."""
    by_stage = {each["stage"]: each for each in rows}
    found, following = [], row
    for _ in rows:
        if following["use_ratio"] is not None:
            found.append(float(following["use_ratio"]))
        if following["feeds"] not in by_stage:
            break
        following = by_stage[following["feeds"]]
    return found


def _workers(loader: Loader, now: int) -> int:
    """As many as training needs to keep going, but no more than there are cores."""
    trained_ns = max(1.0, loader.trained_ns / max(1, loader.steps))
    needed = math.ceil(now * loader.step_ns / trained_ns)
    return max(now, min(needed, max(_FEW_WORKERS, int(loader.cores))))


def _rows(training: Training, loader: Loader) -> list[dict[str, Any]]:
    """The stages of its pipeline, from the source to training."""
    relation = data_pipeline.run(training.run)
    every = (dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall())
    return [r for r in every if r["rank"] == loader.rank and r["loader"] == loader.number]


def _line(settings: dict[str, Any]) -> str | None:
    place = settings.get("place")
    return str(Lines(*place)) if place else None


def _with_functions(operation: str, settings: dict[str, Any]) -> str:
    """Map (decode, resize): an operation with the functions that it calls."""
    functions = settings.get("functions") or []
    return f"{operation} ({', '.join(functions)})" if functions else operation


def _computes(loader: Loader) -> bool:
    """Whether the slow operation keeps a core busy: it may sleep instead."""
    return loader.background_cores is None or loader.background_cores >= WAITING_CPU_RATIO


def _settings(loader: Loader, labels: list[str], label: str) -> dict[str, Any]:
    """What the user set for an operation. Settings and labels have the same order, from training to
    the source, but MindData may add operations of its own to the labels."""
    found = [_LABEL.match(each) for each in labels]
    ids = {match.group(0): (match.group(1), int(match.group(2))) for match in found if match}
    operation, own = ids[label]
    place = sorted(number for name, number in ids.values() if name == operation).index(own)
    chosen = [s for s in loader.settings.get("stages") or [] if s.get("type") == operation]
    return chosen[place] if place < len(chosen) else {}


def fixes_of(
    operation: str, settings: dict[str, Any], line: str | None, workers: int, computes: bool
) -> tuple[Message, ...]:
    """More workers if there are not as many yet, and how to make the operation itself faster."""
    at = at_line(line)
    stage = _STAGES.get(operation, "reading")
    if stage == "transform":
        # Threads take turns with Python code; processes do not.
        processes = bool(settings.get("functions")) and computes and not settings.get("processes")
        id = "set-map-processes" if processes else "set-map-workers"
        more = message(f"data-starvation.{id}", workers=workers, at=at)
        faster = message("data-starvation.faster-map", at=at)
    elif stage == "collate":
        more = message("data-starvation.set-batch-workers", workers=workers, at=at)
        faster = message("data-starvation.faster-batch", at=at)
    else:
        more = message(
            "data-starvation.set-source-workers", operation=operation, workers=workers, at=at
        )
        faster = message("data-starvation.faster-source", at=at)
    return (more, faster) if workers > (settings.get("workers") or 1) else (faster,)
