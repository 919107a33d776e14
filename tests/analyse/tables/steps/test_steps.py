from strobe.analyse.tables.steps import steps
from tests.helpers import make_run, text

TWO_STEPS = """
    0/steps  step:step~1       0..100    step=1
    0/steps  phase:gap         0..40     step=1
    0/steps  phase:forward     40..60    step=1
    0/steps  phase:backward    60..85    step=1
    0/steps  phase:all_reduce  85..90    step=1
    0/steps  phase:update      90..97    step=1
    0/steps  phase:rest        97..100   step=1
    0/steps  step:step~2       100..200  step=2
    0/steps  phase:gap         100..130  step=2
    0/steps  phase:forward     130..150  step=2
    0/steps  phase:forward     150..160  step=2
    0/steps  phase:backward    160..200  step=2
    0/main   data:loader       5..30     step=1
    0/main   data:loader       10..35    step=1
    0/main   data:loader       120..140  step=2
    0/steps  annotation:strobe~window~1  95..210
"""


def test_parts_add_up_and_waiting_is_counted_once_and_only_inside_the_gap(tmp_path):
    run = make_run(tmp_path, TWO_STEPS)
    assert text(steps.run(run)) == (
        "rank step ts_ns dur_ns gap_ns forward_ns backward_ns all_reduce_ns update_ns rest_ns"
        " recorder_ns data_ns is_outlier is_recorded is_slowed is_counted\n"
        "0 1 0 100 40 20 25 5 7 3 0 30 False False True True\n"
        "0 2 100 100 30 30 40 0 0 0 0 10 False True True True"
    )


def steps_of(lengths):
    lines, at = [], 0
    for number, length in enumerate(lengths, 1):
        lines.append(f"0/steps step:step~{number} {at}..{at + length} step={number}")
        lines.append(f"0/steps phase:forward {at}..{at + length} step={number}")
        at += length
    return "\n".join(lines)


def outliers(tmp_path, lengths):
    run = make_run(tmp_path, steps_of(lengths))
    return [row[1] for row in steps.run(run).fetchall() if row[12]]


def test_a_step_beyond_a_fifth_over_the_median_is_an_outlier(tmp_path):
    assert outliers(tmp_path, [1000] * 9 + [1201]) == [10]


def test_a_step_at_a_fifth_over_the_median_is_not(tmp_path):
    assert outliers(tmp_path, [1000] * 9 + [1200]) == []


def test_noisy_steps_raise_the_bar(tmp_path):
    noisy = [1000, 900, 1100, 1000, 900, 1100, 1000, 900, 1100]
    assert outliers(tmp_path, [*noisy, 1700]) == []
    assert outliers(tmp_path, [*noisy, 1800]) == [10]


def test_what_strobe_itself_took_makes_no_outlier(tmp_path):
    drawing = (
        steps_of([1000] * 9)
        + """
    0/steps  step:step~10    9000..12000   step=10
    0/steps  phase:forward   9000..10000   step=10
    0/steps  phase:recorder  10000..12000  step=10
    """
    )
    last = steps.run(make_run(tmp_path, drawing)).fetchall()[-1]
    assert last == (0, 10, 9000, 3000, 0, 1000, 0, 0, 0, 0, 2000, 0, False, False, True, False)


def test_an_empty_run_has_no_steps(tmp_path):
    assert steps.run(make_run(tmp_path, "")).fetchall() == []


def counted(tmp_path, drawing):
    return [row[1] for row in steps.run(make_run(tmp_path, drawing)).fetchall() if row[15]]


def test_warm_up_and_slowed_steps_are_not_counted_where_enough_others_remain(tmp_path):
    window = "\n0/steps annotation:strobe~window~1 400..600"
    assert counted(tmp_path, steps_of([100] * 12) + window) == [4, 7, 8, 9, 10, 11, 12]


def test_a_short_run_counts_its_warm_up(tmp_path):
    assert counted(tmp_path, steps_of([100] * 8)) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert counted(tmp_path / "longer", steps_of([100] * 9)) == [4, 5, 6, 7, 8, 9]


def test_a_run_that_was_recorded_in_full_counts_its_slowed_steps(tmp_path):
    window = "\n0/steps annotation:strobe~window~1 0..1200"
    assert counted(tmp_path, steps_of([100] * 12) + window) == [4, 5, 6, 7, 8, 9, 10, 11, 12]
