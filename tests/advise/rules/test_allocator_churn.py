import pytest

from strobe.advise.finding import CannotTell, Clear, Finding
from strobe.advise.rules import allocator_churn
from strobe.advise.training import Training
from tests.advise.device_drawings import Drawing
from tests.advise.drawings import same, steps
from tests.helpers import make_run


def judged(tmp_path, *calls, names=("cudaFree", "cudaMalloc")):
    """A kernel from 60 to 95 us of a step of 100 us; calls of the driver before."""
    drawing = Drawing().steps()
    for name, (start, end) in zip(names, calls, strict=False):
        drawing.host("runtime", name, start, end)
    drawing.launched("kernel", "gemm", 58, 60, 95)
    return allocator_churn.check(drawing.training(tmp_path, devices=["cuda:0 H100"]))


def test_memory_is_given_back_in_every_step(tmp_path):
    verdict = judged(tmp_path, (0, 25), (25, 40))
    assert isinstance(verdict, Finding)
    assert verdict.share == pytest.approx(0.4, abs=0.02)
    assert verdict.expected_speedup == pytest.approx(1 / 0.6, rel=0.05)
    assert verdict.fixes[0].startswith("Remove `torch.cuda.empty_cache()` from the training loop")
    assert verdict.title == (
        "Device memory is freed and allocated again in every step, which takes 40% of step time."
    )
    assert verdict.why.startswith("Each step makes 2 driver calls to allocate or free memory.")


def test_other_calls_are_clear(tmp_path):
    verdict = judged(tmp_path, (0, 40), names=("cudaLaunchKernel",))
    assert isinstance(verdict, Clear) and "in none of the 7 steps judged" in verdict.why


def test_few_and_short_calls_are_clear(tmp_path):
    verdict = judged(tmp_path, (0, 2))
    assert isinstance(verdict, Clear) and "(1 per step)" in verdict.why


def test_without_a_device_there_is_nothing_to_judge(tmp_path):
    run = make_run(tmp_path, steps(*same({"forward": 100}, 20)))
    assert isinstance(allocator_churn.check(Training(run)), Clear | CannotTell)
