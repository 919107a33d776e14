"""What is recorded by itself is what the script prints, to the last bit, and training is the
same.
"""

import socket
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

pytest.importorskip("torch")

import strobe  # noqa: E402

TRAININGS = Path(__file__).parent / "trainings"
Points = dict[tuple[int, str], list[tuple[int, float]]]
pytestmark = pytest.mark.slow


def run(*command: object, cwd: Path) -> str:
    done = subprocess.run(
        [sys.executable, *map(str, command)], cwd=cwd, capture_output=True, text=True, timeout=300,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "fault of Strobe" not in done.stderr
    return done.stdout


def record(folder: Path, name: str, *args: object, options: tuple[str, ...] = ()) -> str:
    script = TRAININGS / name
    options = options or ("--light",)
    return run("-m", "strobe", "run", "-o", "run", *options, script, *args, cwd=folder)


def printed(text: str, word: str = "metric") -> Points:
    found: Points = defaultdict(list)
    for line in text.splitlines():
        first, _, rest = line.partition(" ")
        if first.partition("@")[0] == word:
            rank = int(first.partition("@")[2] or 0)
            step, tag, value = rest.split(" ")
            found[rank, tag].append((int(step), float(value)))
    return found


def recorded(folder: Path) -> Points:
    rows = (
        strobe.open_run(folder / "run")
        .sql("select rank, tag, step, value from scalars where source = 'automatic' order by ts_ns")
        .fetchall()
    )
    found: Points = defaultdict(list)
    for rank, tag, step, value in rows:
        found[rank, tag].append((step, value))
    return found


ALWAYS = {"loss", "learning_rate", "gradient_norm"}


@pytest.mark.parametrize("name", [
    "plain.py", "half.py", "scaled.py", "accumulation.py", "adversarial.py", "closure.py",
    "manual.py", "derived.py", "compiled.py", "two_functions.py", "one_function.py", "roots.py",
    "with_accelerate.py", "with_lightning.py",
])  # fmt: skip
def test_metrics_are_what_the_script_prints(tmp_path: Path, name: str):
    for library in ("accelerate", "lightning"):
        if library in name:
            pytest.importorskip(library)
    output = record(tmp_path, name)
    expected, found = printed(output), recorded(tmp_path)
    assert expected
    for key, points in expected.items():
        assert found[key] == points, key
    extra = {tag.partition("/")[0] for rank, tag in set(found) - set(expected)}
    assert extra <= {"samples_per_second", "gradient_norm"}
    assert output == run(TRAININGS / name, cwd=tmp_path)


def test_windows_of_full_recording_change_nothing(tmp_path: Path):
    output = record(tmp_path, "plain.py", options=("--steps", "3:6"))
    expected, found = printed(output), recorded(tmp_path)
    assert all(found[key] == points for key, points in expected.items())


def test_the_gradient_norm_is_computed_now_and_then(tmp_path: Path):
    output = record(tmp_path, "measured.py")
    found = recorded(tmp_path)
    assert found[0, "loss"] == printed(output)[0, "loss"]
    norms = dict(printed(output, "sometimes")[0, "gradient_norm"])
    computed = found[0, "gradient_norm"]
    assert computed
    assert computed == [(step, norms[step]) for step, _ in computed]
    assert output == run(TRAININGS / "measured.py", cwd=tmp_path)


def test_each_rank_has_its_own(tmp_path: Path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    expected, found = printed(record(tmp_path, "ranks.py", port)), recorded(tmp_path)
    assert {rank for rank, _ in expected} == {0, 1}
    for key, points in expected.items():
        assert found[key] == points


def test_the_trainer_of_transformers(tmp_path: Path):
    pytest.importorskip("transformers")
    expected = printed(record(tmp_path, "with_transformers.py", tmp_path / "out"))
    found = recorded(tmp_path)
    assert found[0, "loss"] == expected[0, "loss"]
    assert found[0, "learning_rate/0"]


def test_samples_per_second_are_those_of_the_batches(tmp_path: Path):
    record(tmp_path, "plain.py")
    opened = strobe.open_run(tmp_path / "run")
    rows = opened.sql(
        "select s.step, s.value, t.dur_ns from scalars s, (select row_number() over (order by "
        "ts_ns) as step, dur_ns from steps) t where s.step = t.step and tag = "
        "'samples_per_second' order by 1"
    ).fetchall()
    assert [round(value * dur_ns / 1e9, 6) for _, value, dur_ns in rows] == [8, 8, 8, 8, 8, 4] * 3


def test_without_metrics_there_are_none(tmp_path: Path):
    record(tmp_path, "plain.py", options=("--light", "--no-metrics"))
    assert not recorded(tmp_path)
