import pytest

from strobe.analyse.tables.data import data_pipeline
from strobe.analyse.tables.data.data_pipeline import Queue, Stage, at_fault
from strobe.model.schema import WORKERS
from tests.analyse.data_drawings import batches, queues, step, wait
from tests.helpers import make_run


def pipeline(*uses: float | None) -> list[Stage]:
    """Stages a, b, ... with queues of these uses between them, and training last."""
    stages = [
        Stage({chr(97 + i): None}, None if use is None else Queue("q", 0.0, 4, use, 0.0, 0.0))
        for i, use in enumerate(uses)
    ]
    return [*stages, Stage({"training": None})]


@pytest.mark.parametrize(
    ("uses", "place"),
    [
        ((0.9, 0.1), 1),  # b: its input is full, its output empty
        ((0.9, 0.9, 0.1), 2),
        ((0.9, 0.1, 0.1), 1),
        ((0.1, 0.1), 0),  # a: all queues to its right are low
        ((0.5, 0.1), 1),  # the leftmost with all to its right low
        ((0.9, 0.9), -1),  # training: all to its left are high
        ((0.1, 0.9), -1),  # enough lies before training
        ((0.5, 0.5), -1),
        ((None, 0.1), 1),
        ((None, None), -1),
    ],
)
def test_the_stage_at_fault_is_told_by_the_queues(uses, place):
    assert at_fault(pipeline(*uses))[0] == place


def told(run, *names: str):
    found = data_pipeline.run(run)
    at = [found.columns.index(name) for name in names]
    return [tuple(row[i] for i in at) for row in found.fetchall()]


STARVED = step(1, 0, 20, 10) + step(2, 20, 40, 10) + wait(0, 10, 1) + wait(20, 30, 2)


def test_of_a_starved_loader_the_longest_stage_of_its_workers(tmp_path):
    made = batches(
        {"ts": 0, "worker": 0, "batch": 0, "fetch": 8, "cpu": 2, "queued": 1, "collate": 1,
         "send": 0.5},
        {"ts": 20, "worker": 0, "batch": 1, "fetch": 10, "cpu": 4, "queued": 1, "collate": 1,
         "send": 0.5},
    )  # fmt: skip
    lengths = queues(
        (0.1, "loader 1 ready batches", 0, 2), (20.1, "loader 1 ready batches", 0, 2),
        (0.1, "loader 1 worker 0 orders", 2, 2), (20.1, "loader 1 worker 0 orders", 1, 2),
    )  # fmt: skip
    run = make_run(tmp_path, STARVED, made | lengths)
    names = ("stage", "mean_ns", "queue", "use_ratio", "empty_ratio", "full_ratio", "is_at_fault")
    assert told(run, *names) == [
        ("sampling", None, "loader 1 orders", 0.75, 0.0, 0.5, False),
        ("reading", 5_000_000, None, None, None, None, True),
        ("transform", 3_000_000, None, None, None, None, False),
        ("no core", 1_000_000, None, None, None, None, False),
        ("collate", 1_000_000, None, None, None, None, False),
        ("transfer", 500_000, "loader 1 ready batches", 0.0, 1.0, 0.0, False),
        ("training", 10_000_000, None, None, None, None, False),
    ]
    busy = dict(told(run, "stage", "busy_ratio"))
    assert busy["reading"] == pytest.approx(10 / 31)  # from 0 to 31 ms, one worker


def test_without_workers_the_longest_stage_is_at_fault(tmp_path):
    made = batches(
        {"ts": 0, "fetch": 3, "cpu": 3, "collate": 7},
        {"ts": 20, "fetch": 3, "cpu": 3, "collate": 7},
    )
    run = make_run(tmp_path, STARVED, made)
    assert [row for row in told(run, "stage", "is_at_fault", "reason") if row[1]] == [
        ("collate", True, "training builds its batches itself, which takes 50% of its time")
    ]


def test_where_training_scarcely_waits_nothing_is_at_fault(tmp_path):
    drawing = step(1, 0, 20, 1) + step(2, 20, 40, 1) + wait(0, 0.2, 1) + wait(20, 20.2, 2)
    made = batches({"ts": 0, "fetch": 0.1, "cpu": 0.1}, {"ts": 20, "fetch": 0.1, "cpu": 0.1})
    run = make_run(tmp_path, drawing, made)
    assert [row for row in told(run, "stage", "is_at_fault", "reason") if row[1] or row[2]] == [
        ("training", False, "training waits for data 1.0% of its time")
    ]


def test_minddata_is_judged_by_its_queues_alone(tmp_path):
    lengths = queues(
        (1, "TFReader_3 to Map_2", 15, 16), (1, "Map_2 to Batch_1", 1, 16),
        (1, "Batch_1 to training", 0, 16),
    )  # fmt: skip
    run = make_run(tmp_path, step(1, 0, 20, 10), lengths)
    assert told(run, "loader", "stage", "mean_ns", "is_at_fault") == [
        (None, "TFReader_3", None, False),
        (None, "Map_2", None, True),
        (None, "Batch_1", None, False),
        (None, "training", None, False),
    ]


def test_a_device_queue_that_is_empty_behind_a_full_host_queue_is_the_transfer(tmp_path):
    lengths = queues((1, "Batch_1 to training", 16, 16), (1, "device queue", 0, 4))
    run = make_run(tmp_path, step(1, 0, 20, 10), lengths)
    assert told(run, "stage", "is_at_fault") == [
        ("Batch_1", False), ("transfer", True), ("training", False),
    ]  # fmt: skip


def test_branches_of_minddata_meet_and_operations_without_a_queue_are_listed(tmp_path):
    """Of two readers the second is slow; a batch is put together as training takes it."""
    lengths = queues((1, "Reader_2 to Zip_1", 15, 16), (1, "Reader_3 to Zip_1", 0, 16),
                     (1, "Zip_1 to Batch_0", 1, 16))  # fmt: skip
    names = ["Reader_3 to Zip_1", "Reader_2 to Zip_1", "Zip_1 to Batch_0", "Batch_0 to training"]
    counters = {"rank": [0] * 4, "ts_ns": [0] * 4, "name": [WORKERS + name for name in names],
                "value": [4.0, 2.0, 1.0, 8.0]}  # fmt: skip
    run = make_run(tmp_path, step(1, 0, 20, 10), {**lengths, "counters": counters})
    assert told(run, "position", "stage", "feeds", "workers", "use_ratio", "is_at_fault") == [
        (1, "Reader_2", "Zip_1", 2, 15 / 16, False),
        (2, "Reader_3", "Zip_1", 4, 0.0, True),
        (3, "Zip_1", "Batch_0", 1, 1 / 16, False),
        (4, "Batch_0", "training", 8, None, False),
        (5, "training", None, None, None, False),
    ]
