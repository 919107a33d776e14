"""MindData, MindSpore's input pipeline: its queues, its waits and what they cost the processors.

- pipeline_profiling_0.json: how full the queue behind each operation was, sampled; or, made of it,
  minddata_pipeline_raw_0.csv. A queue is named by what fills and what empties it. A counter of one
  value tells the workers of each operation, also of one that has no queue.
- dataset_iterator_profiling_0.txt, or device_queue_profiling_0.txt where data is sunk: for each
  batch `0 KIND STEP MILLISECONDS MOMENT` (kind 0 the pipeline, 1 the push to the device, 2 the
  whole batch) and `1 CAPACITY STEP LENGTH MOMENT`.
- minddata_cpu_utilization_0.json: processor and memory; it also has the moments of all samples.

Moments are milliseconds of a clock that runs since the machine began.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from strobe.errors import UnreadableTrace
from strobe.ingest.formats import compressed
from strobe.ingest.formats.ascend import csv_table as ascend_csv
from strobe.ingest.formats.ascend.folder import offset_ns
from strobe.ingest.formats.ascend.numbers import integers, numbers
from strobe.ingest.formats.kinds import KIND
from strobe.ingest.formats.mindspore.ops import lines
from strobe.ingest.trace import spans as spans_of
from strobe.ingest.trace.problems import Problems
from strobe.ingest.trace.spans import Track
from strobe.ingest.trace.trace import Samples, Trace
from strobe.model.schema import WORKERS

_MS_NS = 10**6
_LARGEST_BYTES = 512 << 20
_WAITS = {
    "dataset_iterator_profiling": "data iterator", "device_queue_profiling": "device queue",
}  # fmt: skip
_KINDS = ("pipeline", "push", "batch")
_WHOLE_BATCH = 2
_RAW: ascend_csv.Names = {
    "op": ("op_id",), "type": ("op_type",), "workers": ("num_workers",),
    "sizes": ("output_queue_size",), "length": ("output_queue_length",),
    "interval": ("sample_interval",), "parent": ("parent_id",),
}  # fmt: skip
_USED = ("user_utilization", "sys_utilization")


@dataclass
class _Queue:
    """What one operation fills."""

    number: int
    type: str
    parent: int  # the operation that empties it; -1 for the training itself
    workers: int
    capacity: int
    sizes: list[int]
    interval_ms: int

    @property
    def label(self) -> str:
        return f"{self.type}_{self.number}"


@dataclass
class _Found:
    """Samples with moments in nanoseconds of the machine's clock."""

    queues: list[Samples] = field(default_factory=list)
    counters: list[Samples] = field(default_factory=list)
    waits: list[Samples] = field(default_factory=list)  # value: how long, up to its moment


def read(files: dict[str, Path], paths: list[Path], trace: Trace) -> None:
    """Whatever of MindData is among these files, by kind and all of them, into a trace."""
    found = _Found()
    used = _loaded(files.get("minddata_cpu_utilization"), trace.said)
    moments = _integers(used.get("time_stamp"))
    _put_queues(files, moments, found, trace)
    for kind, name in _WAITS.items():
        if kind in files:
            _put_waits(files[kind], name, found, trace)
    _put_usage(used, moments, found, trace)
    _put(found, paths, trace)


def _put_queues(files: dict[str, Path], moments: list[int], found: _Found, trace: Trace) -> None:
    queues: list[_Queue] = []
    if "pipeline_profiling" in files:
        queues = _of_json(_loaded(files["pipeline_profiling"], trace.said))
    elif "minddata_pipeline_raw" in files:
        queues = _of_csv(files["minddata_pipeline_raw"], trace.said)
    labels = {queue.number: queue.label for queue in queues}
    for queue in queues:
        name = f"{queue.label} to {labels.get(queue.parent, 'training')}"
        workers = np.array([max(0, queue.workers)])
        code = np.array([trace.words.names[WORKERS + name]])
        found.counters.append(Samples(np.array(moments[:1] or [0]) * _MS_NS, code, workers))
        if not queue.sizes:
            continue
        if len(moments) == len(queue.sizes):
            when = np.array(moments, dtype=np.int64)
        else:
            when = np.arange(len(queue.sizes)) * max(1, queue.interval_ms)
        size = np.array(queue.sizes, dtype=np.int64)
        code = np.full(len(size), trace.words.names[name])
        capacity = np.full(len(size), queue.capacity)
        found.queues.append(Samples(when * _MS_NS, code, size, capacity))


def _of_json(whole: dict[str, Any]) -> list[_Queue]:
    interval = whole.get("sampling_interval")
    told = whole.get("op_info")
    operations = [op for op in told if isinstance(op, dict)] if isinstance(told, list) else []
    parent = {
        child: _whole(op.get("op_id"))
        for op in operations
        for child in _integers(op.get("children"))
    }
    found = []
    for op in operations:
        number = _whole(op.get("op_id"))
        metrics = op.get("metrics")
        queue = metrics.get("output_queue") if isinstance(metrics, dict) else None
        queue = queue if isinstance(queue, dict) else {}
        found.append(_Queue(
            number, str(op.get("op_type", "operation")), parent.get(number, -1),
            _whole(op.get("num_workers")), _whole(queue.get("length")),
            _integers(queue.get("size")), _whole(interval),
        ))  # fmt: skip
    return found


