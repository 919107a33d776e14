import pytest

from strobe.advise.finding import Clear, Finding
from strobe.advise.rules import slow_transfer
from tests.advise.device_drawings import Drawing


def copying(end, memory="pageable", direction="host to device"):
    """A copy from 0 to `end`, half of it beside a kernel that ends with the step."""
    drawing = Drawing().steps()
    drawing.launched("memcpy", "copy", -1, 0, end, direction=direction, host_memory=memory,
                     bytes=40_000)  # fmt: skip
    return drawing.launched("kernel", "gemm", 0, end / 2, 100, stream="s9@cuda:0")


def test_only_the_part_beside_nothing_is_the_cost(tmp_path):
    verdict = slow_transfer.check(copying(40, memory="pinned").training(tmp_path))
    assert isinstance(verdict, Finding)
    assert verdict.share == pytest.approx(0.2)
    assert verdict.expected_speedup == pytest.approx(1.25)
    # Seven copies of 40,000 bytes at 40 µs each.
    assert verdict.title == (
        "The device spends 20% of step time waiting for copies from pinned host memory."
    )
    assert verdict.why.startswith("The copies move 273 KiB at 1.00 GB/s.")
    assert "separate stream" in verdict.fixes[0]


@pytest.mark.parametrize(("memory", "name"), [
    ("pageable", "pageable host memory."), (None, "host memory."),
])  # fmt: skip
def test_copies_to_the_host_name_its_memory(tmp_path, memory, name):
    drawing = copying(40, memory=memory, direction="device to host")
    verdict = slow_transfer.check(drawing.training(tmp_path))
    assert verdict.title.endswith(f"of step time waiting for copies to {name}")
    assert verdict.fixes[0].startswith("Copy less")


def test_pageable_memory_is_to_be_pinned(tmp_path):
    verdict = slow_transfer.check(copying(40).training(tmp_path))
    assert "pin_memory=True" in verdict.fixes[0]


@pytest.mark.parametrize(("end", "kind"), [(9, Clear), (11, Finding)])
def test_either_side_of_the_threshold(tmp_path, end, kind):
    verdict = slow_transfer.check(copying(end, memory="pinned").training(tmp_path))
    assert isinstance(verdict, kind)


def test_what_is_beside_computation_is_not_counted(tmp_path):
    verdict = slow_transfer.check(copying(8).training(tmp_path))
    assert verdict == Clear("7 copies between host and device take 4.0% of step time that nothing "
                            "overlaps, and cost 4.0%.")  # fmt: skip


def test_copies_within_the_device_are_none(tmp_path):
    drawing = copying(60, memory=None, direction="device to device")
    verdict = slow_transfer.check(drawing.training(tmp_path))
    assert verdict == Clear("No copy between host and device was recorded.")


def test_training_on_the_host_is_clear(tmp_path):
    assert isinstance(slow_transfer.check(Drawing().steps().training(tmp_path)), Clear)
