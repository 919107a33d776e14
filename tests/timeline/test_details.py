import pytest

from strobe.errors import UsageError
from strobe.timeline import details
from strobe.timeline.index import make_index
from tests.helpers import make_run

DRAWING = """
    0/main     op:linear     0..50
    0/main     op:mm         10..30 parent=0 scope=net.fc
    0/main     op:mm         32..33 parent=0
    0/s7@cuda:0 kernel:gemm  40..60 launcher=1
    0/autograd op:backward   70..90
"""
EXTRA = {
    "links": {"from_id": [1], "to_id": [4], "kind": ["forward_backward"]},
    "op_args": {
        "event_id": [1], "input_shapes": ["[[8, 4]]"], "flops": [64], "is_backward": [False],
    },
}  # fmt: skip


@pytest.fixture
def run(tmp_path):
    opened = make_run(tmp_path, DRAWING, EXTRA)
    yield opened
    opened.close()


@pytest.fixture
def index(run):
    return make_index(run)


def of(index, event_id):
    return details.details(index, details.position_of(index, event_id))


def test_an_event_its_surroundings_and_its_neighbours(index):
    told = of(index, 1)
    assert (told["event"]["name"], told["event"]["ts_ns"], told["event"]["dur_ns"]) == (
        "mm",
        10,
        20,
    )
    assert [event["name"] for event in told["around"]] == ["linear"]
    assert told["previous"] is None and told["next"]["id"] == 2
    assert of(index, 0)["first_inside"]["id"] == 1
    assert of(index, 0)["event"]["self_ns"] == 50 - 20 - 1
    assert told["first_inside"] is None


def test_launches_and_gradients_are_followed_both_ways(index):
    effects = of(index, 1)["effects"]
    assert [(flow["flow"], flow["id"]) for flow in effects] == [
        ("launch", 3), ("forward_backward", 4),
    ]  # fmt: skip
    assert [(flow["flow"], flow["id"]) for flow in of(index, 3)["causes"]] == [("launch", 1)]
    assert of(index, 4)["causes_total"] == 1
    assert of(index, 0)["causes_total"] == of(index, 2)["effects_total"] == 0


def test_an_operator_has_the_effects_of_the_calls_in_it(index):
    assert [flow["id"] for flow in of(index, 0)["effects"]] == [3, 4]
    assert of(index, 0)["effects_total"] == 2


def test_flows_beyond_a_number_are_counted_only(tmp_path):
    many = details.MOST_FLOWS + 5
    lines = ["0/main op:loop 0..9"]
    lines += [f"0/s7@cuda:0 kernel:k {10 * n}..{10 * n + 5} launcher=0" for n in range(1, many + 1)]
    run = make_run(tmp_path, "\n".join(lines))
    told = of(make_index(run), 0)
    run.close()
    assert told["effects_total"] == many and len(told["effects"]) == details.MOST_FLOWS


def test_what_is_pointed_at_is_the_longest_event_there(index):
    row = details.row_of(index, details.position_of(index, 1))
    assert index.arrays["id"][details.at(index, row, 28, 35)] == 1
    assert index.arrays["id"][details.at(index, row, 32, 33)] == 2
    assert details.at(index, row, 60, 70) is None
    with pytest.raises(UsageError):
        details.at(index, 99, 0, 1)


def test_an_id_that_does_not_exist_is_told(index):
    with pytest.raises(UsageError, match="event 77 does not exist"):
        details.position_of(index, 77)


def test_arguments_come_from_the_tables(run):
    told = details.arguments(run, 1)
    assert told["scope"] == "net.fc"
    known = {argument["name"]: argument["value"] for argument in told["arguments"]}
    assert known == {
        "input_shapes": "[[8, 4]]",
        "flops": 64,
        "is_backward": False,
        "family": "matmul",
    }
    assert details.arguments(run, 0)["arguments"] == []
