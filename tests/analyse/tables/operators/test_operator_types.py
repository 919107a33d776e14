from strobe.analyse.tables.operators import operator_types
from tests.analyse.drawings import DEVICE
from tests.helpers import make_run, text


def test_an_only_child_of_the_same_name_is_the_same_call(tmp_path):
    run = make_run(
        tmp_path,
        """
        0/main  op:aten::to   0..100
        0/main  op:aten::to   20..80    parent=0
        0/main  op:aten::to   30..50    parent=1
        0/main  op:aten::mul  35..45    parent=2
        0/main  op:aten::add  100..120
        """,
    )
    assert text(operator_types.run(run)) == (
        "rank name type calls device_ns total_ns self_ns mean_ns share cumulative_share flops\n"
        f"0 aten::to to 1 - 100 90 100 {90 / 120} {90 / 120} -\n"
        f"0 aten::add add 1 - 20 20 20 {20 / 120} {110 / 120} -\n"
        f"0 aten::mul mul 1 - 10 10 10 {10 / 120} 1.0 -"
    )


def test_a_child_of_the_same_name_beside_others_is_a_call_of_its_own(tmp_path):
    run = make_run(
        tmp_path,
        """
        0/main  op:aten::div  0..100
        0/main  op:aten::to   10..20    parent=0
        0/main  op:aten::div  20..80    parent=0
        """,
    )
    found = operator_types.run(run).project("name, calls, total_ns, self_ns").fetchall()
    assert found == [("aten::div", 2, 160, 90), ("aten::to", 1, 10, 10)]


def test_with_a_device_time_is_device_time(tmp_path):
    """All work of the device is 970; 400 of it no operator launched."""
    found = operator_types.run(make_run(tmp_path, DEVICE)).project(
        "name, device_ns, self_ns, share, cumulative_share"
    )
    assert found.fetchall() == [
        ("record_param_comms", 350, 10, 350 / 970, 350 / 970),
        ("aten::mm", 200, 50, 200 / 970, 550 / 970),
        ("aten::add", 20, 20, 20 / 970, 570 / 970),
    ]


def test_ranks_are_kept_apart(tmp_path):
    run = make_run(tmp_path, "0/main op:a 0..10\n1/main op:a 0..30")
    assert [row[:3] for row in operator_types.run(run).fetchall()] == [
        (1, "a", "a"),
        (0, "a", "a"),
    ]
