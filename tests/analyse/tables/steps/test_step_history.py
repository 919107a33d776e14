from strobe.analyse.stretches import MOST_STRETCHES
from strobe.analyse.tables.steps import step_history
from tests.analyse.tables.steps.test_steps import TWO_STEPS, steps_of
from tests.helpers import make_run


def test_one_row_for_each_step(tmp_path):
    found = step_history.run(make_run(tmp_path, TWO_STEPS))
    shown = "step, last_step, dur_ns, longest_ns, longest_step, gap_ns, forward_ns, data_ns"
    assert found.project(shown).fetchall() == [
        (1, 1, 100, 100, 1, 40, 20, 30),
        (2, 2, 100, 100, 2, 30, 30, 10),
    ]


def test_a_long_run_is_told_in_few_rows_that_keep_its_outlier(tmp_path):
    count = 3 * MOST_STRETCHES
    lengths = [100] * count
    lengths[76] = 900
    found = step_history.run(make_run(tmp_path, steps_of(lengths)))
    (row,) = found.aggregate(
        "count(*), sum((last_step - step + 1)), max(longest_ns),"
        " arg_max(longest_step, longest_ns), sum(outliers)"
    ).fetchall()
    assert row[0] <= MOST_STRETCHES
    assert row[1:] == (count, 900, 77, 1)
