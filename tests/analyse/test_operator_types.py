from strobe.analyse import operator_types
from tests.helpers import make_run, text


def test_a_name_that_calls_itself_counts_twice_in_total_and_once_in_self(tmp_path):
    run = make_run(
        tmp_path,
        """
        0/main  op:aten::to   0..100
        0/main  op:aten::to   20..80    parent=0
        0/main  op:aten::add  100..120
        """,
    )
    assert text(operator_types.run(run)) == (
        "rank name type calls total_ns self_ns mean_ns share cumulative_share flops\n"
        f"0 aten::to to 2 160 100 80 {100 / 120} {100 / 120} -\n"
        f"0 aten::add add 1 20 20 20 {20 / 120} 1.0 -"
    )


def test_ranks_are_kept_apart(tmp_path):
    run = make_run(tmp_path, "0/main op:a 0..10\n1/main op:a 0..30")
    assert [row[:3] for row in operator_types.run(run).fetchall()] == [
        (1, "a", "a"),
        (0, "a", "a"),
    ]
