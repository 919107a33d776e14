import pytest

from strobe.advise.finding import Clear, Finding
from strobe.advise.rules import data_parallel
from tests.advise.device_drawings import Drawing


def judged(tmp_path, **operators):
    drawing = Drawing().steps()
    for name, (start, end) in operators.items():
        drawing.host("op", name, start, end)
    return data_parallel.check(drawing.training(tmp_path, devices=["cuda:0 A", "cuda:1 A"]))


def test_copying_the_model_in_every_step(tmp_path):
    verdict = judged(tmp_path, Scatter=(0, 5), Broadcast=(5, 25), Gather=(60, 65))
    assert isinstance(verdict, Finding) and not verdict.is_certain
    assert verdict.share == pytest.approx(0.3)
    assert verdict.expected_speedup == pytest.approx(1 / 0.7)
    assert "DistributedDataParallel" in verdict.fixes[0]
    assert verdict.title == (
        "nn.DataParallel takes at least 30% of step time to copy the model and the batch."
    )


def test_short_copies_are_clear(tmp_path):
    assert isinstance(judged(tmp_path, Broadcast=(5, 6), Gather=(60, 61)), Clear)


def test_a_gather_of_the_model_itself_is_clear(tmp_path):
    assert isinstance(judged(tmp_path, Gather=(0, 50)), Clear)
