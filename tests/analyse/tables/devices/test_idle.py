from strobe.analyse.tables.devices import idle
from tests.helpers import make_run, text

PARTS = "stream, dur_ns, busy_ns, idle_ns, host_wait_ns, kernel_wait_ns, other_ns, gaps, longest_ns"

# Stream 7: launched in the gap (host), before it and short (kernel), before it and long (other).
# Stream 9 fills part of the long gap; its own work is not linked to a launch.
DRAWING = """
    0/main       runtime:launch  0..10
    0/main       runtime:launch  1500..1600
    0/main       runtime:launch  1610..1620
    0/main       runtime:launch  1630..1640
    0/s7@cuda:0  kernel:a        100..1000      launcher=0
    0/s7@cuda:0  kernel:b        2000..3000     launcher=1
    0/s7@cuda:0  kernel:c        3500..4000     launcher=2
    0/s7@cuda:0  kernel:d        104000..105000 launcher=3
    0/s9@cuda:0  kernel:e        44000..50000
    0/s9@cuda:0  kernel:f        46000..48000
    0/s9@cuda:0  kernel:g        80000..90000
"""


def test_idle_time_by_its_cause_of_the_device_and_of_each_stream(tmp_path):
    assert text(idle.run(make_run(tmp_path, DRAWING)).project(PARTS)) == (
        "stream dur_ns busy_ns idle_ns host_wait_ns kernel_wait_ns other_ns gaps longest_ns\n"
        # gaps 1000..2000 host, 3000..3500, 50000..80000 (30 µs is long) and two more below
        "- 104900 19400 85500 1000 14500 70000 5 40000\n"
        "s7 104900 3400 101500 1000 500 100000 3 100000\n"
        "s9 46000 16000 30000 0 0 30000 1 30000"
    )


def test_time_between_windows_is_not_idle(tmp_path):
    windows = """0/steps  annotation:strobe~window~1  0..20000
    0/steps  annotation:strobe~window~2  40000..105000"""
    found = idle.run(make_run(tmp_path, DRAWING.rstrip() + "\n" + windows)).project(
        "stream, idle_ns"
    )
    assert text(found) == "stream idle_ns\n- 45500\ns7 1500\ns9 30000"


def test_shares(tmp_path):
    rows = idle.run(make_run(tmp_path, DRAWING)).project("idle_share, host_wait_share").fetchall()
    assert rows[0] == (85500 / 104900, 1000 / 85500)
