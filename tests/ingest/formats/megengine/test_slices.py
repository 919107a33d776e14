"""Timelines that are larger than memory: the same tables as of small ones."""

import json
import random
import shutil
from pathlib import Path

import pytest

from strobe.ingest.building.opening import open_run_dir
from strobe.ingest.importing.importer import import_traces
from strobe.ingest.trace import column_spool, span_spool
from strobe.model.schema import STORED_TABLES
from tests.ingest.formats.megengine.test_reader import DATA, STEPS4

OPERATORS = ("Convolution", "Elemwise", "MatrixMul")
BLOCKS = ("net", "conv1", "backward", "step", "clear_grad", "tensor.shape", "Put")


def many_events() -> list[dict]:
    """Operators in blocks, with tensors, kernels and launches; halves, equal times, no order."""
    source, found = random.Random(3), []

    def edge(phase: str, name: str, tid: int, at: int, /, **args) -> None:
        event = {"name": name, "ph": phase, "pid": 7, "tid": tid, "ts": at}
        found.append(event | ({"args": args} if args else {}))

    def arrow(phase: str, number: int, tid: int, at: int) -> None:
        event = {"name": "7", "cat": "CUPTILink", "ph": phase, "pid": 7, "tid": tid, "ts": at}
        found.append(event | {"id": number})

    def operator(number: int, at: int) -> int:
        name = source.choice(OPERATORS)
        edge("B", "OpDispatch", 1, at)
        edge("E", "OpDispatch", 1, at + 1, __id__=number)
        edge("B", name, 0, at)
        for side in ("Input", "Input", "Output"):
            at += source.choice((0, 1))
            edge("B", f"{side} {number}", 0, at)
            about = {"shape": source.choice(("{2,3}", "{4}")), "dtype": "Float32"}
            edge("E", f"{side} {number}", 0, at, nr_elements=6, name=f"w{number % 4}:0", **about)
        edge("B", "launch", 0, at)
        arrow("s", number, 0, at)
        edge("E", "launch", 0, at + 1)
        edge("E", name, 0, at + 2, __id__=number, mode="ADD")
        edge("B", name, 2, at + 3)
        edge("E", name, 2, at + 4, __id__=number, execution_time=4)
        arrow("f", number, 2, at + 4)
        return at + source.choice((4, 9))

    at = 0
    edge("B", "all along", 1, 0)
    edge("B", "all along", 0, 0)
    for number in range(1, 160):
        if number % 8 == 1:
            block = source.choice(BLOCKS)
            edge("B", block, 1, at)
            edge("B", block, 0, at)
        at = operator(number, at)
        if number % 8 == 0 and source.random() < 0.9:
            edge("E", block, 0, at)
            edge("E", block, 1, at)
            edge("i", source.choice(("StopStep", "GetProp")), 1, at)
        found.append({"name": "nr_alive_tensor", "ph": "C", "pid": 7, "tid": 0, "ts": at,
                      "args": {"value": number}})  # fmt: skip
    names = {0: "worker", 1: "interpreter", 2: "gpu0:0"}
    marks = [
        {"name": "thread_name", "ph": "M", "pid": 7, "tid": tid, "args": {"name": name}}
        for tid, name in names.items()
    ]
    return [*marks, *found]


def tables_of(path: Path, folder: Path) -> dict[str, list]:
    import_traces([path], folder / "run")
    run = open_run_dir(folder / "run")
    assert not [*folder.rglob(".pile-*"), *folder.rglob(".spool-*")]
    found = {
        table.name: run.sql(f"SELECT * FROM {table.name} ORDER BY ALL").fetchall()
        for table in STORED_TABLES
    }
    run.close()
    shutil.rmtree(folder / "run")
    return found


@pytest.fixture(params=["drawn", "real"])
def timeline(request, tmp_path):
    path = tmp_path / "7.chrome_timeline.json"
    if request.param == "drawn":
        # The first tells whose it is.
        mark = {"name": "gpu_usgae_ratio", "ph": "C", "pid": 7, "tid": 0, "ts": 0}
        path.write_text(json.dumps({"traceEvents": [mark, *many_events()]}, separators=(",", ":")))
    elif not DATA.exists():
        pytest.skip("MegEngine's shared data absent")
    else:
        shutil.copy(DATA / STEPS4, path)
    return path


@pytest.mark.parametrize("slice_rows", [20, 90])
def test_in_slices_the_tables_are_the_same(timeline, tmp_path, monkeypatch, slice_rows):
    whole = tables_of(timeline, tmp_path)
    assert min(len(whole[name]) for name in ("events", "op_args", "links", "counters")) > 100
    monkeypatch.setattr(span_spool, "SLICE_ROWS", slice_rows)
    monkeypatch.setattr(column_spool, "SHARE_ROWS", slice_rows)
    assert tables_of(timeline, tmp_path) == whole
