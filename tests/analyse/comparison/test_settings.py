import pytest

from strobe.analyse.comparison.settings import OTHERS, amounts, settings
from tests.helpers import make_run


def drawn(folder, batch_size, threads, rss, frameworks):
    extra = {
        "places": {"rank": [0], "what": ["data loader"], "number": [1], "file": ["/job/train.py"],
                   "line": [3], "details": [f'{{"batch_size": {batch_size}, "num_workers": 0}}']},
        "counters": {"rank": [0] * 5, "ts_ns": [0, 1000, 0, 0, 0],
                     "name": ["process_cpu_ns_total"] * 2
                     + ["rss_bytes", "intra_op_threads", "cores_busy_milli"],
                     "value": [100.0, 600.0, rss, threads, 1700.0]},
        "queues": {"rank": [0, 0], "ts_ns": [1, 2], "name": ["batches"] * 2, "length": [0, 3]},
    }  # fmt: skip
    run = make_run(folder, "0/steps step:step~1 0..10 step=1", extra)
    run.manifest.ranks[0].frameworks = frameworks
    return run


def test_only_settings_that_differ_are_told(tmp_path):
    a = drawn(tmp_path / "a", 8, 1, 100.0, {"torch": "2.12"})
    b = drawn(tmp_path / "b", 16, 2, 100.0, {"torch": "2.13"})
    assert settings(a, b) == [
        ("torch", "2.12", "2.13"),
        ("threads of an operator", "1", "2"),
        ("data loader 1: batch_size", "8", "16"),
    ]
    assert settings(a, a) == []


def test_measured_amounts_side_by_side(tmp_path):
    a = drawn(tmp_path / "a", 8, 1, 100.0, {})
    b = drawn(tmp_path / "b", 8, 1, 300.0, {})
    assert amounts(a, b) == [
        ("resident memory, peak_bytes", 100.0, 300.0),
        ("processor, cores_used", 0.5, 0.5),
        (OTHERS, pytest.approx(1.2), pytest.approx(1.2)),
        ("queue batches, mean_length", 1.5, 1.5),
        ("queue batches, empty_share", 0.5, 0.5),
    ]
