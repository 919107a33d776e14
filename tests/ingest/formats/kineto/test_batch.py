import json
from pathlib import Path

import numpy as np
import pytest

from strobe.ingest.formats.json_chunks import Range
from strobe.ingest.formats.kineto import batch
from strobe.ingest.formats.kineto.batch import Batch, decode

FIRST_KEYS = (b'"ph"',)


def operator(number: int, **args) -> dict:
    return {
        "ph": "X", "cat": "cpu_op", "name": f"aten::op{number % 7}", "pid": 1, "tid": 1,
        "ts": 10.0 * number, "dur": 5.0,
        "args": {"External id": number, "Input Dims": [[number % 3]], **args},
    }  # fmt: skip


KERNEL = {
    "ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 3.0, "dur": 2.0,
    "args": {"External id": 3, "device": 0, "stream": 7, "correlation": 9, "grid": [1, 2, 3]},
}  # fmt: skip
COLLECTIVE = {
    **operator(5, **{"Collective name": "allreduce", "In msg nelems": 12, "Group size": 4}),
    "name": "record_param_comms",
}
MEMORY = {
    "ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": 4.0,
    "args": {"Bytes": 64, "Addr": 5, "Total Allocated": 640, "Device Type": 0},
}  # fmt: skip
THREAD = {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "ts": 0, "args": {"name": "main"}}
WITHOUT_LENGTH = {**operator(2), "dur": None}
OTHERS = {
    "kernel": KERNEL,
    "kernel without a correlation": {**KERNEL, "args": {"device": 1, "stream": 2}},
    "collective": COLLECTIVE,
    "memory": MEMORY,
    "broken": {**operator(4), "args": {"External id": "four"}},
}


def decoded(folder: Path, events: list[dict], chunk_bytes: int) -> Batch:
    text = b",".join(json.dumps(event).encode() for event in events)
    path = folder / "events.json"
    path.write_bytes(text)
    return decode(Range(str(path), 0, len(text), FIRST_KEYS, chunk_bytes), FIRST_KEYS, False)


def assert_same(one: Batch, other: Batch) -> None:
    for columns, others in ((one.spans, other.spans), (one.memory, other.memory)):
        assert columns.keys() == others.keys()
        for name, column in columns.items():
            np.testing.assert_array_equal(column, others[name], err_msg=name)
    assert list(one.names) == list(other.names) and list(one.texts) == list(other.texts)
    assert list(one.categories) == list(other.categories)
    assert one.said == other.said and one.thread_names == other.thread_names


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("at", [0, 3, 40, 79])
def test_events_of_other_kinds_keep_their_arguments_wherever_they_stand(
    tmp_path, monkeypatch, other: str, at: int
):
    events = [THREAD, *map(operator, range(40)), WITHOUT_LENGTH, *map(operator, range(40, 80))]
    events.insert(at, OTHERS[other])
    ours = decoded(tmp_path, events, chunk_bytes=2000)
    monkeypatch.setattr(batch, "NOT_OF_HOST", b"")  # every text is thought to hold others
    assert_same(ours, decoded(tmp_path, events, chunk_bytes=2000))
    assert ours.said["an event has no time or length and was left out"] == 1


def test_operators_of_the_host_are_decoded_once_and_without_the_arguments_of_others(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(batch, "DECODER", None)  # would be an error
    ours = decoded(tmp_path, [THREAD, *map(operator, range(80))], chunk_bytes=2000)
    assert ours.spans["external"].tolist() == list(range(80))
    assert [ours.texts[text] for text in (b"[[0]]", b"[[1]]", b"[[2]]")] == [0, 1, 2]
    assert ours.thread_names == {(1, 1): "main"}
