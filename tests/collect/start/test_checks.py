"""What would go wrong is said before training, which goes on."""

from pathlib import Path

import pytest

from strobe.collect.start import checks
from strobe.model.options import Options
from tests.faults.processes import problems, python, recorded, training


def test_a_folder_that_can_be_made_is_well(tmp_path: Path):
    assert checks.refusal(tmp_path / "a" / "b") is None


def test_a_file_in_the_way_and_a_folder_that_may_not_be_written_to(tmp_path: Path):
    (tmp_path / "file").write_text("mine")
    said = checks.refusal(tmp_path / "file" / "run")
    assert said and "is a file" in said and "Training continues without recording" in said
    said = checks.refusal(Path("/proc/strobe"))
    assert said and "Training continues without recording" in said


def test_free_space_is_held_against_what_a_recording_may_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def free(size: int) -> None:
        usage = checks.shutil.disk_usage(tmp_path)._replace(free=size)
        monkeypatch.setattr(checks.shutil, "disk_usage", lambda _: usage)

    small, large = Options(light=True), Options(timeline_limit=10_000)
    assert checks.expected_bytes(small) < checks.expected_bytes(large)
    free(checks.expected_bytes(large))
    assert checks.little_room(tmp_path, large) is None
    free(checks.expected_bytes(large) - 1)
    said = checks.little_room(tmp_path, large)
    assert said and "timeline_limit" in said
    assert checks.little_room(tmp_path, small) is None
    free(1000)
    assert "only 0 MB are free" in str(checks.refusal(tmp_path))


def test_versions_known_not_to_work_are_named_with_what_to_do():
    assert checks.bad_version("2.13.0+cpu") is None
    assert checks.bad_version("") is None
    assert "pip install -U torch" in str(checks.bad_version("1.13.1"))


def test_communication_needs_somebody_to_communicate_with(monkeypatch: pytest.MonkeyPatch):
    for variable in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(variable, raising=False)
    assert checks.alone(frozenset()) is None
    assert "only one process" in str(checks.alone({"profile_communication"}))
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert checks.alone({"profile_communication"}) is None


@pytest.mark.parametrize(
    "variable, value, name",
    [
        ("NSYS_PROFILING_SESSION_ID", "7", "Nsight Systems"),
        ("CUDA_INJECTION64_PATH", "/some/libNsightSystems.so", "Nsight"),
        ("PROFILING_MODE", "true", "msprof"),
    ],
)
def test_another_profiler_is_named(
    variable: str, value: str, name: str, monkeypatch: pytest.MonkeyPatch
):
    assert checks.other_profiler(Options()) is None
    monkeypatch.setenv(variable, value)
    assert name in str(checks.other_profiler(Options()))
    assert checks.other_profiler(Options(light=True)) is None


def test_a_clock_that_is_set_while_training_is_told():
    clock = checks.ClockWatch()
    assert clock.jumped(0, 10**18) is None
    assert clock.jumped(10**9, 10**18 + 10**9 + 10**6) is None
    assert "set forward by 3600.0 s" in str(clock.jumped(2 * 10**9, 10**18 + 3602 * 10**9))
    assert clock.jumped(3 * 10**9, 10**18 + 3603 * 10**9) is None
    assert "set back by 10.0 s" in str(clock.jumped(4 * 10**9, 10**18 + 3594 * 10**9))


@pytest.mark.slow
def test_it_is_said_on_stderr_and_kept_in_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NSYS_PROFILING_SESSION_ID", "7")
    done = python(*recorded(tmp_path / "run", training(tmp_path, "train(8)")), cwd=tmp_path)
    assert done.returncode == 0
    assert done.stderr.count("Nsight Systems is active in this process") == 1
    assert any("Nsight Systems is active" in what for what in problems(tmp_path / "run"))
