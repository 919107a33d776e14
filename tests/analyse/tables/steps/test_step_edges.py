from strobe.analyse.tables.steps import step_edges
from tests.helpers import make_run, text


def step(number: int, first: str) -> str:
    begin = 1000 * number
    return f"""0/steps step:step~{number} {begin}..{begin + 1000}       step={number}
        0/steps phase:gap          {begin}..{begin + 100}        step={number}
        0/steps phase:forward      {begin + 100}..{begin + 400}  step={number}
        0/steps phase:backward     {begin + 400}..{begin + 800}  step={number}
        0/steps phase:update       {begin + 800}..{begin + 1000} step={number}
        0/main  op:aten::to        {begin + 50}..{begin + 60}    step={number}
        0/main  op:{first}         {begin + 110}..{begin + 200}  step={number} scope=net.fc
        0/main  op:aten::inner     {begin + 110}..{begin + 150}  step={number} scope=net.fc
        0/main  op:aten::mm        {begin + 500}..{begin + 700}  step={number} scope=net.fc
        0/main  op:last            {begin + 600}..{begin + 790}  step={number}
        0/main  op:adam            {begin + 810}..{begin + 900}  step={number}
"""


def test_the_outermost_at_either_edge_and_how_often(tmp_path):
    drawing = step(1, "aten::linear") + step(2, "aten::linear") + step(3, "aten::conv")
    assert text(step_edges.run(make_run(tmp_path, drawing))) == (
        "rank edge name scope steps share step ts_ns event_id\n"
        "0 forward begins aten::linear net.fc 2 0.6666666666666666 1 1110 6\n"
        "0 forward begins aten::conv net.fc 1 0.3333333333333333 3 3110 28\n"
        "0 backward ends last - 3 1.0 1 1600 9"
    )


def test_without_passes_nothing_can_be_told(tmp_path):
    run = make_run(tmp_path, "0/steps step:step~1 0..9 step=1\n0/main op:a 1..2 step=1")
    assert step_edges.run(run).fetchall() == []
