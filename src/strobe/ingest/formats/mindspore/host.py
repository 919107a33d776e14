"""What MindSpore's host leaves beside or without a device: operators, their memory, MindData."""

import json
from pathlib import Path

import numpy as np

from strobe.ingest.formats.kinds import KIND
from strobe.ingest.formats.mindspore import data as mindspore_data
from strobe.ingest.formats.mindspore import ops as mindspore_ops
from strobe.ingest.formats.mindspore import steps as mindspore_steps
from strobe.ingest.formats.mindspore.files import by_kind
from strobe.ingest.trace.spans import Track, make
from strobe.ingest.trace.trace import Trace


def read(paths: list[Path], number: int, trace: Trace, *, has_operators: bool = False) -> None:
    """Whatever of it is among these files, into a trace, which may have the operators already."""
    files = by_kind(paths)
    for side in ("cpu", "gpu"):
        if (path := files.get(f"{side}_op_execute_timestamp")) and not has_operators:
            _read_operators(path, files.get(f"{side}_framework"), number, trace)
        if path := files.get(f"{side}_ms_memory_record"):
            trace.counters += mindspore_ops.memory(path, trace.words, trace.said)
    if path := files.get("strobe_annotations"):
        _read_annotations(path, trace)
    mindspore_data.read(files, paths, trace)


def _read_operators(path: Path, shapes: Path | None, number: int, trace: Trace) -> None:
    operators = mindspore_ops.read(path, shapes, trace.said)
    process = trace.about.pid or None
    trace.spans.append(mindspore_ops.spans(operators, trace.words, number, process))
    if trace.steps is None:
        trace.steps = mindspore_steps.found_steps(operators, path.name, trace.said)


def _read_annotations(path: Path, trace: Trace) -> None:
    """Stretches of time that Strobe itself named: [name, start, length] in ns since 1970."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        rows = [(str(name), int(ts_ns), int(dur_ns)) for name, ts_ns, dur_ns in told]
    except (OSError, ValueError, TypeError) as error:
        trace.said.add(path.name, f"it cannot be read: {error}")
        return
    track = Track("cpu", trace.about.pid or None, -1)
    trace.words.track_names.setdefault(track, "runs")
    names, ts_ns, dur_ns = zip(*rows, strict=True) if rows else ((), (), ())
    trace.spans.append(make(
        np.array(ts_ns, dtype=np.int64), np.array(dur_ns, dtype=np.int64), KIND["annotation"],
        np.array([trace.words.names[name] for name in names]),
        np.full(len(rows), trace.words.tracks[track]),
    ))  # fmt: skip
