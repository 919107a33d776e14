from strobe.analyse.tables.operators import modules, operators
from tests.analyse.drawings import DEVICE, MODEL, MODEL_ARGS
from tests.helpers import make_run, text


def test_the_tree_with_wall_and_operator_time(tmp_path):
    run = make_run(tmp_path, MODEL, MODEL_ARGS)
    assert text(modules.run(run).project("* EXCLUDE (rank, share)")) == (
        "scope class depth calls device_ns device_own_ns forward_device_ns"
        " backward_device_ns forward_ns forward_exclusive_ns forward_operators_ns"
        " forward_own_ns backward_operators_ns backward_own_ns operators_ns\n"
        "net Net 0 1 - - - - 300 100 240 60 200 0 440\n"
        "net.fc Linear 1 1 - - - - 200 200 180 180 200 200 380"
    )


def test_module_times_equal_the_sum_of_their_operators(tmp_path):
    run = make_run(tmp_path, MODEL, MODEL_ARGS)
    for scope, total in modules.run(run).project("scope, operators_ns").fetchall():
        inside = operators.run(run, scope=scope).project("self_ns").fetchall()
        assert total == sum(row[0] for row in inside)


def test_containers_complete_the_tree_and_numbers_sort_as_numbers(tmp_path):
    drawing = "\n".join(
        f"0/main op:aten::mm {i * 10}..{i * 10 + 5} scope=net.layers.{i}" for i in (10, 2)
    )
    rows = modules.run(make_run(tmp_path, drawing)).project("scope, class, depth, operators_ns")
    assert text(rows) == (
        "scope class depth operators_ns\n"
        "net - 0 10\nnet.layers - 1 10\nnet.layers.2 - 2 5\nnet.layers.10 - 2 5"
    )


def test_a_nameless_root_holds_everything(tmp_path):
    run = make_run(
        tmp_path,
        """
        0/main  module:Net   0..100  scope=
        0/main  op:aten::mm  10..50  scope=fc  parent=0
        """,
    )
    rows = modules.run(run).project("depth, calls, forward_operators_ns, forward_own_ns, share")
    assert rows.fetchall() == [(0, 1, 40, 0, 1.0), (1, 0, 40, 40, 1.0)]


def test_with_a_device_shares_are_of_its_time(tmp_path):
    run = make_run(tmp_path, DEVICE.replace("50..120      step=1", "50..120  step=1  scope=net"))
    rows = modules.run(run).project("scope, device_ns, device_own_ns, operators_ns, share")
    assert (
        text(rows)
        == f"scope device_ns device_own_ns operators_ns share\nnet 200 200 50 {200 / 970}"
    )


def test_a_module_whose_kernels_no_operator_launched_has_their_time(tmp_path):
    run = make_run(tmp_path, "0/s1@npu:0 kernel:a 0..30 scope=net.fc\n0/s1@npu:0 kernel:b 30..40")
    rows = modules.run(run).project("scope, forward_device_ns, device_own_ns, share").fetchall()
    assert rows == [("net", 30, 0, 0.75), ("net.fc", 30, 30, 0.75)]


def test_a_module_may_take_longer_than_two_seconds(tmp_path):
    run = make_run(tmp_path, "0/s1@npu:0 kernel:a 0..5000000000 scope=net")
    assert modules.run(run).project("device_ns").fetchall() == [(5_000_000_000,)]
