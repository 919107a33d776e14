"""Looks at the stack, from marks to the table."""

import json

import numpy as np

from strobe.ingest.recording import journal_reader
from strobe.ingest.recording.stack_samples import Looks, beside_training, columns, of_training
from strobe.model.journal import SAMPLE_WAIT_BITS, Mark
from tests.ingest.runs import write_raw

STACK = [["/venv/site-packages/torch/a.py", 5, "run"], ["/job/train.py", 31, "fit"]]
PROCESS = {"argv": ["/job/train.py"], "directory": "/job"}


def texts(column) -> list[str | None]:
    return [None if code < 0 else column.values[code] for code in column.codes.tolist()]


def test_marks_become_rows_with_place_cpu_time_and_wait(tmp_path):
    value = 1234 << SAMPLE_WAIT_BITS | 56
    marks = [(70, Mark.SAMPLE, 1, value), (90, Mark.SAMPLE, 2, 0), (95, Mark.SAMPLE, 9, 0)]
    strings = [(1, "stack", json.dumps([1, STACK])), (2, "stack", "[null, []]")]
    read = journal_reader.read(write_raw(tmp_path, marks, strings=strings))
    found = columns([of_training(read, np.array([70, 90, 95]))], 2, PROCESS)
    assert found["rank"].tolist() == [2, 2, 2] and found["ts_ns"].tolist() == [70, 90, 95]
    assert texts(found["thread"]) == ["training"] * 3
    assert texts(found["place"]) == ["train.py:31", None, None]
    assert texts(found["function"]) == ["fit", None, None]
    assert json.loads(texts(found["stack"])[0]) == STACK
    assert texts(found["stack"])[1:] == ["[]", "[]"]
    assert found["cpu_ns"].tolist()[0] == 1_234_000 and found["waited_ns"].tolist()[0] == 56_000


def test_looks_at_other_threads_have_their_names_and_are_not_trainings(tmp_path):
    marks = [(70, Mark.SAMPLE_BESIDE, 1, 900, 2), (80, Mark.SAMPLE, 1, 0, 3),
             (90, Mark.SAMPLE_BESIDE, 1, 950, 2), (95, Mark.SAMPLE_BESIDE, 1, 5, 4)]  # fmt: skip
    facts = [{"type": "thread", "id": 2, "native_id": 79, "name": "prefetch"}]
    strings = [(1, "stack", json.dumps([1, STACK]))]
    read = journal_reader.read(write_raw(tmp_path, marks, facts, strings=strings))
    ts_ns = np.array([70, 80, 90, 95])
    found = columns(beside_training(read, ts_ns), 0, PROCESS)
    assert texts(found["thread"]) == ["thread prefetch", "thread prefetch", "thread 4"]
    assert found["ts_ns"].tolist() == [70, 90, 95]
    assert texts(found["place"]) == ["train.py:31"] * 3
    assert found["cpu_ns"].tolist() == [900, 950, 5]
    assert of_training(read, ts_ns).ts_ns.tolist() == [80]


def test_threads_of_other_processes_may_lack_cpu_time():
    ours = Looks(
        np.array([1, 2]), "training", ["[null, []]"] * 2, np.array([5, 6]), np.array([0, 0])
    )
    worker = Looks(np.array([3]), "data worker 0", [json.dumps([0, STACK[1:]])])
    found = columns([ours, worker], 0, PROCESS)
    assert texts(found["thread"]) == ["training", "training", "data worker 0"]
    assert texts(found["place"]) == [None, None, "train.py:31"]
    assert found["cpu_ns"].tolist() == [5, 6, None]


def test_a_damaged_stack_is_no_fault():
    for text in ("", "{", "[5, []]", '[0, [["a"]]]', "[1]", "7"):
        found = columns([Looks(np.array([1]), "training", [text])], 0, {})
        assert texts(found["place"]) == [None] and texts(found["stack"]) == ["[]"], text


def test_no_look_at_all():
    assert columns([], 0, {})["ts_ns"].tolist() == []
