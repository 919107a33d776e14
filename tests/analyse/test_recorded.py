from strobe.analyse import operator_types
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
