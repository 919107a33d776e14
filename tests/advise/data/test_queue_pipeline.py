"""A pipeline of MindData whose map is too slow: its queues tell, and its line is found."""

import json

import pytest

from strobe.advise.finding import Finding
from strobe.advise.rules import crowded_cores, data_starvation
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


def trained(folder, lengths, more=None, *, ready=(0, 0), cores=8) -> Training:
    """Steps of 40 ms, of which 30 are waited; from the `ready` first to last, none."""
    waited = {n: 0 if ready[0] <= n <= ready[1] else 30 for n in range(1, 30)}
    drawing = "".join(
        step(n, 40 * n, 40 * n + 40, ms) + wait(40 * n, 40 * n + ms, n) for n, ms in waited.items()
    )
    rows = [(40 * n, f"loader 1 {name}", length, 16)
            for n in range(1, 30) for name, length in lengths.items()]  # fmt: skip
    told = {"stages": STAGES, "cores": cores, "host": "here"}
    places = columns([{"rank": 0, "what": "data loader", "number": 1, "file": "/a/train.py",
                       "line": 33, "function": "", "details": json.dumps(told)}])  # fmt: skip
    extra = {**queues(*rows), "places": places, **(more or {})}
    return Training(make_run(folder, drawing, extra))


def test_the_operation_between_a_full_and_an_empty_queue_is_named(tmp_path):
    verdict = data_starvation.check(trained(tmp_path, QUEUES))
    assert isinstance(verdict, Finding)
    assert (verdict.stage, verdict.where) == ("transform", "train.py:31")
    assert verdict.why == (
        "The operation Map (prepare) at train.py:31 is too slow. Its input queue is 100% full, and "
        "its output queue is 0% full."
    )
    # Its two threads make a batch every 40 ms, and training needs one every 10: eight, of 8 cores.
    assert verdict.fixes[0] == (
        "Set `num_parallel_workers=8, python_multiprocessing=True` on the map operation "
        "at train.py:31"
    )
    assert verdict.expected_speedup == pytest.approx(4.0, rel=0.02)


@pytest.mark.parametrize(
    ("lengths", "why"),
    [
        (
            (0, 0, 0, 0),
            "The operation Generator at train.py:30 is too slow. All queues between it and "
            "training are nearly empty, and the last one is 0% full.",
        ),
        (
            (8, 0, 0, 4),
            "The operation Map (prepare) at train.py:31 is too slow. Training waits, and its "
            "output queue is 0% full.",
        ),
        (
            (16, 16, 16, 8),
            "The operation Batch at train.py:33 is too slow. Training waits although its input "
            "queue is 100% full.",
        ),
    ],
)
def test_why_names_the_queues_that_show_the_slow_operation(tmp_path, lengths, why):
    verdict = data_starvation.check(trained(tmp_path, dict(zip(QUEUES, lengths, strict=True))))
    assert isinstance(verdict, Finding) and verdict.why == why


def test_a_source_that_leaves_all_queues_empty_reads_too_slowly(tmp_path):
    verdict = data_starvation.check(trained(tmp_path, dict.fromkeys(QUEUES, 0)))
    assert isinstance(verdict, Finding)
    assert (verdict.stage, verdict.where) == ("reading", "train.py:30")
    assert verdict.fixes[0] == (
        "Set `num_parallel_workers=4` on the GeneratorDataset at train.py:30"
    )


def test_the_gain_is_that_of_the_workers_that_two_cores_have_room_for(tmp_path):
    """One reader makes a batch every 40 ms, two make one every 20; training needs one every 10."""
    verdict = data_starvation.check(trained(tmp_path, dict.fromkeys(QUEUES, 0), cores=2))
    assert isinstance(verdict, Finding)
    assert "num_parallel_workers=2" in verdict.fixes[0]
    assert verdict.expected_speedup == pytest.approx(2.0)


