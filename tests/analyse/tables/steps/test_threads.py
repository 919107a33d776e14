from strobe.analyse.tables.steps import threads
from tests.helpers import make_run, text


def test_nested_operators_count_once_and_the_share_is_of_the_window(tmp_path):
    run = make_run(
        tmp_path,
        """
        0/steps  annotation:strobe~window~1  0..200
        0/main   op:a                        0..100
        0/main   op:b                        10..50   parent=1
        0/main   module:Net                  0..180
        0/side   op:c                        20..60
        """,
    )
    assert text(threads.run(run)) == (
        "rank device thread thread_id operators busy_ns share\n"
        "0 cpu main - 2 100 0.5\n"
        "0 cpu side - 1 40 0.2"
    )


def test_without_windows_the_share_is_of_all_the_work(tmp_path):
    run = make_run(tmp_path, "0/main op:a 100..200\n0/main op:b 250..300")
    assert threads.run(run).fetchall()[0][-2:] == (150, 0.75)
