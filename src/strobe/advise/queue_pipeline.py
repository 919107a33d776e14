"""Which operation of a pipeline holds training up, where only the queues between them are known."""

import re
from typing import Any, NamedTuple

from strobe.advise.loader import Loader
from strobe.advise.seen import WAITING_CPU_RATIO
from strobe.advise.training import Lines, Training
from strobe.analyse import data_pipeline

# What an operation does to a batch; a source of data reads.
_STAGES = {
    "Map": "transform", "Filter": "transform", "FlatMap": "transform", "Batch": "collate",
    "PaddedBatch": "collate", "BucketBatchByLength": "collate",
}  # fmt: skip
_LABEL = re.compile(r"(\w+?)(?:Op)?_(\d+)\Z")

# Workers that an operation gets next, as a multiple of those it has.
_MORE_WORKERS = 2


class Slowest(NamedTuple):
    stage: str
    why: str
    fixes: tuple[str, ...]
    where: str | None
    recovered: float = 1.0  # part of the waiting that ends with it


def slowest(training: Training, loader: Loader) -> Slowest | None:
    """The operation at fault; None if the queues do not tell, or were not recorded."""
    relation = data_pipeline.run(training.run)
    every = (dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall())
    rows = [r for r in every if r["rank"] == loader.rank and r["loader"] == loader.number]
    at_fault = next((row for row in rows if row["is_at_fault"]), None)
    label = _LABEL.match(at_fault["stage"]) if at_fault is not None else None
    if at_fault is None or label is None:
        return None
    operation = label.group(1)
    settings = _settings(loader, [row["stage"] for row in rows], at_fault["stage"])
    place = settings.get("place")
    line = str(Lines(*place)) if place else None
    functions = settings.get("functions") or []
    called = f" ({', '.join(functions)})" if functions else ""
    at = f" at {line}" if line else ""
    stage = _STAGES.get(operation, "reading")
    return Slowest(
        stage=stage,
        why=f"the operation {operation}{called}{at} is too slow: {at_fault['reason']}",
        fixes=_fixes(operation, settings, at),
        where=line,
        recovered=loader.recovered_if(computes=stage != "reading" and _computes(loader)),
    )


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


def _fixes(operation: str, settings: dict[str, Any], at: str) -> tuple[str, ...]:
    workers = _MORE_WORKERS * (settings.get("workers") or 1)
    if _STAGES.get(operation) == "transform":
        more = f"map(..., num_parallel_workers={workers}){at}: several items at a time"
        if settings.get("functions") and not settings.get("processes"):
            more += "; with python_multiprocessing=True if it computes in Python"
        quicker = "or make it quicker: operations of mindspore.dataset.vision and .transforms run "
        return more, quicker + "without Python, and what is the same in every epoch can be cached"
    if _STAGES.get(operation) == "collate":
        return (
            f"batch(..., num_parallel_workers={workers}){at}: several batches at a time",
            "or do less for each batch: per_batch_map, padding",
        )
    return (
        f"{operation}Dataset(..., num_parallel_workers={workers}){at}: several items at a time",
        "or read less often: keep in memory what is read again, store many small files as few "
        "large ones (mindspore.mindrecord)",
    )
