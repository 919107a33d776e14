import numpy as np
import pytest

from strobe.analyse.metrics.chart import chart, open_charts
from strobe.analyse.metrics.smoothing import Smoothing
from strobe.errors import UsageError
from tests.analyse.metrics.logged import logged_run

POINTS, SPIKE_AT, NAN_AT = 200_000, 77_777, 123_456


@pytest.fixture(scope="module")
def spiked(tmp_path_factory):
    """A noisy loss with one spike and one NaN."""
    value = np.random.default_rng(0).normal(size=POINTS)
    value[SPIKE_AT], value[NAN_AT] = 1e6, np.nan
    run = logged_run(tmp_path_factory.mktemp("run"), {"tag": "loss", "value": value})
    return value, open_charts(run)


@pytest.mark.parametrize("zoom", range(17))
@pytest.mark.parametrize("smoothing", [None, Smoothing(0.9)])
def test_a_spike_and_a_nan_are_visible_at_every_zoom(spiked, zoom, smoothing):
    _, charts = spiked
    width = POINTS >> zoom
    for at in (SPIKE_AT, NAN_AT):
        begin = max(0, at - width // 3)
        (curve,) = charts.chart(
            ["loss"], begin=begin, end=begin + width, pixels=700, smoothing=smoothing
        )
        columns = curve.columns
        assert len(next(iter(columns.values()))) <= 702
        if curve.is_exact:
            assert at in columns["step"]
            is_there = columns["value"] == 1e6 if at == SPIKE_AT else np.isnan(columns["value"])
            assert columns["step"][is_there].tolist() == [at]
        elif at == SPIKE_AT:
            assert columns["max_step"][columns["max"] == 1e6].tolist() == [at]
        else:
            assert columns["nan_count"].sum() == 1


@pytest.mark.parametrize("begin, end", [(0, POINTS - 1), (1234, 98_765), (77_000, 79_000)])
def test_pixels_are_what_their_points_are(spiked, begin, end):
    value, charts = spiked
    (curve,) = charts.chart(["loss"], begin=begin, end=end, pixels=300, smoothing=Smoothing(0.6))
    columns, smooth = curve.columns, smoothed_by_loop(value, 0.6)
    assert curve.points_in_range == columns["count"].sum() == end - begin + 1
    pixel_of = (np.arange(begin, end + 1) - begin) * 300 // (end - begin + 1)
    for row, pixel in enumerate(columns["pixel"].tolist()):
        steps = np.flatnonzero(pixel_of == pixel) + begin
        part, is_finite = value[steps], np.isfinite(value[steps])
        assert columns["count"][row] == len(steps)
        assert columns["nan_count"][row] == np.isnan(part).sum()
        assert (columns["first_step"][row], columns["last_step"][row]) == (steps[0], steps[-1])
        np.testing.assert_equal(columns["first"][row], part[0])
        np.testing.assert_equal(columns["last"][row], part[-1])
        assert columns["min"][row] == part[is_finite].min()
        assert columns["max_step"][row] == steps[np.nanargmax(part)]
        assert columns["max_ts_ns"][row] == 1000 * columns["max_step"][row]
        assert columns["sum"][row] == pytest.approx(part[is_finite].sum(), abs=1e-6)
        of_pixel = smooth[steps][is_finite]
        found = [columns[f"smoothed_{name}"][row] for name in ("first", "last", "min", "max")]
        expected = [of_pixel[0], of_pixel[-1], of_pixel.min(), of_pixel.max()]
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-9)


def smoothed_by_loop(values, weight):
    """TensorBoard's: what is not finite leaves the mean as it was."""
    result, last, count = [], 0.0, 0
    for value in values.tolist():
        if not np.isfinite(value):
            result.append(np.nan)
            continue
        last, count = last * weight + (1 - weight) * value, count + 1
        result.append(last / (1 - weight**count))
    return np.array(result)


