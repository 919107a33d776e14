import pytest

from strobe.analyse.tables.devices import kernels
from tests.analyse.drawings import DEVICE
from tests.helpers import make_run, text


def test_kernels_by_time_with_their_operator(tmp_path):
    run = make_run(tmp_path, DEVICE)
    found = kernels.run(run).project(
        "name, kind, calls, total_ns, mean_ns, min_ns, max_ns, operator, operators, scope"
    )
    assert text(found) == (
        "name kind calls total_ns mean_ns min_ns max_ns operator operators scope\n"
        "gemm kernel 2 500 250 200 300 aten::mm 1 net.fc\n"
        "nccl collective 1 350 350 350 350 record_param_comms 1 -\n"
        "copy memcpy 1 100 100 100 100 - 0 -\n"
        "add kernel 1 20 20 20 20 aten::add 1 -"
    )


def test_shares_are_of_the_device_and_end_at_one(tmp_path):
    rows = kernels.run(make_run(tmp_path, DEVICE)).project("share, cumulative_share").fetchall()
    assert rows[0] == pytest.approx((500 / 970, 500 / 970))
    assert rows[-1] == pytest.approx((20 / 970, 1))


def test_the_operator_with_most_of_a_kernels_time_is_named(tmp_path):
    drawing = """
        0/main       op:small     0..10
        0/main       op:large     20..30
        0/s7@cuda:0  kernel:k     40..50    launcher=0
        0/s7@cuda:0  kernel:k     60..200   launcher=1
    """
    run = make_run(tmp_path, drawing)
    assert kernels.run(run).project("operator, operators").fetchall() == [("large", 2)]


def test_only_kernels_launched_in_steps_recorded_in_full_count_unless_all_are_asked_for(tmp_path):
    drawing = """
        0/steps      annotation:strobe~window~1  0..150
        0/steps      step:step~1    0..100    step=1
        0/steps      step:step~2    100..200  step=2
        0/main       runtime:launch 90..95    step=1
        0/main       runtime:launch 120..125  step=2
        0/s7@cuda:0  kernel:k       110..130  step=2  launcher=3
        0/s7@cuda:0  kernel:k       130..140  step=2  launcher=4
    """
    run = make_run(tmp_path, drawing)
    assert kernels.run(run).project("calls, total_ns").fetchall() == [(1, 20)]
    assert kernels.run(run, all_steps=True).project("calls, total_ns").fetchall() == [(2, 30)]


def test_filters(tmp_path):
    run = make_run(tmp_path, DEVICE)
    assert [row[2] for row in kernels.run(run, name="GEM").fetchall()] == ["gemm"]
    assert [row[2] for row in kernels.run(run, scope="net").fetchall()] == ["gemm"]
    assert len(kernels.run(run, min_ns=100, top=2).fetchall()) == 2
