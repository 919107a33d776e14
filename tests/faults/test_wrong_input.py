"""Wrong words after `strobe run`: what is wrong, what to do, and nothing left on disk."""

from pathlib import Path

import pytest

from tests.faults.processes import python

# Words after `strobe run`: what must be said.
WRONG = {
    "": "no script to record",
    "-o run": "no script to record",
    "missing.py": "the script missing.py does not exist",
    "folder": "command not found: folder",
    "./folder": "./folder is a folder",
    "folder.py": "folder.py is a folder",
    "nosuchcommand train.py": "command not found: nosuchcommand",
    "--": "no command after --",
    "-- nosuchcommand": "command not found: nosuchcommand",
    "--nonsense train.py": "nonsense",
    "--light --whole train.py": "light, whole contradict each other",
    "--light --steps 1:2 train.py": "light, steps contradict each other",
    "--light --with-stack train.py": "with_stack=True and light=True contradict each other",
    "--steps ten train.py": "steps must be two numbers",
    "--steps 10 train.py": "steps must be two numbers",
    "--schedule 1:2 train.py": "schedule must be three to five numbers",
    "--steps 5:5 train.py": "the range 5:5 contains no step",
    "--steps 0:5 train.py": "the range 0:5 contains no step",
    "--steps -3:5 train.py": "",
    "--every 5:500 train.py": "cannot record 500 of every 5 steps",
    "--every 0:0 train.py": "cannot record 0 of every 0 steps",
    "--timeline-limit 0 train.py": "timeline_limit must be at least 1",
    "--timeline-limit much train.py": "timeline_limit must be a whole number, not 'much'",
    "--config nowhere.yaml train.py": "cannot read the configuration",
    "-o": "a value is missing",
    "-m": "a value is missing",
    "--steps": "a value is missing",
}


@pytest.mark.parametrize("words", WRONG)
def test_wrong_words(words: str, tmp_path: Path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "train.py").write_text("raise SystemExit('it ran')\n")
    done = python("-m", "strobe", "run", *words.split(), cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    first, *others = done.stderr.splitlines()
    assert first.startswith("error: ") and WRONG[words] in first
    assert any(line.startswith("  help: ") and len(line) > 10 for line in others)
    assert "it ran" not in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "folder.py", "train.py"]


def test_a_module_that_does_not_exist_ends_as_with_python(tmp_path: Path):
    ours = python("-m", "strobe", "run", "-q", "-m", "no_such_module", cwd=tmp_path)
    bare = python("-m", "no_such_module", cwd=tmp_path)
    assert ours.returncode == bare.returncode == 1
    assert bare.stderr in ours.stderr
