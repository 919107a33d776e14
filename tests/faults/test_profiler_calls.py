"""Wrong calls of the Python interface: said on stderr, not raised; the recording goes on."""

import os
from pathlib import Path

import strobe
from tests.faults.processes import python, recorded, said_training, states, steps

CALLS = """
def say(what):
    sys.stderr.write("--- " + what + "\\n")

first = strobe.Profiler(output_path="first", start_profile=False)
say("stop without start")
first.stop()
say("step without start")
first.step()
say("analyse without data")
first.analyse()
say("enter without start")
with first:
    pass
say("start")
first.start()
train(5)
say("start twice")
first.start()
say("a second profiler")
second = strobe.Profiler(output_path="second")
with second:
    train(5)
    second.step()
say("its end")
second.analyse()
first.step()
say("stop")
first.stop()
say("stop twice")
first.stop()
say("step after stop")
first.step()
strobe.step()
say("again")
first.start()
train(4)
first.stop()
say("analyse")
first.analyse()
say("analyse twice")
first.analyse()
say("start after analyse")
first.start()
train(3)
first.stop()
say("a third to the same folder")
third = strobe.Profiler(output_path="first")
with third:
    train(7)
say("nothing trained")
fourth = strobe.Profiler(output_path="fourth")
with fourth:
    pass
fourth.analyse()
say("decorated, calling itself")
@strobe.profile(output_path="decorated")
def outer(depth):
    train(2)
    if depth:
        outer(depth - 1)
outer(2)
outer(0)
say("an exception inside")
try:
    with strobe.Profiler(output_path="raised"):
        train(2)
        raise ValueError("mine")
except ValueError as error:
    print(error, error.__context__)
say("end")
"""


def test_wrong_calls_are_said_and_not_raised(tmp_path: Path):
    done = python(said_training(tmp_path, CALLS), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "mine None\n"), done.stderr
    words = sections(done.stderr)
    assert words["stop without start"] == [
        "strobe: stop() without start(): nothing was being recorded"
    ]
    assert words["step without start"] == [
        "strobe: step() without start(): nothing is being recorded"
    ]
    (line,) = words["analyse without data"]
    assert line.startswith("strobe: nothing to analyse: this profiler was not started.")
    assert words["start twice"] == [
        "strobe: this profiler is already recording, so start() has no effect"
    ]
    assert len(words["a second profiler"]) == 2
    assert (
        f"already recording (started by {tmp_path / 'train.py'}:" in words["a second profiler"][0]
    )
    assert "step() without start()" in words["a second profiler"][1]
    assert "nothing to analyse" in words["its end"][0]
    for silent in ("start", "stop", "again", "analyse", "analyse twice", "end",
                   "decorated, calling itself", "an exception inside"):  # fmt: skip
        assert words[silent] == [], silent
    assert len(words["stop twice"]) == len(words["step after stop"]) == 1
    assert "analyse" in words["start after analyse"][0]
    assert "recording to first-2" in words["a third to the same folder"][0]
    assert "nothing to analyse" in words["nothing trained"][0]
    runs = ("first", "first-2", "decorated", "raised")
    found = {name: steps(tmp_path / name) for name in runs}
    assert found == {"first": {0: 15}, "first-2": {0: 7}, "decorated": {0: 8}, "raised": {0: 2}}
    assert {name: states(tmp_path / name)[0] for name in runs} == dict.fromkeys(runs, "finished")
    assert not (tmp_path / "second").exists() and not (tmp_path / "fourth").exists()


def sections(text: str) -> dict[str, list[str]]:
    parts = [part.splitlines() for part in text.split("--- ")[1:]]
    return {title: lines for title, *lines in parts}


