from strobe.analyse.stretches import MOST_STRETCHES
from strobe.analyse.tables.data import queue_history
from tests.analyse.data_drawings import MS, queues, step
from tests.helpers import make_run, text

HEAD = "rank name step last_step ts_ns looks mean_length min_length max_length capacity\n"


def test_one_row_for_each_queue_and_step(tmp_path):
    lengths = queues((5, "q", 3, 4), (15, "q", 0, 4), (25, "q", 1, 4), (26, "p", 2, None))
    run = make_run(tmp_path, step(1, 0, 20, 10) + step(2, 20, 40, 2), lengths)
    assert text(queue_history.run(run)) == HEAD + (
        f"0 p 2 2 {26 * MS} 1 2.0 2 2 -\n"
        f"0 q 1 1 {5 * MS} 2 1.5 0 3 4\n"
        f"0 q 2 2 {25 * MS} 1 1.0 1 1 4"
    )


def test_without_steps_it_goes_by_time(tmp_path):
    run = make_run(tmp_path, "0/main op:a 0..1", queues((5, "q", 3, 4), (15, "q", 0, 4)))
    assert text(queue_history.run(run)) == HEAD + (
        f"0 q - - {5 * MS} 1 3.0 3 3 4\n0 q - - {15 * MS} 1 0.0 0 0 4"
    )


def test_a_long_run_is_told_in_few_rows_that_keep_the_extremes(tmp_path):
    count = 3 * MOST_STRETCHES
    lengths = queues(*((i, "q", 9 if i == 77 else i % 2, 9) for i in range(count)))
    found = queue_history.run(make_run(tmp_path, "0/main op:a 0..1", lengths))
    ((rows, looks, most),) = found.aggregate("count(*), sum(looks), max(max_length)").fetchall()
    assert rows <= MOST_STRETCHES
    assert (looks, most) == (count, 9)
