"""What scripts give to MindSpore's profiler, understood without MindSpore."""

import enum
import json
from pathlib import Path
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
from tests.faults.processes import ask, python, training
from tests.ingest.importing.test_importer import trace
from tests.ingest.runs import op, plain_steps, write_raw, write_window
from tests.processes.test_process import wait_for


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


# --- what MindSpore's own profiler wrote --------------------------------------------------


@pytest.fixture
def output(tmp_path, monkeypatch):
    """A folder with a trace; new runs are made beside it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "trace_view.json").write_bytes(trace("Conv2D", "BiasAdd"))
    return "data"


@pytest.mark.slow
@pytest.mark.parametrize(
    "import_output",
    [
        lambda path: profile(start_profile=False).analyse(offline_path=path),
        Profiler.offline_analyse,
        strobe.mindspore.analyse,
    ],
    ids=["analyse(offline_path)", "offline_analyse", "analyse"],
)
def test_offline_output_is_imported_into_a_new_run(output, capsys, import_output):
    import_output(output)
    (run,) = Path("strobe-runs").iterdir()
    said = f"strobe: imported data. See it with: strobe show {run}"
    assert capsys.readouterr().err.splitlines() == [said]
    with strobe.open_run(run) as opened:
        names = opened.sql("SELECT name FROM operators ORDER BY name").fetchall()
    assert names == [("BiasAdd",), ("Conv2D",)]


@pytest.mark.slow
def test_offline_output_can_be_imported_in_the_background(output, capsys):
    profile(start_profile=False).analyse(offline_path=output, mode="async")
    run = Path(capsys.readouterr().err.split()[-1])
    wait_for((run / "run.json").exists, "run")
    assert Path(f"{run}.log").read_text() == ""


@pytest.mark.slow
def test_offline_output_that_cannot_be_read_is_reported_and_never_raised(output, capsys):
    Profiler.offline_analyse("nowhere", step_list=[1])
    said = capsys.readouterr().err
    assert "this file or folder does not exist" in said and "nowhere" in said
    assert "step_list has no effect" in said
    assert not Path("strobe-runs").exists()
    with pytest.raises(UsageError, match="no mode 'later'"):
        profile(start_profile=False).analyse(offline_path=output, mode="later")


# --- operators, and notes about a run -----------------------------------------------------


@pytest.fixture
def recorded(tmp_path):
    """A profiler whose rank 1 recorded two convolutions of one shape and one of another."""
    write_raw(tmp_path / "run", plain_steps(3))
    raw = write_raw(tmp_path / "run", plain_steps(3), rank=1)
    shapes = {"Input Dims": [[8, 4], [4, 2]], "Input type": ["float", "float"]}
    other = {"Input Dims": [[2, 2], [2, 2]], "Input type": ["float", "float"]}
    write_window(raw, [
        op("Conv2D", 2, 3, **shapes), op("Conv2D", 4, 7, **shapes),
        op("Conv2D", 8, 8.5, **other), op("BiasAdd's", 9, 9.25),
    ])  # fmt: skip
    profiler = profile(start_profile=False)
    profiler._recorder = SimpleNamespace(run=tmp_path / "run", rank=1)
    return profiler


@pytest.mark.slow
def test_op_analyse_gives_calls_and_times_by_shape(recorded):
    found = json.loads(recorded.op_analyse(["Conv2D", "BiasAdd's"]))
    convolutions = found.pop("Conv2D")
    assert [json.loads(row.pop("input_shape")) for row in convolutions] == [
        [[8, 4], [4, 2]], [[2, 2], [2, 2]],
    ]  # fmt: skip
    assert convolutions == [
        {"op_side": "cpu", "op_occurrences": 2, "op_total_time(us)": 4.0, "op_avg_time(us)": 2.0},
        {"op_side": "cpu", "op_occurrences": 1, "op_total_time(us)": 0.5, "op_avg_time(us)": 0.5},
    ]
    assert found == {"device_id": 1, "BiasAdd's": [
        {"op_side": "cpu", "input_shape": "", "op_occurrences": 1, "op_total_time(us)": 0.25,
         "op_avg_time(us)": 0.25},
    ]}  # fmt: skip


@pytest.mark.slow
def test_op_analyse_says_what_it_cannot_find(recorded, capsys):
    assert json.loads(recorded.op_analyse("Conv3D")) == {"device_id": 1}
    assert "no operator 'Conv3D'" in capsys.readouterr().err
    assert json.loads(recorded.op_analyse("Conv2D", device_id=0)) == {"device_id": 0}
    assert recorded.op_analyse(3) == recorded.op_analyse("Conv2D", device_id="0") == "{}"
    assert profile(start_profile=False).op_analyse("Conv2D") == "{}"
    said = capsys.readouterr().err
    assert "a string or a list of strings, not 3" in said and "not '0'" in said
    assert "no training step was recorded" in said


NOTED = """
import json
from strobe.mindspore import Profiler

profiler = Profiler("data", start_profile=False)
profiler.add_metadata("model", "LeNet")
profiler.add_metadata("model", "ResNet")
profiler.start()
train(3)
profiler.add_metadata_json("batch", json.dumps({"size": 8}))
profiler.add_metadata_json("accuracy", "0.5")
profiler.add_metadata("number", 3)
profiler.add_metadata_json("broken", "{")
profiler.stop()
profiler.add_metadata("after", "the stop")
profiler.analyse()
profiler.add_metadata("too", "late")
"""


@pytest.mark.slow
def test_metadata_is_kept_with_the_run(tmp_path):
    pytest.importorskip("torch")
    done = python(training(tmp_path, NOTED), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for part in ("ignores 'number'", "ignores 'broken'", "'too' is ignored"):
        assert part in done.stderr
    rows = ask(tmp_path / "data", "select kind, name, value, number, source from lineage")
    assert sorted(rows) == [
        ("custom", "accuracy", "0.5", 0.5, "strobe.mindspore"),
        ("custom", "after", "the stop", None, "strobe.mindspore"),
        ("custom", "batch", '{"size": 8}', None, "strobe.mindspore"),
        ("custom", "model", "ResNet", None, "strobe.mindspore"),
    ]
