"""What an installation does as Python starts: nothing, unless one of our variables is set."""

import subprocess
from pathlib import Path

import pytest

from tests.faults.processes import steps, training
from tests.installed import environment, install

pytestmark = pytest.mark.slow

START = '{"start": true, "output_path": "data"}'


def test_a_wheel_records_a_script_that_does_not_know_of_it(tmp_path: Path):
    pytest.importorskip("hatchling")
    python = install(tmp_path / "installed")
    script = training(tmp_path, "print(train(12), 'strobe' in sys.modules)")
    command = [python, "-I", script]
    plain = run(command, tmp_path)
    assert plain.stdout.endswith(" False\n") and plain.stderr == ""
    done = run(command, tmp_path, STROBE_OPTIONS=START)
    assert done.stdout.split()[0] == plain.stdout.split()[0]
    assert done.stderr == "strobe: recorded to data. To see it: strobe show data\n"
    assert steps(tmp_path / "data") == {0: 12}


def test_without_the_variables_nothing_of_ours_is_imported(installed: Path, tmp_path: Path):
    code = "import sys; print([name for name in sys.modules if 'strobe' in name])"
    for variables in ({}, {"STROBE_OPTIONS": ""}):
        done = run([installed, "-c", code], tmp_path, **variables)
        assert (done.stdout, done.stderr) == ("[]\n", "")


def test_a_broken_installation_does_not_stop_python(tmp_path: Path):
    pytest.importorskip("hatchling")
    python = install(tmp_path / "installed")
    (packages,) = (tmp_path / "installed" / "venv").glob("lib/python*/site-packages")
    (packages / "strobe" / "collect" / "start" / "environment.py").write_text("1 / 0\n")
    done = run([python, "-c", "print('goes on')"], tmp_path, STROBE_OPTIONS=START)
    assert (done.returncode, done.stdout) == (0, "goes on\n")
    # Twice where lib64 is a link to lib: Python then reads .pth files twice.
    words = "strobe: not recording this process: ZeroDivisionError: division by zero"
    assert set(done.stderr.splitlines()) == {words}


def run(command: list, folder: Path, **variables: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [str(word) for word in command], cwd=folder, env=environment(**variables),
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
