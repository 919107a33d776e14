from strobe.analyse.tables.data import data_shortages
from tests.analyse.data_drawings import MS, batches, queues, step, wait
from tests.helpers import make_run


def test_starved_steps_by_the_stage_that_they_waited_for(tmp_path):
    drawing = (
        step(1, 0, 20, 10) + step(2, 20, 40, 5) + step(3, 40, 60, 8) + step(4, 60, 80, 0)
        + wait(0, 10, 1) + wait(20, 25, 2) + wait(40, 48, 3)
    )  # fmt: skip
    made = batches(
        {"ts": 0, "fetch": 9, "cpu": 1, "worker": 0, "batch": 0},
        {"ts": 10, "fetch": 9, "cpu": 8, "worker": 0, "batch": 1},
        {"ts": 20, "fetch": 9, "cpu": 1, "worker": 0, "batch": 2},
    )
    lengths = queues(
        *((ts, "loader 1 ready batches", n, 2) for ts, n in ((1, 0), (21, 1), (41, 0)))
    )
    run = make_run(tmp_path, drawing, {**made, **lengths})
    found = data_shortages.run(run)
    assert found.fetchall() == [
        (0, 1, "reading", 2, 0.5, 18 * MS, 18 / 80, 2, 1, 10 * MS),
        (0, 1, "transform", 1, 0.25, 5 * MS, 5 / 80, 0, 2, 5 * MS),
    ]


def test_a_loader_that_is_being_started_is_told_apart(tmp_path):
    drawing = step(1, 0, 20, 10) + wait(0, 10, 1, is_start=True)
    found = data_shortages.run(make_run(tmp_path, drawing)).project("stage, steps").fetchall()
    assert found == [("starting", 1)]


def test_no_step_waits(tmp_path):
    assert data_shortages.run(make_run(tmp_path, step(1, 0, 20, 0))).fetchall() == []
