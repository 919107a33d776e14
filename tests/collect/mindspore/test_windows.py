"""What becomes of a window's files, without MindSpore."""

from types import SimpleNamespace

import pytest

from strobe.collect.mindspore.windows import MindSporeWindows
from strobe.collect.steps import StepCount
from strobe.model.options import Options


@pytest.fixture
def windows(tmp_path):
    recorder = SimpleNamespace(run=tmp_path, options=Options(), guarded=lambda call: call)
    return MindSporeWindows(recorder, StepCount())


def test_a_window_without_operators_may_be_due_to_the_disk(windows, tmp_path):
    (tmp_path / "window").mkdir()
    with pytest.raises(OSError, match="is the disk full"):
        windows.write(tmp_path / "window", tmp_path / "stem")


def test_a_window_that_the_scripts_own_profiler_cut_short_says_so(windows, tmp_path, monkeypatch):
    folder = tmp_path / "window"
    folder.mkdir()
    windows._profiler = SimpleNamespace(folder=folder)
    monkeypatch.setattr(windows, "_defer", lambda why: None)
    windows.other_began()
    with pytest.raises(OSError, match="the script's own profiler started during it"):
        windows.write(folder, tmp_path / "stem")
    assert not folder.exists()
