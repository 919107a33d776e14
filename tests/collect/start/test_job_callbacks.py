"""The SummaryMonitor of a job's file, added to a Model that trains."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest

import strobe
from strobe.collect.recorder import Recorder
from strobe.collect.start import job_callbacks
from strobe.model.options import Options


@pytest.fixture
def model(monkeypatch):
    class Model:
        def train(self, epoch: int, data: Any, callbacks: Any = None, sink: bool = False) -> Any:
            return callbacks

    monkeypatch.setitem(sys.modules, "mindspore.train.model", SimpleNamespace(Model=Model))
    return Model


def added(tmp_path, **options: Any) -> job_callbacks.SummaryCallback:
    made = job_callbacks.SummaryCallback(
        Recorder(tmp_path / "run", Options(), "test"), options, "job.yaml"
    )
    made.hook_in()
    return made


def test_the_monitor_follows_the_scripts_own_callbacks(model, tmp_path):
    made = added(tmp_path, collect_freq=3)
    (monitor,) = model().train(1, [])
    assert isinstance(monitor, strobe.SummaryCollector) and monitor.options.collect_freq == 3
    own = ["first"]
    assert model().train(1, [], own) == ["first", monitor] and own == ["first"]
    assert model().train(1, [], callbacks="one") == ["one", monitor]
    made.close()
    assert model().train(1, []) is None


def test_a_training_with_a_summary_of_its_own_keeps_it(model, tmp_path):
    class SummaryCollector:  # MindSpore's
        pass

    added(tmp_path)
    own = [SummaryCollector()]
    assert model().train(1, [], own) is own


def test_a_wrong_call_is_reported_by_the_framework(model, tmp_path):
    added(tmp_path)
    with pytest.raises(TypeError, match="epoch"):
        model().train()


def test_a_training_that_does_not_call_it_is_warned(model, tmp_path, capsys):
    made = added(tmp_path)
    made.close()
    assert capsys.readouterr().err == ""  # nothing trained
    made._recorder.rank = 0
    made.close()
    assert "job.yaml" in capsys.readouterr().err
