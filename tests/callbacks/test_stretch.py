"""What all callbacks share, where a library is missing or the stretch never comes."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.processes import problems, python, training

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "name, package",
    [
        ("LightningCallback", "lightning"),
        ("LightningProfiler", "lightning"),
        ("TransformersCallback", "transformers"),
        ("AccelerateHook", "accelerate"),
    ],
)
def test_a_missing_library_is_named_with_its_installation(name: str, package: str):
    code = f"""
import sys
sys.modules["{package}"] = None
import strobe.callbacks
try:
    strobe.callbacks.{name}
except strobe.StrobeError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == (
        f"error: strobe.callbacks.{name} needs the package {package}\n"
        f"  help: Install it with: pip install {package}\n"
    )


def test_a_stretch_that_never_comes_is_said(tmp_path: Path):
    text = """
from strobe.callbacks import Loop
with Loop(output_path="data", start_step=50, stop_step=60) as loop:
    for _ in loop.epoch(range(5)):
        train(1)
"""
    done = python(training(tmp_path, text), cwd=tmp_path)
    said = "training had no step from 50 to 60, so none was recorded in full"
    assert done.returncode == 0 and f"strobe: {said}" in done.stderr
    assert said in problems(tmp_path / "data")


def test_inside_strobe_run_a_callback_leaves_the_recording_to_it(tmp_path: Path):
    text = """
from strobe.callbacks import Loop
with Loop(output_path="data", start_step=2, stop_step=3) as loop:
    for _ in loop.epoch(range(5)):
        train(1)
"""
    script = training(tmp_path, text)
    done = python("-m", "strobe", "run", "-q", "-o", "run", script, cwd=tmp_path)
    assert done.returncode == 0
    assert "already recording (started by strobe run)" in done.stderr
    assert not (tmp_path / "data").exists()