def _of_csv(path: Path, said: Problems) -> list[_Queue]:
    found = []
    for part in ascend_csv.parts(path, _RAW, ("op", "sizes"), said):
        columns = {name: integers(part.text(name)).tolist() for name in
                   ("op", "workers", "length", "interval", "parent")}  # fmt: skip
        for row, sizes in enumerate(part.text("sizes")):
            known = _integers(_json(sizes)) if sizes.strip() else []
            found.append(_Queue(
                columns["op"][row], part.text("type")[row] or "operation", columns["parent"][row],
                columns["workers"][row], columns["length"][row], known, columns["interval"][row],
            ))  # fmt: skip
    return found


def _put_waits(path: Path, name: str, found: _Found, trace: Trace) -> None:
    rows = []
    for line in lines(path, trace.said):
        cells = line.split()
        if len(cells) == 5 and all(cell.lstrip("-").isdecimal() for cell in cells):
            rows.append([int(cell[:18]) for cell in cells])
        elif cells:
            trace.said.add(path.name, "a line does not have five numbers and was left out")
    kind, sub, _, value, when = np.array(rows, dtype=np.int64).reshape(-1, 5).T
    moments = when * _MS_NS
    for code, what in enumerate(_KINDS):
        chosen = (kind == 0) & (sub == code) & (value >= 0)
        label = trace.words.names[f"{name} {what} (ms)"]
        samples = Samples(moments[chosen], np.full(int(chosen.sum()), label), value[chosen])
        found.counters.append(samples)
        if code == _WHOLE_BATCH and name == _WAITS["dataset_iterator_profiling"]:
            found.waits.append(samples._replace(value=value[chosen] * _MS_NS))
    queue = (kind == 1) & (value >= 0)
    label = trace.words.names[name]
    found.queues.append(Samples(
        moments[queue], np.full(int(queue.sum()), label), value[queue], sub[queue],
    ))  # fmt: skip


def _put_usage(used: dict[str, Any], moments: list[int], found: _Found, trace: Trace) -> None:
    """Idle and waiting time are left out: MindSpore 2.10 writes zeros there."""
    when = np.array(moments, dtype=np.int64) * _MS_NS
    named: list[tuple[str, Any]] = []
    for owner, key in (("host", "device_info"), ("MindData", "process_info")):
        told = used.get(key)
        named += [(f"{owner} {w} (%)", told.get(w)) for w in _USED if isinstance(told, dict)]
    for key in ("process_memory_info", "system_memory_info"):
        told = used.get(key)
        for what, values in told.items() if isinstance(told, dict) else ():
            named.append((f"{what.removesuffix('_mbytes')} (MB)", values))
    operations = used.get("op_info")
    for op in operations if isinstance(operations, list) else ():
        told = op.get("metrics") if isinstance(op, dict) else None
        if isinstance(told, dict):
            named += [(f"operation {op.get('op_id')} {w} (%)", told.get(w)) for w in _USED]
    for name, values in named:
        column = numbers([str(v) for v in values]) if isinstance(values, list) else np.zeros(0)
        size = min(len(column), len(when))
        known = np.isfinite(column[:size])
        code = np.full(int(known.sum()), trace.words.names[name])
        found.counters.append(Samples(when[:size][known], code, column[:size][known]))


def _put(found: _Found, paths: list[Path], trace: Trace) -> None:
    """On the clock of the trace, if it has one that is known or can be guessed."""
    queues, counters, waits = (
        [s for s in part if len(s.ts_ns)] for part in (found.queues, found.counters, found.waits)
    )
    if not queues and not counters:
        return
    shift = _shift(paths, trace, min(int(s.ts_ns.min()) for s in (*queues, *counters)))
    trace.queues += [s._replace(ts_ns=s.ts_ns + shift) for s in queues]
    trace.counters += [s._replace(ts_ns=s.ts_ns + shift) for s in counters]
    track = Track("cpu", trace.about.pid or None, None)
    for part in waits:
        trace.words.track_names.setdefault(track, "waiting for data")
        size = len(part.ts_ns)
        name = np.full(size, trace.words.names["next batch"])
        trace.spans.append(spans_of.make(
            part.ts_ns + shift - part.value, part.value, KIND["data"], name,
            np.full(size, trace.words.tracks[track]),
        ))  # fmt: skip


def _shift(paths: list[Path], trace: Trace, first_ns: int) -> int:
    """From the clock of the machine to that of the trace."""
    if not trace.is_unix:
        return 0
    known = offset_ns([path for path in paths if path.name.startswith("profiler_info")])
    if known is not None:
        return known
    trace.said.add("MindData", "its files count time from when the machine began, and nothing says"
                   " when that was: they were laid at the beginning of the trace")  # fmt: skip
    return trace.first_ns() - first_ns


def _loaded(path: Path | None, said: Problems) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        found = _json(compressed.beginning(path, _LARGEST_BYTES).decode("utf-8", "replace"))
    except UnreadableTrace as error:
        said.add(path.name, error.what)
        return {}
    if not isinstance(found, dict):
        said.add(path.name, "it is no whole JSON, and was left out")
        return {}
    return found


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _integers(value: Any) -> list[int]:
    return [_whole(item) for item in value] if isinstance(value, list) else []


def _whole(value: Any) -> int:
    return value if type(value) is int and 0 <= value < 2**40 else -1
