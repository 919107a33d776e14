import io

import pytest
from rich.cells import cell_len

from strobe.analyse.opened import OpenedRun
from strobe.show.summary import print_summary
from tests.analyse.drawings import MODEL, MODEL_ARGS
from tests.analyse.test_steps import TWO_STEPS
from tests.helpers import make_run


def page(run, width=80):
    out = io.StringIO()
    with OpenedRun(run) as opened:
        opened.run.manifest.command = ["train.py", "--name", "a b"]
        print_summary(opened, out, width)
    return out.getvalue()


def test_the_step_to_scale_and_its_parts(tmp_path):
    lines = page(make_run(tmp_path, TWO_STEPS)).splitlines()
    assert lines[0].startswith("train.py --name 'a b'") and lines[0].endswith("finished")
    assert lines[3] == "One step takes 100 ns on average; median 100 ns, 95 % below 100 ns"
    assert lines[4] == "The largest part, 35 %, is the gap between steps, mostly waiting for data"
    assert lines[5] == "g" * 28 + "F" * 20 + "B" * 26 + "A" * 2 + "U" * 3 + "r"
    assert lines[7:11] == [
        "  part                     mean   median      p95  share",
        "g gap                     35 ns    35 ns    40 ns   35 %  #####",
        "    waiting for data      20 ns    20 ns    29 ns   20 %  ###",
        "F forward                 25 ns    25 ns    30 ns   25 %  ####",
    ]


def test_operators_modules_and_what_was_recorded(tmp_path):
    text = page(make_run(tmp_path, MODEL, MODEL_ARGS))
    assert "  aten::mm  " in text and "  net.fc  " in text
    assert "  steps      2, 1 of them with every operator (1 window)\n" in text
    assert "\x1b" not in text


def test_problems_are_told(tmp_path):
    problems = {"rank": [0], "source": ["window-1"], "what": ["events were lost"], "count": [3]}
    text = page(make_run(tmp_path, TWO_STEPS, {"problems": problems}))
    assert "  events were lost (3 times): rank 0, window-1\n" in text


def test_a_run_without_steps_says_so_and_what_to_do(tmp_path):
    text = page(make_run(tmp_path, "0/main op:a 0..10"))
    assert "no training steps were found" in text and "strobe.step()" in text


@pytest.mark.parametrize("width", [60, 80, 160])
def test_the_page_keeps_to_its_width(tmp_path, width):
    drawing = MODEL.replace("net.fc", "net." + "encoder." * 12 + "注意力")
    text = page(make_run(tmp_path, drawing, MODEL_ARGS), width)
    assert max(cell_len(line) for line in text.splitlines()) <= width
