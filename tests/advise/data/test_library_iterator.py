"""Data of a library's own iterator: it is named, and how it makes batches ahead."""

import json

import pytest

from strobe.advise.finding import Finding
from strobe.advise.rules import data_starvation
from strobe.advise.training import Training
from tests.analyse.data_drawings import columns, step, wait
from tests.helpers import make_run


def trained(folder, library) -> Training:
    drawing = "".join(
        step(n, 40 * n, 40 * n + 40, 30) + wait(40 * n, 40 * n + 30, n) for n in range(1, 30)
    )
    told = {"library": library, "dataset": "Iterator"}
    places = columns([{"rank": 0, "what": "data loader", "number": 1, "file": "/a/train.py",
                       "line": 33, "function": "", "details": json.dumps(told)}])  # fmt: skip
    return Training(make_run(folder, drawing, {"places": places}))


@pytest.mark.parametrize(
    ("library", "name", "fix"),
    [
        ("grain", "grain does not prepare batches fast enough.", "mp_prefetch("),
        (
            "tensorflow",
            "tf.data does not prepare batches fast enough.",
            "prefetch(tf.data.AUTOTUNE)",
        ),
    ],
)
def test_the_library_is_named_with_its_own_fix(tmp_path, library, name, fix):
    verdict = data_starvation.check(trained(tmp_path, library))
    assert isinstance(verdict, Finding)
    assert verdict.why == name and fix in verdict.fixes[0]
    assert (verdict.where, verdict.stage) == ("train.py:33", "workers")
    assert verdict.expected_speedup == pytest.approx(2.0)  # two workers instead of one


def test_another_library_is_left_open(tmp_path):
    verdict = data_starvation.check(trained(tmp_path, "other"))
    assert isinstance(verdict, Finding) and verdict.stage is None
