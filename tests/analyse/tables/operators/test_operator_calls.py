import pytest

from strobe.analyse.tables.operators import operator_calls
from tests.helpers import make_run, text

# A convolution of which an inner operator launches the kernel, then an addition on two devices.
CALLS = """
    0/main       op:aten::convolution   0..100
    0/main       op:aten::cudnn_conv    10..90     parent=0
    0/main       runtime:cudaLaunch     20..30     parent=1
    0/main       runtime:cudaLaunch     40..50     parent=1
    0/main       op:aten::add_          100..160
    0/main       runtime:cudaLaunch     110..115   parent=4
    0/main       sync:cudaSync          120..150   parent=4
    0/main       op:aten::empty         200..210
    0/s7@cuda:0  kernel:transform       50..70     launcher=2
    0/s7@cuda:0  kernel:conv            70..170    launcher=3
    0/s7@cuda:0  kernel:add             170..180   launcher=5
    0/s7@cuda:1  kernel:add             170..200   launcher=5
    0/s7@cuda:1  annotation:span        170..900   launcher=5
"""
ARGS = {"op_args": {"event_id": [0, 1, 4], "flops": [5000, None, 10], "bytes": [70, 80, 90],
                    "input_shapes": ["[[8]]", None, None],
                    "is_backward": [False] * 3}}  # fmt: skip

# A call of which two threads did parts, as a static graph writes it.
PARTS = """
    0/one        op:Copy            0..20
    0/one        sync:wait          0..10     parent=0
    0/two        op:Copy            5..105
    0/s0@cuda:0  sync:wait          30..60    launcher=0
    0/s0@cuda:0  memcpy:Copy        60..70    launcher=0
    0/s0@cuda:1  sync:wait          10..90    launcher=0
    0/s0@cuda:1  memcpy:Copy        90..110   launcher=0
"""
PART_ARGS = {"op_args": {"event_id": [0, 2], "node": ["copy", "copy"], "call": [10, 10],
                         "is_backward": [False] * 2}}  # fmt: skip


def test_time_on_device_and_host_and_work_where_it_was_done(tmp_path):
    found = operator_calls.run(make_run(tmp_path, CALLS, ARGS)).project(
        "name, device_ns, device_total_ns, host_ns, host_wait_ns, host_total_ns, flops"
    )
    # add_: the slower of two devices; 60 on the host, of which 5 launch and 30 wait.
    assert text(found) == (
        "name device_ns device_total_ns host_ns host_wait_ns host_total_ns flops\n"
        "aten::cudnn_conv 120 120 60 0 80 5000\n"
        "aten::add_ 30 30 55 30 60 10\n"
        "aten::convolution - 120 20 0 100 -\n"
        "aten::empty - - 10 0 10 -"
    )


def test_parts_of_one_call_are_one(tmp_path):
    found = operator_calls.run(make_run(tmp_path, PARTS, PART_ARGS)).project(
        "name, type, call, device_ns, device_wait_ns, host_ns, host_wait_ns"
    )
    assert text(found) == (
        "name type call device_ns device_wait_ns host_ns host_wait_ns\ncopy Copy 10 100 80 100 10"
    )


@pytest.mark.parametrize("option, names", [({"name": "cudnn"}, 1), ({"type": "add_"}, 1), ({}, 4)])
def test_it_can_be_filtered_as_any_table(tmp_path, option, names):
    found = operator_calls.run(make_run(tmp_path, CALLS, ARGS), **option)
    assert len(found.fetchall()) == names
