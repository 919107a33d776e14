import io

import numpy as np
import pytest

from strobe.analyse.comparison.runs import compare
from strobe.show.text.comparison import write
from strobe.show.text.paper import Paper
from strobe.show.text.side_by_side import write_all
from tests.show.event_files.drawings import curve, metrics_run
from tests.show.text.test_summary import assert_chinese


@pytest.fixture
def pair(tmp_path):
    rng = np.random.default_rng(0)
    falling = [10 * 0.5 ** (step / 20) for step in range(200)]
    noise = rng.normal(0, 0.01, 200)
    a = curve("loss", (np.array(falling) + 1 + noise).tolist()) + curve("lr", [0.1] * 200)
    b = curve("loss", (np.array(falling) + 0.5 + noise).tolist()) + curve("lr", [0.1] * 200)
    b[5]["value"] = float("nan")
    return [metrics_run(tmp_path / name, {"scalars": rows}) for name, rows in (("a", a), ("b", b))]


def page(comparison, width=80):
    out = io.StringIO()
    write(comparison, Paper(out, width, is_terminal=False))
    return out.getvalue()


def test_the_page_of_metrics(pair):
    lines = page(compare(*pair)).splitlines()
    assert lines[0].endswith("metrics only") and lines[3].startswith("loss: B ends better, at 0.5")
    assert [" ".join(line.split()) for line in lines if line.startswith("  l")] == [
        "loss 1.012 0.5123 -0.5",
        "lr 0.1 0.1 0 within noise",
        "loss 0.9944 at 190 0.4944 at 190",
        "loss 5.675 step 24, 24.0 s step 22, 22.0 s",
        "loss 1.945 step 71, 71.0 s step 58, 58.0 s",
        "loss 1.012 step 190, 3.17 min step 89, 89.0 s",
    ]


def test_what_is_not_finite_is_named(pair):
    text = page(compare(*pair))
    assert "B has NaN or infinite values of loss (1 of 200), first at step 5." in text


@pytest.mark.parametrize("width", [40, 80, 160])
def test_it_fits_its_width(pair, width):
    assert max(map(len, page(compare(*pair), width).splitlines())) <= width


def test_in_chinese(pair, monkeypatch):
    monkeypatch.setenv("STROBE_LANG", "zh")
    paths = [str(run.path) for run in pair]
    assert_chinese(page(compare(*pair)), *paths, "loss", "lr")


def test_several_side_by_side(pair):
    out = io.StringIO()
    write_all([compare(*pair), compare(*pair, letter="C")], Paper(out, 80, is_terminal=False))
    lines = [" ".join(line.split()) for line in out.getvalue().splitlines()]
    assert "loss 1.012 0.5123 0.5123" in lines and "Metrics, final value A B C" in lines
