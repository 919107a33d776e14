import pytest

from strobe.analyse.operator_ranking import Choice, copies, ranked, totals
from strobe.errors import UsageError
from tests.helpers import make_run

# Four calls on one device: a takes 40 (10 of them waiting), b 30, a 20, copy 10.
RUN = """
    0/main       op:a          0..5      scope=net.x
    0/main       op:b          5..10     scope=net.y
    0/main       op:a          10..15
    0/main       op:lib::copy_ 15..20
    0/s0@cuda:0  sync:wait     0..10     launcher=0
    0/s0@cuda:0  kernel:k      10..40    launcher=0
    0/s0@cuda:0  kernel:k      40..70    launcher=1
    0/s0@cuda:0  kernel:k      70..90    launcher=2
    0/s0@cuda:0  memcpy:m      90..100   launcher=3
"""
ARGS = {"op_args": {"event_id": [0, 1, 2, 3], "flops": [80, None, 60, None],
                    "bytes": [400, 300, None, None], "is_backward": [False] * 4,
                    "input_dtypes": ['["Float32",null]', '["Int8"]', None, "broken"]}}  # fmt: skip


@pytest.fixture
def run(tmp_path):
    return make_run(tmp_path, RUN, ARGS)


def rows(run, *names, **choice):
    table, found, _ = ranked(run, Choice(**choice))
    places = [table.column_names.index(name) for name in names]
    return [tuple(row[place] for place in places) for row in found]


def test_shares_are_of_all_and_sums_of_what_is_shown(run):
    found = rows(run, "name", "time_ns", "share", "cumulative_ns", "cumulative_share", types=("a",))
    assert found == [("a", 40, 0.4, 40, 0.4), ("a", 20, 0.2, 60, 0.6)]
    assert totals(run) == {"device_ns": 100, "host_ns": 20, "operators": 4}


def test_rates_are_over_the_time_of_the_call(run):
    assert rows(run, "id", "flops_per_s", "bytes_per_s", order_by="+flops") == [
        (0, 2e9, 1e10), (2, 3e9, None), (1, None, 1e10), (3, None, None),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("aggregate", "expected"),
    [
        # Of a: times 40 and 20, FLOPs 80 and 60, bytes 400 and unknown.
        ("", ("a", 2, 60, 140, 140e9 / 60, 400, 400e9 / 60)),
        ("sum", ("a", 2, 60, 140, 140e9 / 60, 400, 400e9 / 60)),
        ("mean", ("a", 2, 30, 70, 140e9 / 60, 400, 400e9 / 60)),
        ("max", ("a", 2, 40, 80, 3e9, 400, 1e10)),
        ("min", ("a", 2, 20, 60, 2e9, 400, 1e10)),
    ],
)
def test_put_together(run, aggregate, expected):
    found = rows(run, "type", "calls", "time_ns", "computation_flops", "flops_per_s",
                 "memory_bytes", "bytes_per_s", aggregate=aggregate, aggregate_by="type",
                 types=("a",))  # fmt: skip
    assert [row[0] for row in found] == ["a"]
    assert found[0][1:] == pytest.approx(expected[1:])


def test_rates_of_a_type_are_over_whole_calls_and_of_a_module_over_its_time(tmp_path):
    """A matrix product of 100 ns, 30 of them its own; 7000 FLOPs."""
    drawing = """
        0/main  op:mm    0..100   scope=net
        0/main  op:pack  10..45   scope=net  parent=0
        0/main  op:pack  50..85   scope=net  parent=0
    """
    args = {"event_id": [0], "flops": [7000], "is_backward": [False]}
    run = make_run(tmp_path, drawing, {"op_args": args})
    options = {"clock": "host", "aggregate": "sum"}
    found = rows(run, "type", "time_ns", "flops_per_s", aggregate_by="type", **options)
    assert found == [("pack", 70, None), ("mm", 30, 7e10)]
    assert rows(run, "scope", "flops_per_s", aggregate_by="scope", **options) == [("net", 7e10)]


def test_all_in_one_row(run):
    assert rows(run, "all", "calls", "time_ns", "share", aggregate="sum") == [("all", 4, 100, 1.0)]
    assert rows(run, "all", aggregate="sum", types=("nothing",)) == []


@pytest.mark.parametrize(
    ("choice", "ids"),
    [
        ({"top": 2}, [0, 1]),
        ({"top": -1}, [0, 1, 2]),
        ({"min_ns": 20, "max_ns": 30}, [1, 2]),
        ({"order_by": "+time"}, [3, 2, 1, 0]),
        ({"order_by": "OPR_ID"}, [3, 2, 1, 0]),
        ({"order_by": "memory"}, [0, 1, 2, 3]),
        ({"order_by": "name"}, [3, 1, 0, 2]),
        ({"pattern": "[ab]$"}, [0, 1, 2]),
        ({"pattern": "opy_"}, []),  # the beginning must match
        ({"pattern": ".*opy_"}, [3]),
        ({"like": "COPY"}, [3]),
        ({"scope": "net"}, [0, 1]),
        ({"types": ("copy_", "b")}, [1, 3]),
        ({"types": ("lib::copy_",)}, [3]),
        ({"input_dtype": "float32"}, [0]),
        ({"wait_only": True}, [0, 1, 2, 3]),
        ({"rank": 3}, []),
        ({"clock": "host", "min_ns": 5}, [0, 1, 2, 3]),
    ],
)
def test_chosen(run, choice, ids):
    assert [id for (id,) in rows(run, "id", **choice)] == ids


def test_waits_alone(run):
    assert rows(run, "time_ns", wait_only=True) == [(10,), (0,), (0,), (0,)]


def test_copies(run):
    assert copies(run, Choice())["copy_ns"] == 10
    assert copies(run, Choice(types=("a",))) == {
        "copies": 0, "copy_ns": 0, "copy_mean_ns": None, "copy_wait_ns": 0,
        "copy_wait_mean_ns": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("choice", "error"),
    [({"order_by": "colour"}, "no column colour"), ({"pattern": "("}, "not a valid regular")],
)
def test_what_cannot_be_asked(run, choice, error):
    with pytest.raises(UsageError, match=error):
        rows(run, "id", **choice)
