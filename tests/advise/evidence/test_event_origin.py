from dataclasses import replace

import pytest

from strobe.advise.evidence.event_origin import Origin, origins
from strobe.advise.training import Training
from strobe.messages import CHINESE, in_language
from tests.helpers import make_run


def origin_of_last(tmp_path, drawing):
    training = Training(make_run(tmp_path, drawing))
    last = len(drawing.strip().splitlines()) - 1
    return origins(training, [last])[last]


def test_operator_span_module_and_line_around_an_event(tmp_path):
    found = origin_of_last(
        tmp_path,
        """
        0/main annotation:ProfilerStep#7 0..100
        0/main python:train.py(31):~main 1..90 parent=0
        0/main annotation:##~loss~## 2..80 parent=1
        0/main python:torch/_tensor.py(929):~__format__ 3..70 parent=2
        0/main op:aten::item 4..60 parent=3 scope=net.head
        0/main op:aten::_local_scalar_dense 5..50 parent=4
        0/main sync:cudaStreamSynchronize 6..40 parent=5
        """,
    )
    assert (found.operator, found.span, found.scope) == ("aten::item", "## loss ##", "net.head")
    assert (str(found.line), found.function) == ("train.py:31", "main")
    assert str(found) == "aten::item at train.py:31"
    assert in_language(str(found), CHINESE) == "train.py:31 处的 aten::item"
    assert str(replace(found, line=None)) == "aten::item in net.head"
    assert str(replace(found, line=None, scope=None)) == "aten::item in ## loss ##"


@pytest.mark.parametrize(
    ("frames", "where"),
    [
        (["multiprocessing/spawn.py(1):~a", "threading.py(2):~b"], None),
        (["model.py(5):~forward", "torch/nn/modules/module.py(9):~call"], "model.py:5"),
        (["/job/train.py(3):~main", "mypackage/loss.py(8):~f"], "train.py:3"),
        (["mypackage/loss.py(8):~f", "<built-in~method~item>"], "loss.py:8"),
        (["/usr/lib/python3.11/queue.py(8):~get", "/x/site-packages/a.py(1):~b"], None),
    ],
)
def test_which_frame_is_the_users_own(tmp_path, frames, where):
    lines = [
        f"0/main python:{frame} {n}..{100 - n}" + (f" parent={n - 1}" if n else "")
        for n, frame in enumerate(frames)
    ]
    lines.append(f"0/main sync:wait 20..30 parent={len(lines) - 1}")
    assert origin_of_last(tmp_path, "\n".join(lines)).where == where


def test_a_span_that_counts_steps_is_no_place(tmp_path):
    found = origin_of_last(
        tmp_path, "0/main annotation:ProfilerStep#7 0..100\n0/main sync:wait 1..9 parent=0"
    )
    assert found.span is None


def test_an_event_with_nothing_around_it(tmp_path):
    found = origin_of_last(tmp_path, "0/main sync:wait 0..10")
    assert found == Origin() and str(found) == "an unknown place"
