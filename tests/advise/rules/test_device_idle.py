import pytest

from strobe.advise.finding import CannotTell, Clear, Finding
from strobe.advise.rules import device_idle
from tests.advise.device_drawings import Drawing
from tests.advise.drawings import of_framework


def launch_bound(busy_us, launches=10, phases=None):
    """The host launches a kernel every 100/launches µs, each of `busy_us`."""
    drawing = Drawing().steps(phases=phases)
    every = 100 // launches
    for number in range(launches):
        start = number * every
        drawing.launched("kernel", "add", start, start + 1, start + 1 + busy_us)
    return drawing


def test_a_host_that_launches_too_slowly_is_found(tmp_path):
    verdict = device_idle.check(launch_bound(4).training(tmp_path))
    assert isinstance(verdict, Finding)
    assert verdict.share == pytest.approx(0.6)
    assert verdict.expected_speedup == pytest.approx(2.5)
    assert verdict.title == (
        "Device cuda:0 spends about 60% of step time waiting for the host, mostly in the forward "
        "pass."
    )
    assert verdict.why == "Each step launches 10 kernels and copies, one every 10.0 µs."
    assert "torch.compile" in verdict.fixes[0] and not verdict.is_certain


def test_idling_in_the_update_asks_for_a_fused_optimizer(tmp_path):
    phases = {"forward": 20, "update": 80}
    verdict = device_idle.check(launch_bound(4, phases=phases).training(tmp_path))
    assert "fused=True" in verdict.fixes[0]


@pytest.mark.parametrize(("busy_us", "kind"), [(8.95, Finding), (9.05, Clear)])
def test_either_side_of_the_threshold(tmp_path, busy_us, kind):
    assert isinstance(device_idle.check(launch_bound(busy_us).training(tmp_path)), kind)


def test_waits_for_data_and_for_the_device_are_others_rules(tmp_path):
    drawing = launch_bound(1)
    drawing.host("data", "next", 0, 98)
    assert isinstance(device_idle.check(drawing.training(tmp_path / "data")), Clear)
    drawing = launch_bound(1)
    drawing.host("sync", "cudaStreamSynchronize", 0, 98)
    assert isinstance(device_idle.check(drawing.training(tmp_path / "sync")), Clear)


def test_a_call_that_holds_most_of_it_is_named(tmp_path):
    drawing = launch_bound(1)
    drawing.host("runtime", "hipFree", 12, 80)
    verdict = device_idle.check(drawing.training(tmp_path))
    assert "mostly inside hipFree" in verdict.title
    assert "empty_cache" in verdict.fixes[0]


def test_a_layer_of_the_framework_is_not_named(tmp_path):
    drawing = launch_bound(1)
    drawing.host("runtime", "PjRtStreamExecutorLoadedExecutable::ExecuteHelper", 12, 80)
    verdict = device_idle.check(drawing.training(tmp_path))
    assert "inside" not in verdict.title


def test_a_compiled_program_does_a_step_in_few_pieces_of_work(tmp_path):
    """A gap of 94 us between steps, in a trace of JAX: the device idles all the while."""
    drawing = Drawing().steps(phases={"gap": 94, "rest": 6})
    for start in (94, 96, 98):
        drawing.launched("kernel", "fusion", start, start + 1, start + 2, operator="fusion")
    training = drawing.training(tmp_path / "unknown")
    assert isinstance(device_idle.check(training), CannotTell)
    training = drawing.training(tmp_path / "jax")
    of_framework(training.run, "jax")
    verdict = device_idle.check(training)
    assert isinstance(verdict, Finding) and verdict.title.endswith("mostly between steps.")
    assert verdict.share > 0.9


def test_idling_of_unknown_cause_cannot_be_told(tmp_path):
    drawing = Drawing().steps()
    for start in range(0, 100, 10):
        drawing.work("kernel", "add", start, start + 4)
    verdict = device_idle.check(drawing.training(tmp_path))
    assert isinstance(verdict, CannotTell) and "60%" in verdict.reason


def test_a_step_with_hardly_any_work_was_not_recorded_whole(tmp_path):
    verdict = device_idle.check(launch_bound(4, launches=2).training(tmp_path))
    assert isinstance(verdict, CannotTell)
    assert verdict.reason == "The recording has only 14 kernels or copies in 7 steps."


def test_several_devices_are_named_in_the_plural(tmp_path):
    drawing = launch_bound(4)
    for start in range(0, 100, 10):
        drawing.launched("kernel", "add", start, start + 1, start + 5, stream="s7@cuda:1")
    verdict = device_idle.check(drawing.training(tmp_path))
    assert verdict.title.startswith("The devices spend about 60% of step time waiting for the host")
