"""Which operation of a pipeline holds training up, where only the queues between them are known."""

import math
import re
from typing import Any, NamedTuple

from strobe.advise.data.loader import Loader
from strobe.advise.evidence.stack_lines import WAITING_CPU_RATIO
from strobe.advise.training import Lines, Training
from strobe.analyse.tables.data import data_pipeline

# What an operation does to a batch; a source of data reads.
_STAGES = {
    "Map": "transform", "Filter": "transform", "FlatMap": "transform", "Batch": "collate",
    "PaddedBatch": "collate", "BucketBatchByLength": "collate",
}  # fmt: skip
_LABEL = re.compile(r"(\w+?)(?:Op)?_(\d+)\Z")

# As many workers as this are advised on any machine: one of two waits for the disk.
_FEW_WORKERS = 2


# How the counter of what an operation of a loader's pipeline computes is called: its number there.
_USED = re.compile(r"loader (\d+) operation (\d+) user_utilization")


class Busiest(NamedTuple):
    operation: str  # with the functions that it calls
    where: str | None


class Slowest(NamedTuple):
    stage: str
    why: str
    fixes: tuple[str, ...]
    where: str | None
    recovered: float = 1.0  # part of the waiting that ends with it


def busiest(training: Training, loader: Loader) -> Busiest | None:
    """The operation that computes most; None if that was not recorded."""
    used = training.rows(
        "SELECT name, avg(value) AS percent FROM counters WHERE rank = $rank GROUP BY name"
        " HAVING contains(name, ' operation ') ORDER BY percent DESC, name",
        {"rank": loader.rank},
    )
    found = (_USED.match(row["name"]) for row in used if row["percent"])
    number = next((m.group(2) for m in found if m and int(m.group(1)) == loader.number), None)
    labels = [row["stage"] for row in _rows(training, loader)]
    label = next((each for each in labels if each.rpartition("_")[2] == number), None)
    match = _LABEL.match(label) if label else None
    if label is None or match is None:
        return None
    settings = _settings(loader, labels, label)
    return Busiest(f"{match.group(1)}{_called(settings)}", _line(settings))


def slowest(training: Training, loader: Loader) -> Slowest | None:
    """The operation at fault; None if the queues do not tell, or were not recorded."""
    rows = _rows(training, loader)
    at_fault = next((row for row in rows if row["is_at_fault"]), None)
    label = _LABEL.match(at_fault["stage"]) if at_fault is not None else None
    if at_fault is None or label is None:
        return None
    operation = label.group(1)
    settings = _settings(loader, [row["stage"] for row in rows], at_fault["stage"])
    line, called = _line(settings), _called(settings)
    at = f" at {line}" if line else ""
    stage = _STAGES.get(operation, "reading")
    computes = stage != "reading" and _computes(loader)
    now = settings.get("workers") or 1
    workers = _workers(loader, now)
    return Slowest(
        stage=stage,
        why=f"The operation {operation}{called}{at} is too slow: {at_fault['reason']}",
        fixes=fixes_of(operation, settings, at, workers, computes),
        where=line,
        recovered=loader.recovered_by(loader.step_ns, workers / now, computes),
    )


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


def _called(settings: dict[str, Any]) -> str:
    functions = settings.get("functions") or []
    return f" ({', '.join(functions)})" if functions else ""


def _computes(loader: Loader) -> bool:
    """Whether the operation that is never done keeps a core busy: it may sleep."""
    return loader.beside_cores is None or loader.beside_cores >= WAITING_CPU_RATIO


def _settings(loader: Loader, labels: list[str], label: str) -> dict[str, Any]:
    """What the user chose for an operation. Both tell them from training to the source; there may
    be operations between them that MindData put in itself."""
    found = [_LABEL.match(each) for each in labels]
    ids = {match.group(0): (match.group(1), int(match.group(2))) for match in found if match}
    operation, own = ids[label]
    place = sorted(number for name, number in ids.values() if name == operation).index(own)
    chosen = [s for s in loader.settings.get("stages") or [] if s.get("type") == operation]
    return chosen[place] if place < len(chosen) else {}


def fixes_of(
    operation: str, settings: dict[str, Any], at: str, workers: int, computes: bool
) -> tuple[str, ...]:
    is_more = workers > (settings.get("workers") or 1)
    stage = _STAGES.get(operation, "reading")
    if stage == "transform":
        # Threads take turns with Python code; processes do not.
        processes = bool(settings.get("functions")) and computes and not settings.get("processes")
        more = ", python_multiprocessing=True" if processes else ""
        faster = (
            "Make it faster: operations of mindspore.dataset.vision and .transforms run without "
            "Python, and results that are the same in every epoch can be cached"
        )
        first = f"Set map(..., num_parallel_workers={workers}{more}){at}"
    elif stage == "collate":
        faster = "Do less per batch: per_batch_map, padding; or set prefetch_size"
        first = f"Set batch(..., num_parallel_workers={workers}){at}"
    else:
        faster = (
            "Read less often: keep what is read again in memory, and store many small files as few "
            "large ones (mindspore.mindrecord, MindDataset)"
        )
        first = f"Set {operation}Dataset(..., num_parallel_workers={workers}){at}"
    return (first, faster) if is_more else (faster,)
