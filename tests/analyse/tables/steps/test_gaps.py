from strobe.analyse.tables.steps import gaps
from tests.helpers import make_run, text

DRAWING = """
    0/steps  annotation:strobe~window~1  0..300000
    0/steps  step:step~1       0..100000       step=1
    0/steps  phase:gap         0..40000        step=1
    0/steps  phase:forward     40000..100000   step=1
    0/steps  step:step~2       100000..300000  step=2
    0/steps  phase:forward     100000..300000  step=2
    0/main   op:first          30000..50000    step=1  scope=a
    0/main   op:inner          35000..45000    step=1  parent=6
    0/main   op:second         55000..60000    step=1  scope=b
    0/main   op:third          130000..299000  step=2
    0/main   python:outer      0..300000
    0/main   python:load       61000..130500   parent=12
    0/main   python:save       60000..131000   parent=10
    0/other  op:elsewhere      0..1000         step=1
"""


def test_gaps_longest_first_cut_at_steps_with_what_stands_around(tmp_path):
    assert text(gaps.run(make_run(tmp_path, DRAWING))) == (
        "rank step ts_ns dur_ns phase before after scope_before scope_after python\n"
        "0 1 60000 40000 forward second third b - save < outer\n"
        "0 1 0 30000 gap - first - a outer\n"
        "0 2 100000 30000 forward second third b - load < save < outer"
    )


def test_the_shortest_gap_can_be_chosen(tmp_path):
    run = make_run(tmp_path, DRAWING)
    assert len(gaps.run(run, min_ns=5000).fetchall()) == 4
    assert len(gaps.run(run, min_ns=1000).fetchall()) == 5
    assert len(gaps.run(run, min_ns=40_001).fetchall()) == 0


def test_the_thread_that_runs_backward_fills_gaps(tmp_path):
    extra = {"op_args": {"event_id": [13], "is_backward": [True]}}
    run = make_run(tmp_path, DRAWING.replace("0..1000 ", "60000..130000 "), extra)
    assert [row[2] for row in gaps.run(run).fetchall()] == [0]


def test_without_a_step_in_full_there_is_nothing_to_say(tmp_path):
    run = make_run(tmp_path, DRAWING.replace("0..300000\n", "5..99999\n", 1))
    assert gaps.run(run).fetchall() == []