def test_what_is_computed_for_a_step_has_to_fit_onto_the_cores_however_short_the_waits(tmp_path):
    """Of 40 ms 30 are waited; of 8 cores 4 are busy, so a step takes 20 ms at least."""
    verdict = data_starvation.check(trained(tmp_path, QUEUES, used(4)))
    assert isinstance(verdict, Finding)
    assert verdict.expected_speedup == pytest.approx(2.0)


def used(cores, of_training=None):
    """Counters and looks: what all threads of the process keep busy, and the training one."""
    moments = [200_000_000, 1_200_000_000]
    counters = {"rank": [0, 0], "ts_ns": moments, "name": ["process_cpu_ns_total"] * 2,
                "value": [0, cores * 10**9]}  # fmt: skip
    looks = {"rank": [0, 0], "ts_ns": moments, "thread": ["training"] * 2, "place": [None] * 2,
             "stack": ["[]"] * 2, "function": [None] * 2, "waited_ns": [0, 0],
             "cpu_ns": [0, int((of_training or 0) * 10**9)]}  # fmt: skip
    return {"counters": counters, **({} if of_training is None else {"samples": looks})}


def test_steps_that_found_their_batch_ready_tell_how_long_one_takes_without_waiting(tmp_path):
    """19 of 25 ms wait for their reader. When it waits no more all of them take the 40 ms of the
    other six: those are held up by what its threads compute, which is as much then."""
    empty = dict.fromkeys(QUEUES, 0)
    verdict = data_starvation.check(trained(tmp_path / "a", empty, used(1), ready=(4, 9)))
    assert isinstance(verdict, Finding) and verdict.expected_speedup == pytest.approx(1.0)
    few = data_starvation.check(trained(tmp_path / "b", empty, used(1), ready=(4, 7)))
    assert isinstance(few, Finding) and few.expected_speedup > 2


def test_queues_that_do_not_tell_leave_the_cause_open(tmp_path):
    verdict = data_starvation.check(trained(tmp_path, dict.fromkeys(QUEUES, 8)))
    assert isinstance(verdict, Finding)
    assert verdict.stage is None and not verdict.is_certain


def test_cores_that_others_take_leave_the_share_as_it_was_measured(tmp_path):
    quiet = data_starvation.check(trained(tmp_path / "a", QUEUES))
    half_gone = no_core((0, 0), (10**6, 500_000))
    busy = data_starvation.check(trained(tmp_path / "b", QUEUES, half_gone))
    assert isinstance(quiet, Finding) and isinstance(busy, Finding)
    assert busy.share == pytest.approx(quiet.share, rel=1e-3)


def test_the_operation_that_takes_most_of_trainings_cores_is_named(tmp_path):
    """No step waits; training has one core and lacks a half, which the pipeline has."""
    moments, rows = (0, 1_200_000_000), []
    for name, cores in (("training_threads_cpu", 1.0), ("training_threads_no_core", 0.5),
                        ("data_threads_cpu", 0.5)):  # fmt: skip
        rows += [(f"{name}_ns_total", at, cores * at) for at in moments]
    used_percent = {"1": 3, "2": 5, "3": 40, "4": 2}
    rows += [(f"loader 1 operation {operation} user_utilization (%)", 7, percent)
             for operation, percent in used_percent.items()]  # fmt: skip
    counters = columns([{"rank": 0, "name": name, "ts_ns": at, "value": int(value)}
                        for name, at, value in rows])  # fmt: skip
    full = dict.fromkeys(QUEUES, 16)
    training = trained(tmp_path, full, {"counters": counters}, ready=(1, 30))
    verdict = crowded_cores.check(training)
    assert isinstance(verdict, Finding) and verdict.where == "train.py:31"
    assert verdict.expected_speedup == pytest.approx(1.5)
    assert verdict.title.startswith("Threads of the input pipeline use 0.5 cores")
    assert "Map (prepare) at train.py:31" in verdict.why
