"""What data loaders did: the batches they built, in workers or in the training process itself.

A worker writes a journal of its own below `RUN/workers/`. The training process recorded the process
ids of its workers, loader by loader. Clocks are those of the machine, so its anchors serve all.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from strobe.ingest.recording import journal_reader as journals
from strobe.ingest.recording import stack_samples
from strobe.ingest.recording.journal_reader import Journal
from strobe.ingest.recording.stack_samples import Looks
from strobe.ingest.trace.codes import Array
from strobe.ingest.trace.problems import Problems
from strobe.model.journal import BATCH_LOADER_SHIFT, SHORT_WAIT_NS, WORKERS_DIR, Figure, Mark
from strobe.model.schema import BATCHES

# The worker number of a batch that the training process built itself.
TRAINING_PROCESS = -1

_COLUMN_OF = {
    Figure.NUMBER: "batch", Figure.ITEMS: "items", Figure.BYTES: "bytes",
    Figure.IDLE_NS: "idle_ns", Figure.FETCH_NS: "fetch_ns", Figure.FETCH_CPU_NS: "fetch_cpu_ns",
    Figure.FETCH_QUEUED_NS: "fetch_queued_ns", Figure.COLLATE_NS: "collate_ns",
    Figure.SEND_NS: "send_ns",
}  # fmt: skip
_NEEDED = ("fetch_ns", "fetch_cpu_ns", "collate_ns")


class Worker(NamedTuple):
    loader: int
    number: int
    marks: Journal


def workers(raw: Path, marks: Journal, said: Problems) -> list[Worker]:
    """The workers of a rank that wrote something."""
    process = marks.last_fact("process") or {}
    folder = raw.parent.parent / WORKERS_DIR / f"{process.get('host')}-{process.get('pid')}"
    if not folder.is_dir():
        return []
    found, unknown = [], 0
    for path in sorted(path for path in folder.iterdir() if path.is_dir()):
        worker = journals.read(path)
        said.update(worker.problems)
        about = worker.last_fact("worker")
        if about is None:  # it ended before it had identified itself
            continue
        loader = _loader_of(about, marks)
        if loader is None:
            unknown += 1
        else:
            found.append(Worker(loader, int(about.get("id", 0)), worker))
    said.add("data workers", "a worker belongs to no loader that is known; left out", unknown)
    return found


def _loader_of(about: dict[str, Any], marks: Journal) -> int | None:
    """The number of its loader, from the first fact about its process id after its start."""
    pid, began_ns = about.get("pid"), about.get("monotonic_ns", 0)
    told = [
        (fact.get("monotonic_ns", 0), fact.get("number"))
        for fact in marks.facts
        if fact["type"] == "data workers" and pid in (fact.get("pids") or ())
    ]
    later = [entry for entry in told if entry[0] >= began_ns]
    chosen = min(later, default=max(told, default=None))
    return chosen[1] if chosen is not None and isinstance(chosen[1], int) else None


def batches(
    marks: Journal, at_work: list[Worker], rank: int, started_unix_ns: int
) -> dict[str, Any]:
    """As columns of the stored table, in order of time."""
    parts = [_of_journal(marks, 0, TRAINING_PROCESS)]
    parts += [_of_journal(worker.marks, worker.loader, worker.number) for worker in at_work]
    names = [name for name in BATCHES.column_names if name != "rank"]
    whole = {name: _joined([part[name] for part in parts]) for name in names}
    order = np.argsort(np.ma.getdata(whole["ts_ns"]), kind="stable")
    columns = {name: column[order] for name, column in whole.items()}
    columns["ts_ns"] = marks.to_run_time(np.ma.getdata(columns["ts_ns"]), started_unix_ns)
    return {"rank": np.full(len(order), rank, dtype=np.int64), **columns}


def _joined(columns: list[Any]) -> Any:
    return np.ma.masked_array(
        np.concatenate([np.ma.getdata(column) for column in columns]),
        mask=np.concatenate([np.ma.getmaskarray(column) for column in columns]),
    )


def _of_journal(marks: Journal, loader: int, worker: int) -> dict[str, Any]:
    """The marks of a batch share its start time; figures without a mark are unknown."""
    chosen = marks.code == Mark.BATCH
    figure = marks.ref[chosen] & ((1 << BATCH_LOADER_SHIFT) - 1)
    value = marks.value[chosen]
    began_ns, first, row = np.unique(marks.ts_ns[chosen], return_index=True, return_inverse=True)
    count = len(began_ns)
    columns: dict[str, Any] = {}
    for number, name in _COLUMN_OF.items():
        here = figure == number
        known, is_unknown = np.zeros(count, dtype=np.int64), np.ones(count, dtype=np.bool_)
        known[row[here]] = value[here]
        is_unknown[row[here]] = False
        # clocks of one thread do not run backwards, but files get damaged
        if number != Figure.NUMBER:
            known = np.maximum(known, 0)
        columns[name] = np.ma.masked_array(known, mask=is_unknown)
    _fill_short_waits(columns)
    own = marks.ref[chosen][first] >> BATCH_LOADER_SHIFT
    columns["loader"] = np.ma.masked_array(np.where(own > 0, own, loader))
    columns["worker"] = np.ma.masked_array(np.full(count, worker, dtype=np.int64))
    columns["ts_ns"] = np.ma.masked_array(began_ns)
    is_whole = ~np.any([np.ma.getmaskarray(columns[name]) for name in _NEEDED], axis=0)
    return {name: column[is_whole] for name, column in columns.items()}


def _fill_short_waits(columns: dict[str, Any]) -> None:
    """For batches that were hardly off the processor, the time without a core was not measured."""
    off_ns = np.ma.getdata(columns["fetch_ns"]) - np.ma.getdata(columns["fetch_cpu_ns"])
    queued = columns["fetch_queued_ns"]
    columns["fetch_queued_ns"] = np.ma.masked_array(
        np.ma.getdata(queued), mask=np.ma.getmaskarray(queued) & (off_ns >= SHORT_WAIT_NS)
    )


def looks(marks: Journal, at_work: list[Worker], started_unix_ns: int) -> Iterator[Looks]:
    """Samples of the workers while they built a batch."""
    for worker in at_work:
        seen = stack_samples.of_training(worker.marks, worker.marks.ts_ns)
        busy = _is_busy(seen.ts_ns, _of_journal(worker.marks, worker.loader, worker.number))
        yield Looks(
            marks.to_run_time(seen.ts_ns[busy], started_unix_ns),
            f"data worker {worker.number} of loader {worker.loader}",
            [text for text, is_kept in zip(seen.stack, busy.tolist(), strict=True) if is_kept],
            None if seen.cpu_ns is None else seen.cpu_ns[busy],
            None if seen.waited_ns is None else seen.waited_ns[busy],
        )


def _is_busy(ts_ns: Array, made: dict[str, Any]) -> Array:
    if not len(made["ts_ns"]):
        return np.zeros(len(ts_ns), dtype=np.bool_)
    began = np.ma.getdata(made["ts_ns"])
    ended = began + np.ma.getdata(made["fetch_ns"]) + np.ma.getdata(made["collate_ns"])
    at = np.searchsorted(began, ts_ns, side="right") - 1
    busy: Array = (at >= 0) & (ts_ns < ended[np.maximum(at, 0)])
    return busy
