from strobe.analyse.tables.data import data_steps
from tests.analyse.data_drawings import batches, queues, step, wait
from tests.helpers import make_run


def test_steps_that_wait_are_told_with_what_they_waited_for(tmp_path):
    drawing = step(1, 0, 20, 10) + step(2, 20, 40, 2) + step(3, 40, 60, 8)
    drawing += wait(0, 10, 1) + wait(20, 20.5, 2) + wait(40, 48, 3)
    made = batches(
        {"ts": 1, "worker": 0, "batch": 0, "fetch": 8, "cpu": 2, "collate": 1},
        {"ts": 2, "worker": 1, "batch": 1, "fetch": 8, "cpu": 2, "collate": 1},
        {"ts": 41, "worker": 0, "batch": 2, "fetch": 2, "cpu": 2, "collate": 4},
    )
    lengths = queues((0.1, "loader 1 ready batches", 0, 4), (40.1, "loader 1 ready batches", 1, 4))
    run = make_run(tmp_path, drawing, made | lengths)
    found = data_steps.run(run)
    names = ("step", "wait_ns", "share", "loader", "ready", "worker", "stage", "stage_ns")
    at = [found.columns.index(name) for name in names]
    # Step 2 waits for 2.5% of its time only.
    assert [tuple(row[i] for i in at) for row in found.fetchall()] == [
        (1, 10_000_000, 0.5, 1, 0, 0, "reading", 6_000_000),
        (3, 8_000_000, 0.4, 1, 1, 0, "collate", 4_000_000),
    ]


def test_a_trace_without_loaders_has_nulls(tmp_path):
    drawing = step(1, 0, 20, 10) + "0/main data:next~batch 0..10000000 step=1\n"
    found = data_steps.run(make_run(tmp_path, drawing)).fetchall()
    assert found == [
        (0, 1, 20_000_000, 10_000_000, 0.5, None, False, None, None, None, None, None, None, None)
    ]


def test_a_batch_that_training_made_itself_has_no_worker(tmp_path):
    made = batches({"ts": 1, "batch": 0, "fetch": 8, "cpu": 2, "collate": 1})
    run = make_run(tmp_path, step(1, 0, 20, 10) + wait(0, 10, 1), made)
    found = data_steps.run(run).project("worker, stage").fetchall()
    assert found == [(None, "reading")]