def test_few_points_are_given_as_they_are_with_a_neighbour_on_each_side(spiked):
    value, charts = spiked
    (curve,) = charts.chart(
        ["loss"], begin=NAN_AT - 5, end=NAN_AT + 4, pixels=10, smoothing=Smoothing(0.9)
    )
    assert curve.is_exact and curve.points_in_range == 10
    assert curve.columns["step"].tolist() == list(range(NAN_AT - 6, NAN_AT + 6))
    np.testing.assert_array_equal(curve.columns["value"], value[NAN_AT - 6 : NAN_AT + 6])
    smooth = smoothed_by_loop(value[: NAN_AT + 6], 0.9)[-12:]
    np.testing.assert_allclose(curve.columns["smoothed"], smooth, rtol=1e-12, atol=1e-9)
    assert np.isnan(curve.columns["smoothed"]).sum() == 1


def test_infinite_values_are_counted_and_do_not_stretch_the_axis(tmp_path):
    value = np.zeros(1000)
    value[[10, 20]], value[30], value[40:45] = np.inf, -np.inf, np.nan
    run = logged_run(tmp_path, {"tag": "loss", "value": value})
    (curve,) = chart(run, pixels=10)
    columns = curve.columns
    assert columns["positive_infinity_count"].tolist() == [2] + [0] * 9
    assert columns["negative_infinity_count"].tolist() == [1] + [0] * 9
    assert columns["nan_count"].tolist() == [5] + [0] * 9
    assert columns["min"].tolist() == columns["max"].tolist() == [0.0] * 10


@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_a_training_that_diverged_has_gaps_and_counts(tmp_path, odd):
    value = np.append(np.ones(500), np.full(500, odd))
    run = logged_run(tmp_path, {"tag": "loss", "value": value})
    (curve,) = chart(run, pixels=4, smoothing=Smoothing(0.5))
    name = "nan_count" if np.isnan(odd) else "positive_infinity_count"
    assert curve.columns[name].tolist() == [0, 0, 250, 250]
    for column in ("min", "max", "smoothed_first", "smoothed_last", "smoothed_max"):
        assert np.isnan(curve.columns[column]).tolist() == [False, False, True, True]
        assert curve.columns[column][:2].tolist() == [1, 1]
    np.testing.assert_equal(curve.columns["last"].tolist(), [1, 1, odd, odd])


def test_a_resumed_run_is_one_curve_or_one_for_each_attempt(tmp_path):
    run = logged_run(
        tmp_path,
        {"tag": "loss", "value": [4, 3, 2], "step": [1, 2, 3]},
        {"tag": "loss", "value": [2.5, 1], "step": [3, 4], "ts_ns": [9000, 9500], "attempt": 2},
    )
    (curve,) = chart(run, ["loss"])
    assert curve.attempt is None and curve.columns["value"].tolist() == [4, 3, 2.5, 1]
    assert curve.facts["superseded"] == 1
    assert [(one["attempt"], one["first_step"], one["points"]) for one in curve.attempts] == [
        (1, 1, 3), (2, 3, 2)
    ]  # fmt: skip
    (over_time,) = chart(run, ["loss"], x="relative")
    assert over_time.columns["value"].tolist() == [4, 3, 2, 2.5, 1]
    curves = chart(run, ["loss"], by_attempt=True)
    assert [(one.attempt, one.columns["value"].tolist()) for one in curves] == [
        (1, [4, 3, 2]), (2, [2.5, 1])
    ]  # fmt: skip


def test_time_is_that_of_the_clock_and_relative_that_of_the_run(tmp_path):
    run = logged_run(tmp_path, {"tag": "loss", "value": range(100)})
    run.manifest.started_unix_ns = 10**18
    (curve,) = chart(run, x="time", begin=10**18 + 20_000, end=10**18 + 29_999)
    assert (curve.first_x, curve.last_x) == (10**18, 10**18 + 99_000)
    assert curve.points_in_range == 10
    (relative,) = chart(run, x="relative", begin=20_000, end=29_999)
    assert relative.columns["step"].tolist() == curve.columns["step"].tolist()
    assert relative.last_x == 99_000