def test_a_profiler_inside_strobe_run_leaves_the_recording_to_it(tmp_path: Path):
    text = """
train(3)
with strobe.Profiler(output_path="inner") as profiler:
    train(5)
profiler.analyse()
"""
    done = python(*recorded(tmp_path / "run", said_training(tmp_path, text)), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "already recording (started by strobe run)" in done.stderr
    assert steps(tmp_path / "run") == {0: 8}
    assert not (tmp_path / "inner").exists()


def test_an_exception_after_a_second_start_is_the_state_of_the_run(tmp_path: Path):
    text = """
profiler = strobe.Profiler(output_path="data")
profiler.start()
train(2)
profiler.stop()
profiler.start()
train(3)
raise ValueError("mine")
"""
    done = python(said_training(tmp_path, text), cwd=tmp_path)
    assert done.returncode == 1 and done.stderr.endswith("ValueError: mine\n")
    assert steps(tmp_path / "data") == {0: 5}
    assert states(tmp_path / "data") == ("failed", ["failed"])


def test_an_option_that_does_not_exist_is_told_before_training(tmp_path: Path):
    text = """
try:
    strobe.Profiler(output_path="data", with_stak=True)
except strobe.StrobeError as error:
    print(error)
"""
    done = python(said_training(tmp_path, text), cwd=tmp_path)
    assert done.stdout == "error: unknown option: with_stak\n  help: Did you mean with_stack?\n"
    assert not (tmp_path / "data").exists()


def test_no_run_to_analyse_is_an_error_with_a_hint(tmp_path: Path):
    try:
        strobe.open_run(tmp_path)
    except strobe.StrobeError as error:
        assert (error.what, bool(error.hint)) == ("this folder is empty", True)
    else:
        raise AssertionError("an empty directory was opened")


def test_a_profiler_that_starts_when_it_is_made(tmp_path: Path):
    text = """
profiler = strobe.Profiler(output_path="data", start_profile=True, light=True)
train(5)
profiler.analyse()
made = strobe.Profiler(output_path="with", start=True, light=True)
train(2)
with made:
    train(3)
"""
    done = python(said_training(tmp_path, text), cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert steps(tmp_path / "data") == {0: 5} and steps(tmp_path / "with") == {0: 5}


def test_a_block_that_is_entered_several_times_with_files_to_write(tmp_path: Path):
    text = """
profiler = strobe.Profiler(output_path="data", light=True, formats=["chrome_timeline.json"])
for _ in range(3):
    with profiler:
        train(1)
    train(4)
"""
    done = python(said_training(tmp_path, text), cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert steps(tmp_path / "data") == {0: 3}
    assert (tmp_path / "data" / "chrome_timeline.json").stat().st_size
    assert states(tmp_path / "data") == ("finished", ["finished"])


def test_a_format_that_does_not_exist_is_told_and_training_goes_on(tmp_path: Path):
    text = """
with strobe.Profiler(output_path="data", light=True, format="chrome.svg,json"):
    train(3)
"""
    done = python(said_training(tmp_path, text), cwd=tmp_path)
    assert done.returncode == 0 and done.stderr.count("\n") == 1
    assert "format: unknown format 'chrome.svg', which is not written" in done.stderr
    assert (tmp_path / "data" / "export.json").exists()
    environment = {
        **os.environ,
        "STROBE_OPTIONS": """
        {"start": true, "light": true, "output_path": "env", "formats": ["nothing"]}""",
    }
    script = said_training(tmp_path, STARTED_BY_THE_ENVIRONMENT)
    done = python(script, cwd=tmp_path, env=environment)
    assert "unknown format 'nothing'" in done.stderr and steps(tmp_path / "env") == {0: 3}


STARTED_BY_THE_ENVIRONMENT = """
from strobe.collect.start import environment
environment.start()
train(3)
"""


def test_a_profiler_without_a_framework_says_so_and_leaves_nothing(tmp_path: Path):
    """Without site-packages: Strobe alone."""
    text = """
with strobe.Profiler(output_path="data", light=True):
    if len(sys.argv) > 1:
        train(3)
"""
    script = said_training(tmp_path, text)
    environment = {**os.environ, "PYTHONPATH": str(Path(strobe.__file__).parents[1])}
    done = python("-S", script, cwd=tmp_path, env=environment)
    assert done.returncode == 0
    assert "strobe: none of jax, mindspore, torch is installed for " in done.stderr
    assert not (tmp_path / "data").exists()
    done = python("-S", script, "train", cwd=tmp_path, env=environment)
    assert "Only steps that end with strobe.step() are recorded" in done.stderr
    assert steps(tmp_path / "data") == {0: 3}
