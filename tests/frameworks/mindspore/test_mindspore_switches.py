"""Ways to switch it on from outside the script: a job's file, other processes, the watch."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.frameworks import environment
from tests.frameworks.mindspore.launching import msrun, path_variable
from tests.frameworks.mindspore.tables import full_steps, sql, table

TRAININGS = Path(__file__).parent / "trainings"

# As in the files of mindformers, whose other keys are none of ours.
JOB = """
seed: 0
output_dir: './output'
run_mode: 'train'
auto_tune: False
runner_config:
  epochs: 2
  sink_mode: True
  sink_size: 2
callbacks:
  - type: MFLossMonitor
profile: True
profile_start_step: 3
profile_stop_step: 5
init_start_profile: {at_once}
profile_communication: True
profile_memory: True
output_path: './output/profile/rank_{{id}}/profiler/'
"""


@contextmanager
def training(
    folder: Path, *options: str, most: int = 4000, slower_from: int = 4000
) -> Iterator[subprocess.Popen[str]]:
    """`strobe run` of one that trains as long as this lasts, but not more steps than `most`."""
    python = str(environment.python_of("mindspore"))
    script = [str(TRAININGS / "until.py"), str(most), str(slower_from)]
    command = [python, "-m", "strobe", "run", "-q", "-o", "run", *options, *script]
    with subprocess.Popen(
        command, cwd=folder, env=environment.environment(), stdin=subprocess.PIPE, text=True
    ) as process:
        deadline = time.monotonic() + 120
        while not list(folder.glob("run/live/ranks/rank_0.json")):
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.1)
        yield process
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(60) == 0


@pytest.mark.parametrize("at_once, first", [("False", 3), ("True", 1)])
def test_a_job_file_of_mindformers(tmp_path, at_once, first):
    (tmp_path / "job.yaml").write_text(JOB.format(at_once=at_once))
    done = environment.run(
        "mindspore", "-m", "strobe", "run", "--config", "job.yaml", TRAININGS / "shapes.py",
        "model", "--sink", cwd=tmp_path, timeout_s=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "output" / "profile"
    assert full_steps(folder) == set(range(first, 6))
    assert sql(folder, "select count(*) > 0 as memory from counters where name like '%pool%'") == [
        {"memory": True}
    ]


def test_a_job_file_of_mindformers_for_four_ranks(tmp_path):
    (tmp_path / "job.yaml").write_text(JOB.format(at_once="False"))
    done = environment.run(
        "mindspore", "-m", "strobe", "run", "--config", "job.yaml", "--", *msrun(4),
        TRAININGS / "ranks.py", cwd=tmp_path, timeout_s=400, PATH=path_variable(),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "output" / "profile"
    assert [full_steps(folder, rank) for rank in range(4)] == [{3, 4, 5}] * 4
    assert min(step["all_reduce_ns"] for step in table(folder, "steps") if step["step"] > 2) > 0


def test_ranks_that_the_guide_gives_a_folder_each_are_one_run(tmp_path):
    words = [*map(str, msrun(2)), str(TRAININGS / "guided.py")]
    done = subprocess.run(
        words, cwd=tmp_path, env=environment.environment(PATH=path_variable()), check=False,
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    steps = table(tmp_path / "profiler_data", "steps")
    assert [(row["rank"], row["step"]) for row in steps] == [
        (rank, step) for rank in (0, 1) for step in range(1, 9)
    ]


def test_a_window_by_the_number_of_the_process(tmp_path):
    with training(tmp_path, "--light") as process:
        told = environment.strobe("mindspore", "attach", str(process.pid), "--steps", "4")
    assert "recorded steps" in told
    assert len(full_steps(tmp_path / "run")) == 4


def test_a_window_by_a_file(tmp_path):
    with training(tmp_path, "--dynamic", "asked"):
        words = ("asked", "start", "--steps", "4", "--wait")
        told = environment.strobe("mindspore", "dynamic", *words, cwd=tmp_path)
    assert "recorded steps" in told
    assert len(full_steps(tmp_path / "run")) == 4


def test_the_watch_takes_a_window_when_steps_become_slower(tmp_path):
    with training(tmp_path, "--watch", most=170, slower_from=90) as process:
        assert process.wait(120) == 0
    assert max(full_steps(tmp_path / "run"), default=0) >= 90
    shown = environment.strobe("mindspore", "show", tmp_path / "run")
    assert "steps became slower" in " ".join(shown.split())
