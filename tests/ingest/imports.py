"""Traces of other tools, for tests: written here, or real ones that lie beside the project."""

import json
from pathlib import Path
from typing import Any

import pytest

from strobe.ingest.building.opening import open_run_dir
from strobe.ingest.importing.importer import import_traces
from strobe.store.run import Run

TORCH = Path(__file__).parents[3] / "shared" / "data" / "torch"


def shared(name: str) -> Path:
    path = TORCH / name
    if not path.exists():
        pytest.skip("shared data absent")
    return path


def imported(path: Path, folder: Path) -> Run:
    import_traces([path], folder / "run")
    return open_run_dir(folder / "run")


def span(name: str, start: float, end: float, category: str = "cpu_op", **more: Any) -> dict:
    """An event of the host, or of a stream for a category of a device. Times in microseconds."""
    thread = {key: more.pop(key) for key in ("pid", "tid") if key in more}
    event = {"ph": "X", "cat": category, "name": name, "ts": 1e15 + start, "dur": end - start}
    return {"pid": 7, "tid": 7, **thread, **event, "args": more}


def write(path: Path, events: list[dict], **header: Any) -> Path:
    path.write_text(json.dumps({"schemaVersion": 1, **header, "traceEvents": events}))
    return path
