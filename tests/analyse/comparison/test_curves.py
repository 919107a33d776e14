import math

import numpy as np
import pytest

from strobe.analyse.comparison.curves import (
    HIGHER,
    LOWER,
    Curve,
    better,
    curves,
    difference,
    end,
    first_at,
    smoothed,
)
from tests.show.event_files.drawings import curve, metrics_run

NAN, INF = float("nan"), float("inf")


def of(values):
    count = len(values)
    return Curve(np.arange(count), np.array(values, dtype=float), np.arange(count) * 1e9)


@pytest.mark.parametrize(
    "tag, direction",
    [
        ("loss", LOWER), ("Loss/train", LOWER), ("valLoss", LOWER), ("eval/WER", LOWER),
        ("train_perplexity", LOWER), ("accuracy/validation", HIGHER), ("top5", HIGHER),
        ("hparam/F1", HIGHER), ("loss_scale", None), ("lr", None), ("gloss", None),
        ("loss_of_accuracy", None),
    ],
)  # fmt: skip
def test_what_is_better_by_the_name_of_a_metric(tag, direction):
    assert better(tag) == direction


def test_a_curve_ends_at_the_median_of_its_last_tenth():
    values = [9.0] * 90 + [1.0] * 9 + [1000.0]
    assert end(of(values)).level == 1.0
    assert end(of([5.0, 1.0, 2.0])).level == 2.0  # all of a short one


def test_one_noisy_last_value_makes_no_difference():
    rng = np.random.default_rng(0)
    a = rng.normal(1.0, 0.1, 200)
    b = a.copy()
    b[-1] = 0.1
    change, low, high = difference(end(of(a)), end(of(b)))
    assert low <= 0 <= high and abs(change) < 0.05


def test_a_difference_beyond_noise_excludes_zero():
    rng = np.random.default_rng(0)
    change, low, high = difference(
        end(of(rng.normal(1.0, 0.1, 1000))), end(of(rng.normal(0.8, 0.1, 1000)))
    )
    assert low < -0.2 < high < 0 and low < change < high


def test_too_few_values_have_an_end_and_no_noise():
    assert difference(end(of([1.0, 1.0, 1.0])), end(of([2.0] * 3))) == (1.0, None, None)


def test_most_of_the_last_values_must_be_finite():
    assert end(of([1.0] * 95 + [NAN] * 5)).level is None
    assert end(of([1.0] * 96 + [NAN] * 3 + [INF])).level == 1.0
    assert difference(end(of([NAN])), end(of([1.0]))) == (None, None, None)


def test_intervals_contain_the_truth_about_as_often_as_they_say():
    rng = np.random.default_rng(1)
    misses = 0
    for _ in range(400):
        ends = [end(of(rng.normal(1.0, 0.2, 400))) for _ in range(2)]
        _, low, high = difference(*ends)
        misses += not low <= 0 <= high
    assert 0.02 < misses / 400 < 0.09


def test_a_level_is_reached_when_the_smoothed_curve_gets_there():
    falling = np.linspace(10, 0, 1001)
    falling[100] = -5.0  # one value is not the curve
    found = smoothed(of(falling), is_lower_better=True)
    assert first_at(found, 5.0) == pytest.approx(510, abs=2)  # half a window of 21 later
    assert first_at(found, -1.0) is None
    rising = smoothed(of(-falling), is_lower_better=False)
    assert first_at(rising, 5.0) == first_at(found, 5.0)


def test_what_is_not_finite_reaches_nothing():
    for value in (NAN, INF, -INF):
        assert first_at(smoothed(of([value] * 50), True), 1e300) is None


def test_a_long_curve_is_smoothed_at_some_places_up_to_its_last():
    found = smoothed(of(np.arange(50_000.0)), is_lower_better=True)
    assert len(found.place) == 2000 and found.place[-1] == 49_999
    assert found.place[0] == 999 and found.value[0] == 499.5


def test_curves_have_one_value_per_step(tmp_path):
    rows = curve("loss", [4.0, 3.0, 2.0]) + curve("loss", [30.0], attempt=2, first=1)
    rows += curve("loss", [9.0], first=2)  # logged again in the first attempt
    rows += curve("ranks", [1.0, NAN]) + curve("ranks", [3.0, 5.0], rank=1)
    rows += [{"tag": "no step", "step": None, "ts_ns": None, "value": v} for v in (7.0, 8.0)]
    found = curves(metrics_run(tmp_path, {"scalars": rows}), ["loss", "ranks", "no step"])
    values = {tag: list(zip(each.step.tolist(), each.value.tolist(), strict=True))
              for tag, each in found.items()}  # fmt: skip
    assert values["loss"] == [(0, 4.0), (1, 30.0), (2, 9.0)]
    assert values["ranks"][0] == (0, 2.0) and math.isnan(values["ranks"][1][1])
    assert values["no step"] == [(0, 7.0), (1, 8.0)]
    assert np.isnan(found["no step"].ts_ns).all()
    assert found["loss"].ts_ns.tolist() == [0.0, 1e9, 2e9]


def test_a_run_without_these_tags_has_no_curve(tmp_path):
    assert curves(metrics_run(tmp_path, {"scalars": curve("loss", [1.0])}), ["other"]) == {}
