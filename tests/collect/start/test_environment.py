"""STROBE_OPTIONS and MS_PROFILER_OPTIONS, with a script that imports nothing of ours."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.faults.processes import ask, steps, training
from tests.installed import environment

pytestmark = pytest.mark.slow


def run(python: Path, script: Path, **variables: object) -> subprocess.CompletedProcess:
    given = {k: v if isinstance(v, str) else json.dumps(v) for k, v in variables.items()}
    return subprocess.run(
        [str(python), str(script)], cwd=script.parent, env=environment(**given),
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("variable", ["STROBE_OPTIONS", "MS_PROFILER_OPTIONS"])
def test_recorded_analysed_and_exported_when_the_script_ends(
    variable: str, installed: Path, tmp_path: Path
):
    options = {
        "start": True, "output_path": "data", "profile_memory": True, "steps": [3, 5],
        "analyse_mode": 0, "format": "chrome_timeline.json",
    }  # fmt: skip
    script = training(tmp_path, "os.chdir('/'); train(6)")
    done = run(installed, script, **{variable: options})
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "data" / "rank_0" / "tables" / "events.parquet").exists()
    assert (tmp_path / "data" / "chrome_timeline.json").exists()
    assert steps(tmp_path / "data") == {0: 6}
    assert ask(tmp_path / "data", "select count(*) > 0 from allocations") == [(True,)]
    assert json.loads((tmp_path / "data" / "run.json").read_text())["recorded_by"] == variable


@pytest.mark.parametrize(
    "options, said",
    [
        ({"strat": True}, "Did you mean start?"),
        ({"start": True, "profil_memory": True}, "Did you mean profile_memory?"),
        ({"start": True, "light": True, "with_stack": True}, "contradict each other"),
        ({"output_path": "data"}, 'does not contain "start": true, so nothing is recorded'),
        ("{", "is not valid JSON"),
        ("[]", "is not a JSON object"),
        ({"start": True, "output_path": "/proc/nothing"}, "Training continues without recording"),
    ],
)
def test_a_mistake_is_said_once_for_the_job_and_training_goes_on(
    options: object, said: str, installed: Path, tmp_path: Path
):
    script = tmp_path / "train.py"
    script.write_text(
        "import subprocess, sys; print('trained', flush=True)\n"
        "subprocess.run([sys.executable, '-c', 'print(1)'])\n"
    )
    done = run(installed, script, STROBE_OPTIONS=options)
    assert (done.returncode, done.stdout) == (0, "trained\n1\n")
    assert done.stderr.count("strobe: ") == 1 and said in done.stderr
    assert "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


def test_a_training_that_ends_before_its_window_says_that_it_has_no_operators(
    installed: Path, tmp_path: Path
):
    script = training(tmp_path, "train(2)")
    done = run(installed, script, STROBE_OPTIONS={"start": True, "output_path": "data"})
    assert done.returncode == 0, done.stderr
    assert "training ended after step 2, before step 6, the first" in done.stderr


def test_start_false_records_nothing_and_says_nothing(installed: Path, tmp_path: Path):
    script = training(tmp_path, "train(2)")
    done = run(installed, script, STROBE_OPTIONS={"start": False, "output_path": "data"})
    assert (done.returncode, done.stderr) == (0, "")
    assert not (tmp_path / "data").exists()


def test_a_process_that_does_not_train_leaves_nothing(installed: Path, tmp_path: Path):
    script = training(tmp_path, "torch.utils.data.DataLoader([1, 2], num_workers=1).__iter__()")
    done = run(installed, script, STROBE_OPTIONS={"start": True, "output_path": "data"})
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "data").exists()


def test_under_strobe_run_the_variable_is_left_aside_and_that_is_said(
    installed: Path, tmp_path: Path
):
    training(tmp_path, "train(3)")
    done = subprocess.run(
        [str(installed), "-m", "strobe", "run", "-q", "-o", "run", "train.py"], cwd=tmp_path,
        env=environment(STROBE_OPTIONS='{"start": true, "output_path": "data"}'),
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0
    assert "ignoring STROBE_OPTIONS: options given to strobe run take precedence" in done.stderr
    assert steps(tmp_path / "run") == {0: 3} and not (tmp_path / "data").exists()
