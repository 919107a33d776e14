import pytest

from strobe.analyse.tables.operators import operators
from strobe.errors import UsageError
from tests.analyse.drawings import DEVICE, DEVICE_ARGS, MODEL, MODEL_ARGS
from tests.helpers import make_run, text


@pytest.fixture
def run(tmp_path):
    return make_run(tmp_path, MODEL, MODEL_ARGS)


def short(relation):
    return text(relation.project("name, scope, direction, calls, total_ns, self_ns"))


def test_operators_of_the_step_recorded_in_full_by_self_time(run):
    assert short(operators.run(run)) == (
        "name scope direction calls total_ns self_ns\n"
        "aten::mm net.fc backward 1 180 180\n"
        "aten::addmm net.fc forward 1 160 160\n"
        "aten::relu net forward 1 60 60\n"
        "aten::add_ - forward 1 40 40\n"
        "AddmmBackward0 net.fc backward 1 200 20\n"
        "aten::linear net.fc forward 1 180 20"
    )


def test_all_steps_include_those_recorded_in_part(run):
    names = [row[1] for row in operators.run(run, all_steps=True).fetchall()]
    assert names.count("aten::relu") == 2


def test_rates_and_the_forward_operator_reach_what_runs_inside_a_backward_node(run):
    result = operators.run(run, name="mm").project(
        "name, type, input_shapes, flops, flops_per_s, bytes_per_s, forward_name"
    )
    assert text(result) == (
        "name type input_shapes flops flops_per_s bytes_per_s forward_name\n"
        "aten::mm mm [[3, 2]] 360 2000000000.0 - aten::linear\n"
        "aten::addmm addmm [[2, 3]] 320 2000000000.0 1000000000.0 -\n"
        "AddmmBackward0 AddmmBackward0 - - - - aten::linear"
    )


def test_shares_end_at_one(run):
    rows = operators.run(run).project("share, cumulative_share").fetchall()
    assert sum(row[0] for row in rows) == pytest.approx(1)
    assert rows[-1][1] == pytest.approx(1)


@pytest.mark.parametrize(
    "options, names",
    [
        ({"name": "ADD MM"}, ["aten::addmm", "AddmmBackward0"]),
        ({"name": "linaer"}, ["aten::linear"]),
        ({"name": "ad"}, ["aten::addmm", "aten::add_", "AddmmBackward0"]),
        ({"type": "mm"}, ["aten::mm"]),
        ({"scope": "net.fc", "min_ns": 180, "max_ns": 190}, ["aten::mm", "aten::linear"]),
        ({"top": 1, "order_by": "total_ns"}, ["AddmmBackward0"]),
        ({"top": 1, "order_by": "+total_ns"}, ["aten::add_"]),
        ({"top": 1, "order_by": "name"}, ["AddmmBackward0"]),
    ],
)
def test_filters_and_order(run, options, names):
    assert [row[1] for row in operators.run(run, **options).fetchall()] == names


def test_every_direct_child_takes_self_time_and_overlays_are_looked_through(tmp_path):
    run = make_run(
        tmp_path,
        """
        0/main  op:outer         0..100
        0/main  annotation:mine  10..20  parent=0
        0/main  module:Inner     30..80  parent=0  scope=inner
        0/main  op:inner         40..70  parent=2
        0/main  gc:gc            85..95  parent=0
        """,
    )
    result = operators.run(run).project("name, total_ns, self_ns")
    assert text(result) == "name total_ns self_ns\nouter 100 60\ninner 30 30"


def test_an_unknown_option_is_an_error(run):
    with pytest.raises(UsageError, match="no option colour"):
        operators.run(run, colour="red")


def test_an_operator_has_the_device_time_of_what_it_launched_itself(tmp_path):
    run = make_run(tmp_path, DEVICE, DEVICE_ARGS)
    found = operators.run(run).project("name, device, device_ns, share").fetchall()
    assert found == [
        ("record_param_comms", "cuda:0", 350, 350 / 970),
        ("aten::mm", "cuda:0", 200, 200 / 970),
        ("aten::add", "cuda:0", 20, 20 / 970),
    ]


# aten::softmax launches nothing; the operator inside it does, seen twice by the profiler.
SOFTMAX = """
    0/main       op:aten::softmax    0..100
    0/main       op:aten::_softmax   10..90    parent=0
    0/main       op:aten::_softmax   20..80    parent=1
    0/main       runtime:cudaLaunch  30..40    parent=2
    0/main       op:aten::view       110..120
    0/s7@cuda:0  kernel:softmax      50..1050  launcher=3
"""


def test_rates_are_over_the_time_of_the_kernels(tmp_path):
    args = {"event_id": [0, 1, 4], "bytes": [4000, 4000, 50], "is_backward": [False] * 3}
    run = make_run(tmp_path, SOFTMAX, {"op_args": args})
    found = operators.run(run).project(
        "name, calls, device, device_ns, device_total_ns, total_ns, self_ns, share, bytes_per_s"
    )
    assert found.fetchall() == [
        ("aten::_softmax", 1, "cuda:0", 1000, 1000, 80, 70, 1.0, 4e9),
        ("aten::softmax", 1, None, 0, 1000, 100, 20, 0.0, 4e9),
        ("aten::view", 1, None, 0, 0, 10, 10, 0.0, None),
    ]
    found = operators.run(run, name="sofmax").project("name").fetchall()
    assert found == [("aten::_softmax",), ("aten::softmax",)]
    assert [row[1] for row in operators.run(run, min_ns=100).fetchall()] == ["aten::_softmax"]
