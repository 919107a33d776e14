from strobe.analyse.tables.devices import launch_queue_statistics
from tests.analyse.tables.devices.test_launch_queue import DRAWING
from tests.helpers import make_run, text


def test_statistics_of_a_stream_over_time(tmp_path):
    found = launch_queue_statistics.run(make_run(tmp_path, DRAWING)).project(
        "stream, launches, mean_length, median_length, max_length, dur_ns, empty_ns, full_ns"
    )
    # 1 for 10, 2 for 10, 1 for 20, 1 for 20: 70 in 60.
    assert text(found) == (
        "stream launches mean_length median_length max_length dur_ns empty_ns full_ns\n"
        f"s7 3 {70 / 60} 1.0 2 60 0 0"
    )


def test_time_with_nothing_outstanding(tmp_path):
    run = make_run(
        tmp_path,
        """
        0/main       runtime:launch  0..5
        0/main       runtime:launch  80..85
        0/s7@cuda:0  kernel:a        20..30   launcher=0
        0/s7@cuda:0  kernel:b        100..110 launcher=1
        """,
    )
    found = launch_queue_statistics.run(run).project("empty_ns, empty_share")
    assert found.fetchall() == [(60, 0.6)]
