import math

import numpy as np
import pytest

from strobe.analyse.comparison.steps import PARTS, TypicalStep, interval, typical_step
from tests.advise.drawings import same, steps
from tests.helpers import make_run


def typical(step_ns, noise_ratio, batches=8, steps=40):
    return TypicalStep(step_ns, {}, step_ns, steps, noise_ratio, batches)


def test_the_middle_half_of_the_steps_speaks_and_its_parts_add_up(tmp_path):
    # Twelve steps, three of warm-up; of nine the two shortest and the two longest are left out.
    lengths = [9, 9, 9, 10, 11, 12, 13, 14, 15, 16, 90, 91]
    drawing = steps(*({"gap": 3, "forward": us - 3} for us in lengths))
    found = typical_step(make_run(tmp_path, drawing))
    assert found.step_ns == 14_000 and found.steps == 9
    assert found.parts_ns == {**dict.fromkeys(PARTS, 0), "gap": 3_000, "forward": 11_000}
    assert found.mean_ns == round(sum(lengths[3:]) / 9 * 1000)


def test_waiting_for_data_is_taken_out_of_the_gap(tmp_path):
    drawing = steps(*same({"gap": 10, "forward": 20}, 4))
    drawing += "".join(f"0/main data:next {n * 30_000}..{n * 30_000 + 4_000}\n" for n in range(4))
    found = typical_step(make_run(tmp_path, drawing)).parts_ns
    assert (found["data"], found["gap"], found["forward"]) == (4_000, 6_000, 20_000)


def test_parts_add_up_to_the_nanosecond_whatever_rounding_does(tmp_path):
    drawing = "".join(
        steps(*({part: 1 + (n * rank + more) % 3 for more, part in enumerate(
            ("gap", "forward", "backward", "update", "rest"))} for n in range(21)), rank=rank)
        for rank in range(3))  # fmt: skip
    found = typical_step(make_run(tmp_path, drawing))
    assert sum(found.parts_ns.values()) == found.step_ns


def test_what_rounding_leaves_over_goes_to_the_longest():
    from strobe.analyse.comparison.steps import _adding_up

    assert _adding_up({"gap": 0.4, "forward": 1.4, "update": 0.4}, 2) == {
        "gap": 0, "forward": 2, "update": 0}  # fmt: skip


def test_noise_is_that_of_batches():
    """Eight batches of five steps, worked out with numpy by hand."""
    from strobe.analyse.comparison.steps import _noise

    lengths = np.random.default_rng(5).lognormal(10, 0.1, 40)
    medians = np.log(np.median(lengths.reshape(8, 5), axis=1))
    noise, batches = _noise(lengths)
    assert batches == 8 and noise == pytest.approx(medians.std(ddof=1) / math.sqrt(8))


def test_an_interval_by_hand():
    found = interval(typical(100, 0.03), typical(120, 0.04))
    # sqrt(0.03² + 0.04² + 0.015²) = 0.052202; t of 14 degrees of freedom is 2.14.
    assert found.ratio == pytest.approx(1.2)
    assert found.high == pytest.approx(1.2 * math.exp(2.14 * 0.052202), rel=1e-4)
    assert found.low == pytest.approx(1.2 / math.exp(2.14 * 0.052202), rel=1e-4)


def test_too_few_steps_have_no_interval(tmp_path):
    few = typical_step(make_run(tmp_path, steps(*same({"forward": 5}, 3))))
    found = interval(few, typical(100, 0.01))
    assert (few.noise_ratio, found.low, found.high) == (None, None, None)


def test_runs_of_the_same_noise_are_rarely_told_apart():
    """Steps that resemble their neighbours: of 200 pairs alike, at most a few seem different."""
    from strobe.analyse.comparison.steps import _noise

    random = np.random.default_rng(7)
    apart = 0
    for _ in range(200):
        pair = []
        for _ in range(2):
            drift = np.cumsum(random.normal(0, 0.01, 60)) * 0.3
            lengths = 1e6 * np.exp(drift - drift.mean() + random.normal(0, 0.05, 60))
            noise, batches = _noise(lengths)
            pair.append(typical(round(float(np.median(lengths))), noise, batches))
        found = interval(*pair)
        apart += found.low > 1 or found.high < 1
    assert apart <= 10


def test_a_run_without_steps_has_no_typical_one(tmp_path):
    assert typical_step(make_run(tmp_path, "0/main op:aten::mm 0..10")) is None
