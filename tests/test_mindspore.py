"""What scripts give to MindSpore's profiler, understood without MindSpore."""

import enum
from types import SimpleNamespace

import pytest

import strobe
from strobe.errors import UsageError
from strobe.mindspore import (
    Profiler,
    _ExperimentalConfig,
    common_folder,
    profile,
    schedule,
    tensorboard_trace_handler,
    translated,
)
from strobe.model.options import Options


class ProfilerLevel(enum.Enum):
    Level2 = "Level2"


class AicoreMetrics(enum.Enum):
    Memory = "Memory"


class Schedule:
    wait, warmup, active, repeat, skip_first = 1, 2, 3, 4, 5

    def __call__(self, step: int) -> None:
        raise AssertionError


def test_newer_words_and_older_ones_say_the_same():
    newer = translated({
        "profiler_level": ProfilerLevel.Level2, "aic_metrics": AicoreMetrics.Memory,
        "with_stack": True, "schedule": Schedule(), "activities": ["CPU"], "export_type": None,
    })  # fmt: skip
    older = translated({
        "profiler_level": 2, "aicore_metrics": 2, "host_stack": True,
        "schedule": strobe.schedule(wait=1, warmup=2, active=3, repeat=4, skip_first=5),
    })  # fmt: skip
    assert Options.from_json(newer) == Options.from_json(older)


def test_what_is_none_is_as_good_as_not_given():
    assert translated({"schedule": None, "on_trace_ready": None, "host_sys": None}) == {}


def test_a_schedule_of_ones_own_is_refused():
    with pytest.raises(UsageError, match="this schedule was not created"):
        translated({"schedule": lambda step: None})


def test_a_parameter_that_never_was_is_an_error(tmp_path):
    with pytest.raises(UsageError, match="profile_memori"):
        Profiler(str(tmp_path / "data"), profile_memori=True)


def test_parameters_without_effect_are_taken(tmp_path, capsys):
    profiler = Profiler(
        str(tmp_path / "data"), start_profile=False, hbm_ddr=True, pcie=True, sys_io=True,
        mstx=True, l2_cache=False, parallel_strategy=False, data_process=True,
    )  # fmt: skip
    assert not profiler.is_recording
    profiler.stop()
    profiler.analyse()
    assert "nothing to analyse" in capsys.readouterr().err


def test_the_callbacks_name_the_package_that_they_need():
    pytest.importorskip("torch")
    try:
        import mindspore  # noqa: F401
    except ImportError:
        with pytest.raises(strobe.StrobeError, match="needs the package mindspore"):
            from strobe.mindspore import DynamicProfilerMonitor  # noqa: F401


def test_folders_of_ranks_are_one_run_where_there_are_several(monkeypatch):
    for name in ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "RANK_ID"):
        monkeypatch.delenv(name, raising=False)
    assert common_folder("data/rank_0") == "data/rank_0"
    monkeypatch.setenv("RANK_ID", "3")
    assert common_folder("data/rank_3/") == "data"
    assert common_folder("rank_3") == "."
    assert common_folder("data/rank_1") == "data/rank_1"


def test_an_experimental_config_asks_for_what_differs_from_its_defaults():
    config = _ExperimentalConfig(
        profiler_level=strobe.mindspore.ProfilerLevel.Level2, l2_cache=True, mstx=False,
        aic_metrics=strobe.mindspore.AicoreMetrics.AiCoreNone,
    )  # fmt: skip
    found = translated({"experimental_config": config, "with_stack": True})
    assert found == {"profiler_level": "Level2", "l2_cache": True, "with_stack": True}
    assert translated({"experimental_config": _ExperimentalConfig()}) == {}


def test_a_word_that_no_experimental_config_has_is_an_error():
    with pytest.raises(UsageError, match="l2_cash"):
        _ExperimentalConfig(l2_cash=True)


def test_a_schedule_tells_which_steps_are_recorded():
    made = schedule(wait=1, warmup=1, active=2, repeat=1, skip_first=1)
    assert [made(step) for step in range(7)] == [False] * 3 + [True] * 2 + [False] * 2
    assert translated({"schedule": made}) == {"schedule": [1, 1, 2, 1, 1]}


def test_the_folder_of_a_trace_handler_is_that_of_the_run(tmp_path):
    handler = tensorboard_trace_handler(str(tmp_path / "traces"))
    made = profile(on_trace_ready=handler, start_profile=False)
    assert made.output_path == tmp_path / "traces"
    assert not made.is_recording


def test_a_handler_of_ones_own_that_fails_is_reported(tmp_path, capsys):
    def handler(profiler):
        raise ValueError("no room")

    made = profile(on_trace_ready=handler, start_profile=False)
    made._has_recorded = lambda: True
    made._recorder = SimpleNamespace(installed=[], pause=lambda: None, run=tmp_path)
    made._is_recording = True
    made.stop()
    assert "on_trace_ready failed: ValueError: no room" in capsys.readouterr().err
