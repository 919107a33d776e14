import pytest

from strobe.advise.finding import Clear, Finding
from strobe.advise.rules import host_sync
from tests.advise.device_drawings import Drawing


def waiting(wait_end, work_end):
    """The host launches in 30 µs and waits for the device until `wait_end`; work ends there."""
    drawing = Drawing().steps()
    drawing.launched("kernel", "gemm", 29, 30, work_end)
    frames = drawing.host("python", "train.py(31):~train", 30, wait_end)
    items = drawing.host("op", "aten::item", 30, wait_end, parent=frames)
    drawing.host("sync", "cudaStreamSynchronize", 30, wait_end, parent=items)
    return drawing


def test_a_wait_after_which_the_device_starves_is_found_with_its_line(tmp_path):
    # The host needs 100 - 60 = 40, the device works 60: without the wait a step takes 60.
    verdict = host_sync.check(waiting(90, 90).training(tmp_path))
    assert isinstance(verdict, Finding)
    assert verdict.share == pytest.approx(0.4) and verdict.where == "train.py:31"
    assert verdict.expected_speedup == pytest.approx(1 / 0.6)
    assert verdict.title == "Synchronizing with the device costs 40% of step time."
    assert verdict.why.startswith(
        "The host spends 60% of step time waiting for the device because of aten::item at "
        "train.py:31. "
    )
    assert "train.py:31" in verdict.fixes[0] and ".item()" in verdict.fixes[0]
    assert {row["dur_ns"] for row in verdict.evidence[0].rows} == {60_000}


def test_a_wait_for_a_device_that_is_always_busy_costs_nothing(tmp_path):
    drawing = Drawing().steps()
    drawing.launched("kernel", "gemm", -20, 0, 100)
    drawing.host("sync", "cudaStreamSynchronize", 20, 90)
    verdict = host_sync.check(drawing.training(tmp_path))
    assert verdict == Clear(
        "The host spends 70% of step time waiting for the device, which costs 0%."
    )


@pytest.mark.parametrize(("wait_us", "kind"), [(4, Clear), (6, Finding)])
def test_either_side_of_the_threshold(tmp_path, wait_us, kind):
    assert isinstance(host_sync.check(waiting(30 + wait_us, 60).training(tmp_path)), kind)


def test_a_copy_of_pageable_memory_gets_its_own_fix(tmp_path):
    drawing = Drawing().steps()
    drawing.launched("kernel", "gemm", 59, 60, 80)
    copies = drawing.host("runtime", "cudaMemcpyAsync", 0, 40)
    drawing.work("memcpy", "copy", 30, 40, copies, direction="host to device",
                 host_memory="pageable", bytes=8)  # fmt: skip
    verdict = host_sync.check(drawing.training(tmp_path))
    assert "pin_memory=True" in verdict.fixes[0] and len(verdict.fixes) == 2


def test_training_on_the_host_is_clear(tmp_path):
    assert isinstance(host_sync.check(Drawing().steps().training(tmp_path)), Clear)


def test_waits_at_several_places_name_the_part_of_the_worst(tmp_path):
    drawing = waiting(78, 90)
    items = drawing.host("op", "aten::nonzero", 78, 90)
    drawing.host("sync", "cudaStreamSynchronize", 78, 90, parent=items)
    verdict = host_sync.check(drawing.training(tmp_path))
    assert "60% of step time waiting for the device, 80% of that because of aten::item" in (
        verdict.why
    )
