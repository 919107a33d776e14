import io

import pytest

from strobe.analyse.comparison.runs import compare
from strobe.show.text.comparison import write
from strobe.show.text.paper import Paper
from strobe.show.text.wrapping import wrapped
from tests.advise.drawings import same, steps
from tests.analyse.drawings import DEVICE
from tests.helpers import make_run
from tests.show.text.test_summary import assert_chinese


def page(a, b, width=80):
    out = io.StringIO()
    write(compare(a, b), Paper(out, width, is_terminal=False))
    return out.getvalue()


@pytest.fixture
def pair(tmp_path):
    a = make_run(tmp_path / "a", steps(*same({"gap": 10, "forward": 30}, 20)))
    b = make_run(tmp_path / "b", steps(*same({"gap": 5, "forward": 55}, 20)))
    return a, b


def test_the_page(pair, tmp_path):
    lines = page(*pair).splitlines()
    assert lines[3].startswith("B is slower: 50% more time per step (95% confidence interval ")
    assert [line for line in lines if line.startswith("  ")] == [
        "  step                40.0 µs    60.0 µs   +20.0 µs    +50%",
        "  rest of the gap     10.0 µs    5.00 µs   -5.00 µs    -50%  ##",
        "  forward             30.0 µs    55.0 µs   +25.0 µs    +83%  ############",
        "  forward                                         +25.0 µs    125%  ############",
        "  rest of the gap                                 -5.00 µs    -25%  ##",
    ]
    assert "What explains the difference: +20.0 µs per step in total" in lines


@pytest.mark.parametrize("width", [40, 80, 160])
def test_it_fits_its_width(pair, width):
    a, b = pair
    a.manifest.ranks[0].frameworks = {"torch": "2.12" * 40}
    assert max(map(len, page(a, b, width).splitlines())) <= width


def test_without_a_difference_nothing_is_explained(pair):
    text = page(pair[0], pair[0])
    assert "No difference beyond noise" in text and "explains" not in text


def test_settings_that_differ_are_shown(pair):
    a, b = pair
    b.manifest.ranks[0].frameworks = {"torch": "2.13"}
    assert "  torch: - -> 2.13" in page(a, b).splitlines()


def test_of_many_settings_the_first_are_shown(pair):
    a, b = pair
    a.manifest.ranks[0].frameworks = {f"package{number}": "1" for number in range(25)}
    assert "  and 5 more: strobe compare A B --json\n" in page(a, b)


def test_devices_in_either_language(tmp_path, monkeypatch):
    run = make_run(tmp_path / "a", DEVICE)
    lines = page(run, run).splitlines()
    at = lines.index("Devices, per step           A          B      B - A")
    assert lines[at + 1 : at + 3] == [
        "  compute              260 ns     260 ns       0 ns",
        "  communication        125 ns     125 ns       0 ns",
    ]
    monkeypatch.setenv("STROBE_LANG", "zh")
    lines = page(run, run).splitlines()
    at = lines.index("设备（每个迭代）            A          B      B - A")
    assert lines[at + 1 : at + 3] == [
        "  计算                 260 ns     260 ns       0 ns",
        "  通信                 125 ns     125 ns       0 ns",
    ]


@pytest.mark.parametrize("width", [40, 80])
def test_in_chinese(pair, tmp_path, width, monkeypatch):
    monkeypatch.setenv("STROBE_LANG", "zh")
    a, b = pair
    b.manifest.ranks[0].frameworks = {f"package{number}": "2.13" for number in range(25)}
    verdict = compare(a, b).verdict
    text = page(a, b, width)
    assert_chinese(text, *wrapped(verdict[0].upper() + verdict[1:], width), "strobe compare",
                   width=width)  # fmt: skip
    lines = text.splitlines()
    assert "差异的来源：每个迭代合计 +20.0 µs" in lines
    assert "  另有 5 项：strobe compare A B --json" in lines
    if width == 80:
        at = lines.index("典型迭代                    A          B      B - A")
        assert lines[at + 1 : at + 4] == [
            "  迭代                40.0 µs    60.0 µs   +20.0 µs    +50%",
            "  间隙其余部分        10.0 µs    5.00 µs   -5.00 µs    -50%  ##",
            "  前向                30.0 µs    55.0 µs   +25.0 µs    +83%  ############",
        ]
