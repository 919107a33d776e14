"""Times are worked out by hand: steps are 100 µs long, seven of ten are judged."""

from strobe.advise.evidence.device_model import device_times, no_device
from strobe.advise.finding import CannotTell, Clear
from strobe.advise.training import Training
from tests.advise.device_drawings import Drawing
from tests.advise.drawings import same, steps
from tests.helpers import make_run

JUDGED = 7  # of ten steps; the first three are warm-up


def mixed():
    """Busy 10..40 and 45..65, of which 5 µs are a collective alone; the kernel at 45 lay ready
    since 30, the one at 10 was launched at 9; the host waits for the device 40..60."""
    drawing = Drawing().steps()
    drawing.launched("kernel", "gemm", 9, 10, 40)
    drawing.launched("kernel", "add", 30, 45, 60)
    drawing.launched("collective", "nccl", 31, 55, 65, stream="s9@cuda:0")
    drawing.host("sync", "cudaStreamSynchronize", 40, 60)
    return drawing


def test_parts_of_the_devices_time_add_up(tmp_path):
    (time,) = device_times(mixed().training(tmp_path))
    assert (time.rank, time.device, time.steps) == (0, "cuda:0", JUDGED)
    assert time.total_ns == JUDGED * 100_000
    assert time.compute_ns == JUDGED * 45_000
    assert time.communication_ns == JUDGED * 5_000
    assert time.own_ns == JUDGED * 5_000  # 40..45: launched at 30
    assert time.late_ns == JUDGED * 45_000  # 65..100 and 0..10
    assert time.host_wait_ns == JUDGED * 20_000
    parts = (time.compute_ns, time.communication_ns, time.memory_ns, time.own_ns, time.late_ns)
    assert sum(parts) == time.total_ns


def test_a_step_without_waits_lasts_as_long_as_the_slower_needs(tmp_path):
    (time,) = device_times(mixed().training(tmp_path))
    # The host needs 100 - 20, the device 45 + 5 + 5.
    assert time.without_host_waits_ns() == JUDGED * 80_000
    assert time.without_device_work_ns(JUDGED * 10_000) == JUDGED * 90_000
    assert time.without_device_work_ns(JUDGED * 30_000) == JUDGED * 80_000


def test_a_host_that_keeps_ahead_is_no_limit(tmp_path):
    drawing = Drawing().steps()
    drawing.launched("kernel", "gemm", -1, 0, 98)
    (time,) = device_times(drawing.training(tmp_path))
    assert time.late_ns == JUDGED * 2_000
    assert time.without_device_work_ns(JUDGED * 50_000) == JUDGED * 50_000


def test_idle_while_the_loop_waits_for_data_is_known(tmp_path):
    drawing = Drawing().steps(phases={"gap": 50, "forward": 50})
    drawing.host("data", "next", 0, 45)
    drawing.launched("kernel", "gemm", 50, 55, 100)
    (time,) = device_times(drawing.training(tmp_path))
    assert time.late_ns == JUDGED * 55_000 and time.data_ns == JUDGED * 45_000


def test_calls_that_copy_pageable_memory_are_waits_and_others_are_not(tmp_path):
    drawing = Drawing().steps()
    drawing.launched("kernel", "gemm", 0, 1, 50)
    copies = drawing.host("runtime", "cudaMemcpyAsync", 10, 52)
    drawing.work("memcpy", "copy", 50, 52, copies, direction="device to host",
                 host_memory="pageable", bytes=8)  # fmt: skip
    drawing.launched("memcpy", "copy", 60, 70, 80, direction="host to device",
                     host_memory="pinned", bytes=8)  # fmt: skip
    (time,) = device_times(drawing.training(tmp_path))
    assert time.host_wait_ns == JUDGED * 42_000


def test_work_of_unknown_launch_makes_its_gap_the_devices_own(tmp_path):
    drawing = Drawing().steps()
    drawing.work("kernel", "gemm", 0, 60)
    (time,) = device_times(drawing.training(tmp_path))
    # The last gap, at the end, has no work behind it.
    assert time.unknown_ns == time.own_ns == (JUDGED - 1) * 40_000


def test_steps_full_recording_slowed_are_judged_if_no_others_have_device_work(tmp_path):
    drawing = steps(*same({"forward": 100}, 12), window=(11, 12))
    drawing += "0/s7@cuda:0 kernel:gemm 1000000..1050000 step=11\n"
    (time,) = device_times(Training(make_run(tmp_path, drawing)))
    assert (time.steps, time.compute_ns) == (1, 50_000)


def test_without_a_device_there_is_nothing_that_could_wait(tmp_path):
    training = Drawing().steps().training(tmp_path, devices=("cpu",))
    assert device_times(training) == []
    assert isinstance(no_device(training), Clear)


def test_a_device_that_is_there_but_was_not_recorded_cannot_be_judged(tmp_path):
    training = Drawing().steps().training(tmp_path, devices=("cuda:0 Tesla V100",))
    assert isinstance(no_device(training), CannotTell)
