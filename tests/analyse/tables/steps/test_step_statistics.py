from strobe.analyse.tables.steps import step_statistics
from tests.analyse.tables.steps.test_steps import TWO_STEPS, steps_of
from tests.helpers import make_run, text


def test_each_part_has_its_statistics_and_shares_add_up(tmp_path):
    result = step_statistics.run(make_run(tmp_path, TWO_STEPS))
    assert text(result) == (
        "rank part steps mean_ns median_ns p95_ns min_ns max_ns deviation_ns share\n"
        "0 step 2 100 100 100 100 100 0 1.0\n"
        "0 gap 2 35 35 40 30 40 7 0.35\n"
        "0 data 2 20 20 29 10 30 14 0.2\n"
        "0 forward 2 25 25 30 20 30 7 0.25\n"
        "0 backward 2 33 33 39 25 40 11 0.325\n"
        "0 all_reduce 2 3 3 5 0 5 4 0.025\n"
        "0 update 2 4 4 7 0 7 5 0.035\n"
        "0 rest 2 2 2 3 0 3 2 0.015\n"
        "0 recorder 2 0 0 0 0 0 0 0.0"
    )


def test_steps_slowed_by_full_recording_are_left_out_where_enough_others_remain(tmp_path):
    def mean(others):
        run = make_run(
            tmp_path / str(others),
            steps_of([100] * others + [900])
            + f"""
            0/steps annotation:strobe~window~1 {100 * others}..{100 * others + 900}
            """,
        )
        return step_statistics.run(run).fetchall()[0][3]

    assert mean(5) == 100
    assert mean(4) == 260


def test_the_time_of_the_recorder_is_in_no_length_and_no_share(tmp_path):
    drawing = """
        0/steps  step:step~1     0..300    step=1
        0/steps  phase:gap       0..40     step=1
        0/steps  phase:forward   40..100   step=1
        0/steps  phase:recorder  100..300  step=1
    """
    rows = step_statistics.run(make_run(tmp_path, drawing)).fetchall()
    assert [(row[1], row[3], row[9]) for row in rows if row[3]] == [
        ("step", 100, 1.0), ("gap", 40, 0.4), ("forward", 60, 0.6), ("recorder", 200, 2.0),
    ]  # fmt: skip


def test_a_single_step_has_no_deviation(tmp_path):
    run = make_run(tmp_path, "0/steps step:step~1 0..10 step=1\n0/steps phase:rest 0..10 step=1")
    assert {row[8] for row in step_statistics.run(run).fetchall()} == {None}
