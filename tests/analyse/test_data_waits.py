from strobe.analyse import data_waits
from tests.analyse.data_drawings import batches, queues, step, wait
from tests.helpers import make_run, text

# Two passes of two batches: the second begins with a start of 5 ms.
DRAWING = (
    step(1, 0, 20, 10) + step(2, 20, 40, 2) + step(3, 40, 70, 15)
    + wait(0, 4, 1, is_start=True) + wait(4, 10, 1) + wait(20, 22, 2) + wait(22, 23, 2)
    + wait(40, 45, 3, is_start=True) + wait(45, 55, 3)
)  # fmt: skip


def test_a_wait_meets_the_batch_of_its_number_in_its_pass(tmp_path):
    made = batches(
        {"ts": 5, "worker": 0, "batch": 0, "fetch": 4, "cpu": 1, "queued": 1, "collate": 0.5},
        {"ts": 6, "worker": 1, "batch": 1, "fetch": 9, "cpu": 9, "send": 0.2},
        {"ts": 47, "worker": 0, "batch": 0, "fetch": 6, "cpu": 2},
    )
    run = make_run(tmp_path, DRAWING, made)
    data_waits.prepare(run)
    query = """
        SELECT ts_ns // 1000000 AS ts, is_start AS start, pass, number AS n, worker,
               reading_ns / 1e6 AS reading, transform_ns / 1e6 AS transform,
               queued_ns / 1e6 AS queued, made_ns / 1e6 AS made
        FROM data_waits ORDER BY ts_ns
    """
    assert text(run.sql(query)) == (
        "ts start pass n worker reading transform queued made\n"
        "0 True 1 1 - - - - -\n"
        "4 False 1 1 0 2.0 1.0 1.0 9.5\n"
        "20 False 1 2 1 0.0 9.0 0.0 15.0\n"
        "22 False 1 3 - - - - -\n"
        "40 True 2 1 - - - - -\n"
        "45 False 2 1 0 4.0 2.0 0.0 53.0"
    )


def test_what_lay_ready_and_what_taking_cost(tmp_path):
    extra = queues(
        (4.1, "loader 1 ready batches", 0, 4), (4.1, "loader 1 worker 0 orders", 2, 2),
        (4.1, "loader 1 worker 1 orders", 1, 2), (20.1, "loader 1 ready batches", 3, 4),
        (30, "loader 1 ready batches", 4, 4),  # outside every wait
    )  # fmt: skip
    extra["counters"] = {
        "rank": [0, 0], "ts_ns": [20_100_000] * 2, "value": [300.0, 50.0],
        "name": ["loader 1 wait_on_core_ns", "loader 1 no_core_ns"],
    }  # fmt: skip
    run = make_run(tmp_path, DRAWING, extra)
    data_waits.prepare(run)
    query = """
        SELECT ts_ns // 1000000 AS ts, ready, orders, on_core_ns, no_core_ns
        FROM data_waits WHERE ready IS NOT NULL ORDER BY ts_ns
    """
    assert text(run.sql(query)) == (
        "ts ready orders on_core_ns no_core_ns\n4 0 3 - -\n20 3 - 300 50"
    )
