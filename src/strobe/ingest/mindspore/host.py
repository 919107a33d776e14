"""What MindSpore's host leaves beside or without a device: operators, their memory, MindData."""

from pathlib import Path

from strobe.ingest.mindspore import data as mindspore_data
from strobe.ingest.mindspore import ops as mindspore_ops
from strobe.ingest.mindspore import steps as mindspore_steps
from strobe.ingest.mindspore.files import by_kind
from strobe.ingest.trace import Trace


def read(paths: list[Path], number: int, trace: Trace, *, has_operators: bool = False) -> None:
    """Whatever of it is among these files, into a trace, which may have the operators already."""
    files = by_kind(paths)
    for side in ("cpu", "gpu"):
        if (path := files.get(f"{side}_op_execute_timestamp")) and not has_operators:
            _read_operators(path, files.get(f"{side}_framework"), number, trace)
        if path := files.get(f"{side}_ms_memory_record"):
            trace.counters += mindspore_ops.memory(path, trace.words, trace.said)
    mindspore_data.read(files, paths, trace)


def _read_operators(path: Path, shapes: Path | None, number: int, trace: Trace) -> None:
    operators = mindspore_ops.read(path, shapes, trace.said)
    process = trace.about.pid or None
    trace.spans.append(mindspore_ops.spans(operators, trace.words, number, process))
    if trace.steps is None:
        trace.steps = mindspore_steps.found_steps(operators, path.name, trace.said)
