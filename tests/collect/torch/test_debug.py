import sys
import warnings
from types import SimpleNamespace

import pytest

from strobe.collect.torch.debug import TorchDebug, _stack_cost

torch = pytest.importorskip("torch")


@pytest.fixture
def seen():
    """The places that are noted while anomaly detection is hooked."""
    places = []
    recorder = SimpleNamespace(
        places=SimpleNamespace(see=lambda what, frame, **more: places.append(frame.f_lineno)),
        broke=lambda where, error: pytest.fail(f"{where}: {error}"),
    )
    undo = TorchDebug(recorder).install(torch)
    was_on = torch.is_anomaly_enabled()
    yield places
    for call in undo:
        call()
    torch.set_anomaly_enabled(was_on)


def test_the_line_that_turns_it_on_is_noted(seen):
    torch.autograd.set_detect_anomaly(False)
    assert seen == []
    torch.autograd.set_detect_anomaly(True)
    assert seen == [sys._getframe().f_lineno - 1]


def test_the_warning_of_torch_names_the_users_line(seen):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with torch.autograd.detect_anomaly():
            assert torch.is_anomaly_enabled()
    assert caught[0].filename == __file__
    assert len(seen) == 1 and not torch.is_anomaly_enabled()


def test_a_stack_trace_costs_microseconds():
    stack_ns, frame_ns = _stack_cost(torch)
    assert 1_000 < stack_ns < 100_000_000 and frame_ns >= 0
