import pytest

from strobe.advise.finding import Clear, Finding
from strobe.advise.rules import double_precision
from tests.advise.operators import Op, training

LENGTHS = {"forward": 100, "backward": 100}


def judged(folder, **ops):
    return double_precision.check(training(folder, lengths_us=LENGTHS, **ops))


def test_what_float64_operators_lose_is_lost(tmp_path):
    verdict = judged(
        tmp_path,
        forward=[Op("aten::mm", 82, [[64, 64], [64, 64]], "double", "net.fc")],
        backward=[Op("aten::mm", 50, [[64, 64], [64, 64]], "float")],
    )
    # 80 us beyond the call itself, 55% of it, of 200.
    assert isinstance(verdict, Finding) and abs(verdict.share - 0.22) < 1e-6
    assert verdict.expected_speedup == pytest.approx(200 / 156)
    # 45% and 65% of the 80 us.
    assert verdict.speedup_range == pytest.approx((200 / 164, 200 / 148))
    assert verdict.where == "net.fc" and "float32" in verdict.fixes[0]
    assert verdict.title == "Operators compute in float64 for 41% of step time."
    assert "`aten::mm` in net.fc" in verdict.why


def test_a_convolution_of_torch_loses_more(tmp_path):
    conv = Op("aten::convolution_backward", 82, [[8, 64, 64], [64, 64, 3]], "double", "net.conv")
    verdict = judged(tmp_path, backward=[conv])
    assert isinstance(verdict, Finding) and verdict.share == pytest.approx(0.75 * 80 / 200)
    assert verdict.speedup_range == pytest.approx((200 / (200 - 48), 200 / (200 - 70.4)))


def test_operators_that_xla_compiled_compute_in_f64(tmp_path):
    product = Op("dot.4", 82, [[64, 64], [64, 64]], "f64", "net.fc")
    told = training(tmp_path, lengths_us=LENGTHS, forward=[product])
    told.run.manifest.ranks[0].frameworks["jax"] = "0.10.2"
    verdict = double_precision.check(told)
    assert isinstance(verdict, Finding) and abs(verdict.share - 0.2) < 1e-6
    assert "jax_enable_x64" in verdict.fixes[0]


def test_single_numbers_and_short_calls_do_not_count(tmp_path):
    numbers = [Op("aten::mul", 40, [[64, 64], []], "double")]
    numbers[0].dtype = "float"
    many = [Op("aten::add", 2, [[8], [8]], "double")] * 40
    assert isinstance(judged(tmp_path / "a", forward=numbers), Clear)
    assert isinstance(judged(tmp_path / "b", forward=many), Clear)
    single = [Op("aten::mul", 90, [[], [1]], "double")]
    assert isinstance(judged(tmp_path / "c", forward=single), Clear)