def test_pixels_are_exact_for_times_that_floats_cannot_tell_apart(tmp_path):
    first = 2**60
    ts_ns = [first + n for n in range(64)]
    run = logged_run(tmp_path, {"tag": "loss", "value": range(64), "ts_ns": ts_ns})
    (curve,) = chart(run, x="relative", pixels=32)
    assert curve.columns["count"].tolist() == [2] * 32
    assert curve.columns["first"].tolist() == list(range(0, 64, 2))


def test_curves_share_their_stretch_and_ranks_are_apart(tmp_path):
    logged_run(tmp_path, {"tag": "loss", "value": range(10)}, rank=0)
    run = logged_run(
        tmp_path, {"tag": "loss", "value": range(40)}, {"tag": "lr", "value": [1]}, rank=1
    )
    curves = chart(run, pixels=4)
    assert [(one.rank, one.tag, one.points) for one in curves] == [
        (0, "loss", 10), (1, "loss", 40), (1, "lr", 1)
    ]  # fmt: skip
    assert curves[0].columns["pixel"].tolist() == [0] and not curves[0].is_exact
    assert curves[1].columns["count"].tolist() == [10] * 4
    (only,) = chart(run, ["loss"], rank=1)
    assert only.points == 40


def test_points_without_a_step_are_counted(tmp_path):
    run = logged_run(tmp_path, {"tag": "loss", "value": [1, 2], "step": [None, None]})
    (curve,) = chart(run)
    assert (curve.points, curve.first_x, curve.facts["without_step"]) == (0, None, 2)
    (curve,) = chart(run, x="relative")
    assert curve.columns["value"].tolist() == [1, 2]


def test_the_same_curve_is_smoothed_once(spiked, monkeypatch):
    from strobe.analyse.metrics import chart as module

    _, charts = spiked
    calls = []
    smooth = module.smoothed
    monkeypatch.setattr(module, "smoothed", lambda *given: calls.append(1) or smooth(*given))
    for begin in (0, 1000, 50_000):
        charts.chart(["loss"], begin=begin, smoothing=Smoothing(0.42))
    assert calls == [1]


@pytest.mark.parametrize(
    "given, words",
    [
        ({"tags": ["los"]}, "no scalar is named 'los'"),
        ({"x": "epoch"}, "'epoch' is not an axis"),
        ({"pixels": 0}, "cannot be 0 pixels wide"),
        ({"begin": 5, "end": 4}, "ends before it begins"),
        ({"rank": 7}, "rank 7 logged no scalars"),
        ({"smoothing": Smoothing(2)}, "weight or a half-life"),
    ],
)
def test_what_cannot_be_drawn_is_refused(spiked, given, words):
    with pytest.raises(UsageError, match=words):
        spiked[1].chart(**given)


def test_with_a_half_life_points_without_a_time_are_not_smoothed(tmp_path):
    run = logged_run(
        tmp_path, {"tag": "loss", "value": [1, 50, 3], "ts_ns": [0, None, 1000], "step": [1, 2, 3]}
    )
    (curve,) = chart(run, smoothing=Smoothing(half_life_ns=1000))
    assert curve.columns["value"].tolist() == [1, 50, 3]
    np.testing.assert_allclose(curve.columns["smoothed"], [1, np.nan, (3 + 0.5) / 1.5])


def test_what_is_automatic_and_what_the_script_logs_are_two_curves(tmp_path):
    run = logged_run(
        tmp_path,
        {"tag": "loss", "value": [3, 2], "source": "strobe.log"},
        {"tag": "loss", "value": [30, 20, 10], "source": "automatic"},
    )
    curves = chart(run, ["loss"], smoothing=Smoothing(0.5))
    assert [(one.source, one.columns["value"].tolist()) for one in curves] == [
        ("automatic", [30, 20, 10]), ("strobe.log", [3, 2])
    ]  # fmt: skip
    assert curves[0].columns["smoothed"][0] == 30 and curves[1].columns["smoothed"][0] == 3
