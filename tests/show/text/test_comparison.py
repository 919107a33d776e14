import io

import pytest

from strobe.analyse.comparison.runs import compare
from strobe.show.text.comparison import write
from strobe.show.text.paper import Paper
from tests.advise.drawings import same, steps
from tests.helpers import make_run


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
    assert "What explains it, adding up to +20.0 µs a step" in lines


@pytest.mark.parametrize("width", [40, 80, 160])
def test_it_fits_its_width(pair, width):
    a, b = pair
    a.manifest.ranks[0].frameworks = {"torch": "2.12" * 40}
    assert max(map(len, page(a, b, width).splitlines())) <= width


def test_without_a_difference_nothing_is_explained(pair):
    text = page(pair[0], pair[0])
    assert "No difference beyond noise" in text and "explains" not in text


def test_settings_that_differ_are_told(pair):
    a, b = pair
    b.manifest.ranks[0].frameworks = {"torch": "2.13"}
    assert "  torch: - -> 2.13" in page(a, b).splitlines()
