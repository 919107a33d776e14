import numpy as np
import pytest

from strobe.analyse.comparison.metrics import LEVELS, METRICS, compare_metrics
from strobe.analyse.comparison.metrics_verdict import as_dicts, metrics_verdict
from strobe.analyse.comparison.runs import TABLES, compare
from strobe.errors import MissingData
from strobe.messages import CHINESE, in_language
from tests.show.event_files.drawings import curve, metrics_run

NAN = float("nan")


def falling(rate, end=0.0, count=200):
    return [end + (10 - end) * 0.5 ** (step * rate) for step in range(count)]


def pair(tmp_path, a, b):
    return [metrics_run(tmp_path / name, {"scalars": rows}) for name, rows in (("a", a), ("b", b))]


def compared(tmp_path, a, b):
    found = compare_metrics(*pair(tmp_path, a, b))
    metrics = as_dicts(found.metrics, METRICS.column_names)
    return metrics, as_dicts(found.levels, LEVELS.column_names), found


def test_shared_tags_with_final_and_best_values(tmp_path):
    a = curve("loss", [5.0, 1.0] * 50) + curve("accuracy", [0.5] * 100) + curve("only a", [1.0])
    b = curve("loss", [3.0] * 100) + curve("accuracy", [0.5] * 99 + [0.9]) + curve("only b", [1.0])
    (loss, accuracy), _, _ = compared(tmp_path, a, b)
    assert (loss["tag"], loss["better"], accuracy["better"]) == ("loss", "lower", "higher")
    assert (loss["a_final"], loss["b_final"], loss["difference"]) == (3.0, 3.0, 0.0)
    assert (loss["a_best"], loss["a_best_step"], loss["b_best"]) == (1.0, 1, 3.0)
    assert (accuracy["b_final"], accuracy["b_best"], accuracy["b_best_step"]) == (0.5, 0.9, 99)
    assert loss["is_different"] is False and loss["a_values"] == loss["a_last_step"] + 1 == 100


def test_levels_are_on_the_way_to_the_end_that_both_reached(tmp_path):
    a, b = falling(0.1, end=2.0), falling(0.2, end=1.0)
    _, levels, _ = compared(tmp_path, curve("loss", a), curve("loss", b))
    assert [row["progress"] for row in levels] == [0.5, 0.9, 1.0]
    last = levels[-1]
    assert last["level"] == pytest.approx(2.0, abs=1e-3)
    assert all(row["b_step"] < row["a_step"] for row in levels)
    assert last["a_ns"] == last["a_step"] * 10**9 and last["b_ns"] == last["b_step"] * 10**9
    # By hand: 1 + 9 * 0.5 ** (0.2 n) is 2.0 at n = 15.85; the median of 5 lags behind by 2.
    assert last["b_step"] == 18


def test_levels_of_what_should_be_high(tmp_path):
    a = curve("accuracy", [1 - value / 10 for value in falling(0.05, end=3.0)])
    b = curve("accuracy", [1 - value / 10 for value in falling(0.2, end=1.0)])
    _, levels, _ = compared(tmp_path, a, b)
    assert levels[-1]["level"] == pytest.approx(0.7, abs=1e-2)
    assert levels[-1]["b_step"] < levels[-1]["a_step"]


def test_a_run_that_diverges_does_not_reach_the_level(tmp_path):
    a, b = curve("loss", falling(0.1)), curve("loss", falling(0.1, count=20) + [NAN] * 180)
    metrics, levels, found = compared(tmp_path, a, b)
    assert (metrics[0]["b_final"], metrics[0]["difference"]) == (None, None)
    assert (metrics[0]["b_not_finite"], metrics[0]["b_first_not_finite"]) == (180, 20)
    assert levels[-1]["b_step"] is None and levels[-1]["a_step"] is not None
    verdict = metrics_verdict(found.metrics, found.levels, "B")
    assert verdict.startswith("loss: B ends in NaN or infinite values, A at ")
    assert verdict.endswith("; B does not.")


def test_two_that_diverge(tmp_path):
    metrics, levels, found = compared(tmp_path, curve("loss", [NAN]), curve("loss", [NAN]))
    assert levels == [] and metrics[0]["is_different"] is None
    expected = "loss: both A and C end in NaN or infinite values."
    assert metrics_verdict(found.metrics, found.levels, "C") == expected


def verdict(tmp_path, a, b, tag="loss"):
    _, _, found = compared(tmp_path, curve(tag, a), curve(tag, b))
    text = metrics_verdict(found.metrics, found.levels, "B")
    assert "{" not in text and "{" not in in_language(text, CHINESE)
    return text


def test_a_difference_beyond_noise_is_a_verdict(tmp_path):
    rng = np.random.default_rng(0)
    a, b = rng.normal(1.0, 0.05, 500), rng.normal(0.5, 0.05, 500)
    assert verdict(tmp_path / "1", a, b).startswith("loss: B ends better, at 0.")
    assert verdict(tmp_path / "2", b, a).startswith("loss: B ends worse, at ")
    assert verdict(tmp_path / "3", a, b, "accuracy").startswith("accuracy: B ends worse")
    assert verdict(tmp_path / "4", a, b, "lr").startswith("lr: B ends lower, at ")
    assert verdict(tmp_path / "5", a, a).startswith("loss: no difference beyond noise, ")


def test_few_values_are_no_verdict(tmp_path):
    text = verdict(tmp_path, [1.0, 0.9], [1.0, 0.1])
    assert "too few values to tell a difference from noise" in text


def test_runs_with_metrics_alone_are_compared(tmp_path):
    a, b = (
        metrics_run(tmp_path / name, {
            "scalars": curve("loss", falling(rate)),
            "hyperparameters": [{"name": "lr", "value": value}, {"name": "n", "value": "1"}],
        })
        for name, rate, value in (("a", 0.1, "0.1"), ("b", 0.2, "0.05"))
    )  # fmt: skip
    found = compare(a, b)
    assert not found.has_steps and not found.is_different and found.steps == []
    assert found.settings == [("hyperparameter lr", "0.1", "0.05")]
    told = found.to_json()
    assert told["verdict"] == told["metrics_verdict"] == found.verdict
    assert told["step_ratio"] is None and [row[0] for row in told["metrics"]["rows"]] == ["loss"]
    assert {table.name.removeprefix("compare-") for table in TABLES} <= set(told)


def test_runs_without_steps_that_share_no_metric_are_an_error(tmp_path):
    a, b = pair(tmp_path, curve("loss", [1.0]), curve("other", [1.0]))
    with pytest.raises(MissingData, match="share no metric"):
        compare(a, b)
