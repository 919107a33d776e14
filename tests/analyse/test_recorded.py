from strobe.analyse import recorded
from strobe.analyse.tables.operators import operator_types
from tests.helpers import make_run

TWO_RANKS = """
    0/steps  step:step~1                 0..100    step=1
    0/steps  step:step~2                 100..200  step=2
    0/steps  annotation:strobe~window~1  {window}
    0/main   op:a                        10..20    step=1
    0/main   op:b                        110..120  step=2
    1/steps  step:step~1                 0..100    step=1
    1/main   op:c                        10..20    step=1
"""


def names(tmp_path, window):
    run = make_run(tmp_path, TWO_RANKS.format(window=window))
    return sorted(row[1] for row in operator_types.run(run).fetchall())


def test_only_steps_wholly_inside_a_window_count(tmp_path):
    assert names(tmp_path, "100..200") == ["b", "c"]


def test_a_rank_without_such_a_step_gives_all_it_has(tmp_path):
    assert names(tmp_path, "1..199") == ["a", "b", "c"]


def test_an_operator_of_the_optimizer_is_of_the_update_though_it_has_a_scope(tmp_path):
    run = make_run(
        tmp_path,
        """
        0/steps  step:step~1       0..100   step=1
        0/steps  phase:forward     0..50    step=1
        0/steps  phase:update      50..80   step=1
        0/steps  phase:gap         80..100  step=1
        0/main   op:MatMul         10..20   step=1  scope=net.fc
        0/main   op:ApplyMomentum  60..70   step=1  scope=optimizer
        0/main   op:MatMul         85..95   step=1  scope=net.fc
        """,
    )
    recorded.prepare(run)
    rows = run.sql("SELECT direction FROM op_times ORDER BY ts_ns").fetchall()
    assert rows == [("forward",), ("update",), ("forward",)]


def test_an_operator_of_a_compiled_forward_pass_is_that_wherever_it_begins(tmp_path):
    """Operators of a program run side by side: this one while the update was going on, too."""
    nodes = ["jit(step)/jvp(Net)/svd", "jit(step)/add"]
    args = {"event_id": [3, 4], "node": nodes, "is_backward": [False, False]}
    run = make_run(
        tmp_path,
        """
        0/steps  step:step~1   0..100   step=1
        0/steps  phase:update  0..50    step=1
        0/steps  phase:forward 50..100  step=1
        0/main   op:svd        10..20   step=1
        0/main   op:add        30..40   step=1
        """,
        {"op_args": args},
    )
    recorded.prepare(run)
    rows = run.sql("SELECT name, direction FROM op_times ORDER BY ts_ns").fetchall()
    assert rows == [("svd", "forward"), ("add", "update")]


def test_an_operator_of_an_optimizer_in_a_graph_of_mindspore_is_an_update(tmp_path):
    nodes = ["Default/optimizer-Momentum/ApplyMomentum-op0", "Default/net-Net/MatMul-op1"]
    args = {"event_id": [2, 3], "node": nodes, "is_backward": [False, False]}
    run = make_run(
        tmp_path,
        """
        0/steps  step:step~1    0..100   step=1
        0/steps  phase:forward  0..100   step=1
        0/main   op:Momentum    10..20   step=1 scope=optimizer
        0/main   op:MatMul      30..40   step=1 scope=net
        """,
        {"op_args": args},
    )
    recorded.prepare(run)
    rows = run.sql("SELECT name, direction FROM op_times ORDER BY ts_ns").fetchall()
    assert rows == [("Momentum", "update"), ("MatMul", "forward")]
