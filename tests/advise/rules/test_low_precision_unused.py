import pytest

from strobe.advise.finding import CannotTell, Clear, Finding
from strobe.advise.rules import low_precision_unused
from tests.advise.device_drawings import Drawing


def multiplying(precision, end=60):
    """A product from 0 to `end`, then something else to the end of the step."""
    drawing = Drawing().steps()
    drawing.launched("kernel", "sgemm", -2, 0, end, precision=precision, bytes=1)
    return drawing.launched("kernel", "relu", -1, end, 100, bytes=1)


def judged(tmp_path, drawing, device="Tesla V100-SXM2-32GB"):
    return low_precision_unused.check(drawing.training(tmp_path, (f"cuda:0 {device}",)))


def test_products_in_float32_could_take_half_their_time(tmp_path):
    verdict = judged(tmp_path, multiplying("float32"))
    assert isinstance(verdict, Finding)
    assert verdict.share == pytest.approx(0.3)
    assert verdict.expected_speedup == pytest.approx(1 / 0.7)
    assert verdict.title == ("Matrix products run in float32, which costs about 30% of step time.")
    assert "60% of step time" in verdict.why and "GradScaler" in verdict.fixes[0]
    assert verdict.evidence[0].rows[0]["name"] == "sgemm"


def test_a_device_with_tf32_needs_one_line(tmp_path):
    verdict = judged(tmp_path, multiplying("float32"), "NVIDIA A100-SXM4-80GB")
    assert 'torch.set_float32_matmul_precision("high")' in verdict.fixes[0]


@pytest.mark.parametrize("precision", ["tf32", "bfloat16", "float16"])
def test_lower_precision_is_clear(tmp_path, precision):
    assert isinstance(judged(tmp_path, multiplying(precision)), Clear)


def test_a_device_without_the_units_is_clear(tmp_path):
    verdict = judged(tmp_path, multiplying("float32"), "NVIDIA GeForce GTX 1080")
    assert verdict == Clear(
        "NVIDIA GeForce GTX 1080 has no units for matrix products in lower precision."
    )


@pytest.mark.parametrize(("end", "kind"), [(9, Clear), (11, Finding)])
def test_either_side_of_the_threshold(tmp_path, end, kind):
    assert isinstance(judged(tmp_path, multiplying("float32", end)), kind)


def test_a_host_that_cannot_keep_up_leaves_no_gain(tmp_path):
    drawing = Drawing().steps()
    drawing.launched("kernel", "sgemm", 10, 11, 71, precision="float32", bytes=1)
    verdict = judged(tmp_path, drawing)
    assert isinstance(verdict, Clear) and verdict.why.endswith("would save 0%.")


def test_kernels_that_do_not_tell_cannot_be_judged(tmp_path):
    assert isinstance(judged(tmp_path, multiplying(None)), CannotTell)
