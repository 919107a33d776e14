import io

import pytest

from strobe.analyse.comparison.runs import compare
from strobe.show.text.paper import Paper
from strobe.show.text.side_by_side import write_all
from strobe.show.text.wrapping import wrapped
from tests.advise.drawings import same, steps
from tests.helpers import make_run
from tests.show.text.test_summary import assert_chinese


@pytest.fixture
def runs(tmp_path):
    lengths = {"a": (10, 30), "b": (5, 55), "c": (10, 10)}
    return [
        make_run(tmp_path / name, steps(*same({"gap": gap, "forward": forward}, 20)))
        for name, (gap, forward) in lengths.items()
    ]


def page(runs, width=80):
    first, *others = runs
    letters = "BCDEFG"[: len(others)]
    comparisons = [compare(first, b, letter=x) for b, x in zip(others, letters, strict=True)]
    out = io.StringIO()
    write_all(comparisons, Paper(out, width, is_terminal=False))
    return out.getvalue().splitlines()


def test_every_run_has_a_column(runs):
    lines = page(runs)
    at = lines.index("Typical step               A          B          C")
    assert lines[at + 1 : at + 5] == [
        "  step               40.0 µs    60.0 µs    20.0 µs",
        "  vs. A                            +50%       -50%",
        "  rest of the gap    10.0 µs    5.00 µs    10.0 µs",
        "  forward            30.0 µs    55.0 µs    10.0 µs",
    ]
    assert any(line.startswith("B is slower: 50% more time per step") for line in lines)
    assert any(line.startswith("C is faster: 50% less time per step") for line in lines)


def test_settings_of_each_run_are_shown(runs):
    for run, version in zip(runs, ("2.12", "2.13", "2.12"), strict=True):
        run.manifest.ranks[0].frameworks = {"torch": version}
    assert "  torch: A 2.12, B 2.13" in page(runs)


@pytest.mark.parametrize("width", [40, 50, 80, 160])
def test_it_fits_its_width_and_names_what_does_not(runs, width):
    many = runs * 2
    for run in runs:
        run.manifest.ranks[0].frameworks = {"torch": run.path.name * 80}
    lines = page(many, width)
    assert max(map(len, lines)) <= width
    assert any(line.startswith("No room for ") for line in lines) == (width < 80)


@pytest.mark.parametrize("width", [40, 80])
def test_in_chinese(runs, width, monkeypatch):
    monkeypatch.setenv("STROBE_LANG", "zh")
    for run in runs[1:]:
        run.manifest.ranks[0].frameworks = {f"package{n}": run.path.name for n in range(25)}
    verdicts = [compare(runs[0], b, letter=x).verdict for b, x in zip(runs[1:], "BC", strict=True)]
    shown = [line for v in verdicts for line in wrapped(v[0].upper() + v[1:], width)]
    lines = page(runs, width)
    assert_chinese("\n".join(lines), *shown, "strobe compare", width=width)
    at = lines.index("不同的设置")
    assert lines[at + 1] == "  package0：A -, B b, C c"
    assert "  另有 5 项：使用 --json 查看" in lines
    assert any(line.startswith("宽度不足，未显示 C。") for line in lines) == (width == 40)
    if width == 80:
        at = lines.index("典型迭代                A          B          C")
        assert lines[at + 1 : at + 4] == [
            "  迭代            40.0 µs    60.0 µs    20.0 µs",
            "  与 A 相比                     +50%       -50%",
            "  间隙其余部分    10.0 µs    5.00 µs    10.0 µs",
        ]
