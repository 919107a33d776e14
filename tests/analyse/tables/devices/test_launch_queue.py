from strobe.analyse.tables.devices import launch_queue
from tests.helpers import make_run, text

DRAWING = """
    0/main       runtime:launch  0..5
    0/main       runtime:launch  10..15
    0/main       runtime:launch  40..45
    0/s7@cuda:0  kernel:a        20..30   launcher=0
    0/s7@cuda:0  kernel:b        40..50   launcher=1
    0/s7@cuda:0  kernel:c        60..70   launcher=2
    0/s9@cuda:0  kernel:d        60..70
"""


def test_each_launch_adds_one_and_each_start_takes_one_away(tmp_path):
    found = launch_queue.run(make_run(tmp_path, DRAWING)).project(
        "stream_id, ts_ns, length, change, event_id"
    )
    assert text(found) == (
        "stream_id ts_ns length change event_id\n"
        "7 0 1 1 3\n"
        "7 10 2 1 4\n"
        "7 20 1 -1 3\n"
        "7 40 2 1 5\n"  # at the same moment as a start: the launch comes first
        "7 40 1 -1 4\n"
        "7 60 0 -1 5"
    )
