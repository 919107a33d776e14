import io

import pytest
from rich.cells import cell_len

from strobe.advise import Advice
from strobe.advise.finding import CannotTell, Clear, Evidence, Figure, Finding
from strobe.show.text import findings
from strobe.show.text.paper import Paper

ROWS = tuple({"step": n, "dur_ns": 20_000_000 + n, "data_ns": 12_400_000} for n in range(1, 6))
ADVICE = Advice(
    findings={
        "data-starvation": Finding(
            "Training spends 62% of its time waiting for data.", 0.62, 2.6,
            ("Set num_workers=4 on the DataLoader at train.py:31", "Read less"),
            (Evidence("steps", ROWS),), where="train.py:31", why="Batches are late.",
            derivation=(Figure("counted", 50, "steps"), Figure("waiting per step", 12.4e6, "ns"),
                        Figure("of step time", 0.62, "ratio")),
        ),
        "memory-growth": Finding("Memory grows.", 0.0, 1.0, ("keep less",), (), is_warning=True),
    },
    clear={"gc-pause": Clear("2 pauses took 0.1% of step time.")},
    cannot_tell={"slow-rank": CannotTell("Only one rank was recorded.", "Record several")},
    total_ns=1_000_000_000, step_count=50, run="RUN",
)  # fmt: skip


def page(write, width=80, is_terminal=False, **options):
    out = io.StringIO()
    write(ADVICE, Paper(out, width, is_terminal=is_terminal), **options)
    return out.getvalue()


def test_the_whole_page():
    lines = page(findings.write).splitlines()
    assert lines[:2] == [
        "Training spends 62% of its time waiting for data. Set num_workers=4 on the",
        "DataLoader at train.py:31: about 2.6× faster. 1 smaller finding below.",
    ]
    assert lines[3] == "1  data-starvation  62% of step time, 12.4 ms per step"
    # 75 cells for a step, 62% of them 46.5.
    assert lines[4] == f"   [{'#' * 46}{'.' * 29}]"
    assert lines[5:13] == [
        "   Training spends 62% of its time waiting for data.",
        "   why       Batches are late.",
        "   where     train.py:31",
        "   fix       Set num_workers=4 on the DataLoader at train.py:31",
        "   or        Read less",
        "   gain      about 2.6× faster",
        "   derived   50 steps counted, 12.4 ms waiting per step, 62% of step time",
        "   evidence  steps, 3 of 5 rows",
    ]
    assert lines[13].split() == ["step", "dur", "data"]
    assert lines[14].split() == ["1", "20.0", "ms", "12.4", "ms"]
    assert "   more      strobe explain data-starvation" in lines
    assert "2  memory-growth  a warning: no measured cost so far" in lines
    assert lines[-3:] == [
        "clear     gc-pause",
        "unknown   slow-rank",
        "why each is clear, or what it needs: strobe advise RUN --all",
    ]


def test_all_tells_why_and_what_to_record():
    text = page(findings.write, tell_all=True)
    assert "   gc-pause\n      2 pauses took 0.1% of step time.\n" in text
    assert "   slow-rank\n      Only one rank was recorded. Record several.\n" in text


def test_under_a_summary_stands_a_line_for_each():
    assert page(findings.write_brief).splitlines()[2:] == [
        "  DataLoader at train.py:31: about 2.6× faster. 1 smaller finding below.",
        "   warning   Memory grows. (memory-growth)",
        "  more: strobe advise RUN",
    ]


@pytest.mark.parametrize("width", [50, 80, 160])
@pytest.mark.parametrize("is_terminal", [False, True])
def test_it_keeps_to_the_width(width, is_terminal, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    text = page(findings.write, width, is_terminal, tell_all=True)
    assert max(cell_len(line) for line in text.splitlines()) <= width
    assert ("█" in text) == is_terminal


def test_nothing_that_a_terminal_obeys_comes_through():
    out = io.StringIO()
    bad = Finding("red \x1b[31m", 0.5, 2.0, ("\x1b[2J",), (Evidence("x", ({"name": "\x1b[1m"},)),))
    findings.write(Advice(findings={"a": bad}), Paper(out, 80, is_terminal=False))
    assert "\x1b" not in out.getvalue()


def test_a_manual_is_drawn_from_its_markdown():
    out = io.StringIO()
    text = "## What it is\nWords `code`\nand more.\n\n- one\n- two\n\n    keep = this"
    findings.write_manual("a-rule", "It is bad", text, Paper(out, 60, is_terminal=False))
    assert out.getvalue() == (
        "a-rule\nIt is bad\n\nWhat it is\nWords code and more.\n\n- one\n- two\n\n    keep = this\n"
    )


def test_a_condition_of_the_recording_comes_first_and_has_no_number():
    out = io.StringIO()
    crowded = Finding("Other programs use 1.6 of 2 cores.", 0.5, 2.0, ("Stop them",), ())
    advice = Advice(conditions={"busy-machine": crowded}, findings=ADVICE.findings)
    findings.write(advice, Paper(out, 80, is_terminal=False))
    text = out.getvalue()
    assert text.startswith("Other programs use 1.6 of 2 cores. Training spends 62%")
    assert text.index("!  busy-machine") < text.index("1  data-starvation")
