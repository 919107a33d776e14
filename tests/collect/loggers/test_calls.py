"""A method that is wrapped works as before, and what it was given is recorded once."""

import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from strobe.collect import recorder
from strobe.collect.loggers import LOGGERS, begin, calls
from strobe.collect.loggers.calls import is_number, named, time_of, wrap
from strobe.collect.start import autostart
from tests.collect.loggers.recording import recording


class Writer:
    """A logger that calls another."""

    def add(self, tag, value, step=None):
        """Its documentation."""
        if value is None:
            raise TypeError("not a number")
        return tag, value, step


class Outer:
    def __init__(self):
        self.writer = Writer()

    def log(self, values, step):
        return [self.writer.add(f"inner/{tag}", value, step) for tag, value in values.items()]


def take(values, writer, tag, value, step=None):
    values.scalars({tag: value}, step)


def take_all(taken, outer, values, step):
    taken.scalars(values, step)


def hook():
    wrap(Writer, "add", "writer", take)
    wrap(Outer, "log", "outer", take_all)


def test_results_errors_and_names_are_those_of_the_method(tmp_path: Path):
    before = Writer.add
    with recording(tmp_path, hook) as found:
        assert Writer.add is not before
        assert (Writer.add.__name__, Writer.add.__doc__) == ("add", "Its documentation.")
        assert Writer().add("loss", 0.5, step=3) == ("loss", 0.5, 3)
        with pytest.raises(TypeError, match="not a number") as raised:
            Writer().add("loss", None)
        assert raised.value.__context__ is None
        assert found.logged.points("loss") == [(3, 0.5)]
    assert Writer.add is before
    assert found.warnings == []


def test_of_loggers_that_call_each_other_the_outermost_counts(tmp_path: Path):
    with recording(tmp_path, hook) as found:
        Outer().log({"loss": 0.5, "accuracy": 0.25}, 7)
        Writer().add("direct", 2.0, 8)
        rows = found.logged["scalars"]
    assert [(row["tag"], row["step"], row["value"], row["source"]) for row in rows] == [
        ("loss", 7, 0.5, "outer"), ("accuracy", 7, 0.25, "outer"), ("direct", 8, 2.0, "writer"),
    ]  # fmt: skip


def test_a_call_of_another_thread_is_not_inside_of_this_one(tmp_path: Path):
    class Slow(Writer):
        def add(self, *given):
            other = threading.Thread(target=lambda: Writer().add("thread", 1.0, 1))
            other.start()
            other.join()

    with recording(tmp_path, hook) as found:
        outer = Outer()
        outer.writer = Slow()
        outer.log({"loss": 0.5}, 1)
        assert found.logged.points("thread") == [(1, 1.0)]


def test_a_value_that_cannot_be_taken_is_reported_once_and_the_call_succeeds(tmp_path: Path):
    def broken(values, *_):
        raise KeyError("step")

    with recording(tmp_path, lambda: wrap(Writer, "add", "broken tool", broken)) as found:
        for _ in range(3):
            assert Writer().add("loss", 1.0, 2) == ("loss", 1.0, 2)
    (warning,) = found.warnings
    assert "broken tool" in warning
    assert "KeyError: 'step'" in warning


def test_a_method_that_this_version_does_not_have_is_reported(tmp_path: Path):
    with recording(tmp_path, lambda: wrap(Writer, "add_hologram", "writer", take)) as found:
        pass
    (warning,) = found.warnings
    assert "Writer.add_hologram" in warning


def test_without_a_recording_a_wrapped_method_is_only_the_method(tmp_path: Path):
    with recording(tmp_path, hook) as found:
        active, recorder.current = recorder.current, None
        assert Writer().add("loss", 0.5) == ("loss", 0.5, None)
        recorder.current = active
        assert found.logged["scalars"] == []


def test_a_second_recording_does_not_wrap_twice(tmp_path: Path):
    before = Writer.add
    with recording(tmp_path, hook):
        wrapped = Writer.add
        hook()
        assert Writer.add is wrapped
    assert Writer.add is before


def test_a_wrapper_of_somebody_else_around_ours_stays(tmp_path: Path):
    before = Writer.add
    try:
        with recording(tmp_path, hook) as found:
            ours = Writer.add
            Writer.add = lambda *given: ours(*given)
            theirs = Writer.add
            Writer().add("loss", 0.5, 1)
            assert found.logged.points("loss") == [(1, 0.5)]
        assert Writer.add is theirs
        assert Writer().add("loss", 0.5, 1) == ("loss", 0.5, 1)
    finally:
        Writer.add = before


def test_values_may_be_taken_before_a_call_that_changes_them(tmp_path: Path):
    class Popping:
        def log(self, values, step):
            values.clear()

    with recording(tmp_path, lambda: wrap(Popping, "log", "x", take_all, is_before=True)) as found:
        Popping().log({"loss": 0.5}, 1)
        assert found.logged.points("loss") == [(1, 0.5)]


def test_arguments_by_name_have_their_defaults(tmp_path: Path):
    given = []
    take_named = named(Writer, "add", lambda values, found: given.append(dict(found)))
    writer = Writer()
    take_named(None, writer, "loss", value=2)
    assert given == [{"self": writer, "tag": "loss", "value": 2, "step": None}]


def test_a_time_of_the_clock_becomes_one_of_the_recording(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(calls, "monotonic_ns", lambda: 5_000_000_000)
    monkeypatch.setattr(calls, "time_ns", lambda: 1_700_000_000_000_000_000)
    values = calls.Values(None, "x", 7, None)
    assert time_of(values, None) == 7
    assert time_of(values, 1_699_999_998.5) == 3_500_000_000


@pytest.mark.parametrize(
    "value", [1, 0.5, True, np.float32(1), np.array([[2.0]]), torch.tensor(1), torch.ones(1, 1)]
)
def test_numbers_and_what_has_one_element_are_numbers(value):
    assert is_number(value)


@pytest.mark.parametrize(
    "value", [None, "1", b"1", {}, {"a": 1}, [1], (1,), np.zeros(2), torch.zeros(2, 2), object()]
)
def test_everything_else_is_not(value):
    assert not is_number(value)


@pytest.mark.parametrize("metrics, count", [(True, len(LOGGERS)), (False, 0)])
def test_the_option_of_metrics_switches_it_off(
    metrics: bool, count: int, monkeypatch: pytest.MonkeyPatch
):
    awaited = []
    monkeypatch.setattr(autostart, "when_imported", lambda package, _: awaited.append(package))
    begin(SimpleNamespace(options=SimpleNamespace(metrics=metrics)))
    assert len(awaited) == count


def test_every_logger_of_the_registry_has_its_function():
    import importlib

    assert list(LOGGERS) == sorted(LOGGERS, key=str.casefold)
    for path in LOGGERS.values():
        module, name = path.split(":")
        assert callable(getattr(importlib.import_module(module), name))
