"""A pipeline of MindData whose map is too slow: its queues tell, and its line is found."""

import json

import pytest

from strobe.advise import data_starvation
from strobe.advise.finding import Finding
from strobe.advise.training import Training
from tests.advise.drawings import no_core
from tests.analyse.data_drawings import columns, queues, step, wait
from tests.helpers import make_run

STAGES = [
    {"type": "Batch", "place": ["/a/train.py", 33], "workers": None, "functions": []},
    {"type": "Map", "place": ["/a/train.py", 32], "workers": 4, "functions": ["decode"]},
    {"type": "Map", "place": ["/a/train.py", 31], "workers": 2, "functions": ["prepare"]},
    {"type": "Generator", "place": ["/a/train.py", 30], "workers": 1, "functions": []},
]
# Operation, what it fills, and how full that is: of 16.
QUEUES = {
    "GeneratorOp_4 to loader 1 MapOp_3": 16, "MapOp_3 to loader 1 MapOp_2": 0,
    "MapOp_2 to loader 1 BatchOp_1": 0, "BatchOp_1 to training": 4,
}  # fmt: skip


def trained(folder, lengths, more=None) -> Training:
    drawing = "".join(
        step(n, 40 * n, 40 * n + 40, 30) + wait(40 * n, 40 * n + 30, n) for n in range(1, 30)
    )
    rows = [(40 * n, f"loader 1 {name}", length, 16)
            for n in range(1, 30) for name, length in lengths.items()]  # fmt: skip
    told = {"stages": STAGES, "cores": 8, "host": "here"}
    places = columns([{"rank": 0, "what": "data loader", "number": 1, "file": "/a/train.py",
                       "line": 33, "function": "", "details": json.dumps(told)}])  # fmt: skip
    extra = {**queues(*rows), "places": places, **(more or {})}
    return Training(make_run(folder, drawing, extra))


def test_the_operation_between_a_full_and_an_empty_queue_is_named(tmp_path):
    verdict = data_starvation.check(trained(tmp_path, QUEUES))
    assert isinstance(verdict, Finding)
    assert (verdict.stage, verdict.where) == ("transform", "train.py:31")
    assert "the operation Map (prepare) at train.py:31 is too slow" in verdict.title
    assert verdict.fixes[0].startswith("map(..., num_parallel_workers=4) at train.py:31")


def test_a_source_that_leaves_all_queues_empty_reads_too_slowly(tmp_path):
    verdict = data_starvation.check(trained(tmp_path, dict.fromkeys(QUEUES, 0)))
    assert isinstance(verdict, Finding)
    assert (verdict.stage, verdict.where) == ("reading", "train.py:30")
    assert verdict.fixes[0].startswith("GeneratorDataset(..., num_parallel_workers=2)")


def test_what_is_computed_for_a_step_has_to_fit_onto_the_cores_however_short_the_waits(tmp_path):
    """Of 40 ms 30 are waited; of 8 cores 4 are busy, so a step takes 20 ms at least."""
    used = {"rank": [0, 0], "ts_ns": [200_000_000, 1_200_000_000],
            "name": ["process_cpu_ns_total"] * 2, "value": [0, 4 * 1_000_000_000]}  # fmt: skip
    verdict = data_starvation.check(trained(tmp_path, dict.fromkeys(QUEUES, 0), {"counters": used}))
    assert isinstance(verdict, Finding)
    assert verdict.expected_speedup == pytest.approx(2.0)


def test_queues_that_do_not_tell_leave_the_cause_open(tmp_path):
    verdict = data_starvation.check(trained(tmp_path, dict.fromkeys(QUEUES, 8)))
    assert isinstance(verdict, Finding)
    assert verdict.stage is None and not verdict.is_certain


def test_cores_that_others_take_are_taken_from_the_pipeline_too(tmp_path):
    quiet = data_starvation.check(trained(tmp_path / "a", QUEUES))
    half_gone = no_core((0, 0), (10**6, 500_000))
    busy = data_starvation.check(trained(tmp_path / "b", QUEUES, half_gone))
    assert isinstance(quiet, Finding) and isinstance(busy, Finding)
    assert busy.share == pytest.approx(quiet.share, rel=1e-3)
