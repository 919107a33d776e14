"""Windows asked for while real jobs train: edits of every kind, ranks that die."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.dynamic import Editor, furthest, recorded, statuses

from strobe.cli import main
from strobe.collect.on_demand.requests import ask, drop_into
from tests.collect.jobs import until

TRAIN = Path(__file__).with_name("dynamic_train.py")
LAUNCH = """
import os, subprocess, sys
ranks = int(sys.argv[1])
children = [subprocess.Popen([sys.executable, *sys.argv[2:]],
            env={**os.environ, "RANK": str(r), "WORLD_SIZE": str(ranks)}) for r in range(ranks)]
for child in children:
    child.wait()
"""
PATIENCE_S = 120


@pytest.fixture
def job(tmp_path):
    """Start a job of so many ranks under `strobe run --dynamic`; it is ended with the test."""
    started: list[subprocess.Popen] = []

    def start(ranks: int, kind: str) -> subprocess.Popen:
        strobe = [sys.executable, "-m", "strobe", "run", "-q", "-o", str(tmp_path / "run"),
                  "--dynamic", str(tmp_path / "dyn"), "--"]  # fmt: skip
        script = [str(TRAIN), str(tmp_path / "stop"), kind]
        if kind == "gloo":
            launch = [sys.executable, "-m", "torch.distributed.run", "--standalone",
                      f"--nproc-per-node={ranks}", *script]  # fmt: skip
        else:
            launch = [sys.executable, "-c", LAUNCH, str(ranks), *script]
        stderr = (tmp_path / "stderr").open("wb")
        started.append(subprocess.Popen([*strobe, *launch], stderr=stderr, start_new_session=True))
        stderr.close()
        until(lambda: len(statuses(tmp_path / "run")) == ranks, PATIENCE_S)
        return started[-1]

    yield start
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def rows(capsys, *words: object) -> list[list]:
    assert main([*map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)["rows"]


def test_ranks_of_gloo_agree_among_edits_of_every_kind_and_one_is_killed(job, tmp_path, capsys):
    run = tmp_path / "run"
    process = job(4, "gloo")
    editor = Editor(tmp_path / "dyn", seed=1)
    for number in range(1, 5):
        for _ in range(50):
            editor.spoil()
        editor.ask(furthest(run) + 20)
        asked = len(editor.asked)
        until(lambda n=asked: all(len(windows) == n for windows in recorded(run)), PATIENCE_S)
        until(lambda: {s["state"] for s in statuses(run)} == {"training"}, PATIENCE_S)
        assert len({s["finished"] for s in statuses(run)}) == 1, number
    steps = [{g: tuple(fact["steps"]) for g, fact in rank.items()} for rank in recorded(run)]
    assert len(steps[0]) == 4 and steps == [steps[0]] * 4
    lengths = [stop - start for start, stop in steps[0].values()]
    assert lengths == list(editor.asked.values())  # and none was made of two edits

    drop_into(run / "live" / "inbox", ask(steps=5000, by="a test"))
    until(lambda: {s["state"] for s in statuses(run)} == {"recording"}, PATIENCE_S)
    os.kill(statuses(run)[2]["pid"], signal.SIGKILL)
    assert process.wait(PATIENCE_S) != 0  # gloo's other ranks cannot go on
    query = "select rank, step from steps where is_recorded and step < "
    full = rows(capsys, "sql", run, query + str(max(stop for _, stop in steps[0].values())))
    wanted = {step for start, stop in steps[0].values() for step in range(start, stop)}
    for rank in range(4):
        assert {step for number, step in full if number == rank} >= wanted


def test_ranks_go_on_together_when_one_is_killed_in_a_window(job, tmp_path, capsys):
    run = tmp_path / "run"
    process = job(3, "alone")
    inbox = run / "live" / "inbox"
    drop_into(inbox, ask(steps=5000, by="a test"))
    until(lambda: {s["state"] for s in statuses(run)} == {"recording"}, PATIENCE_S)
    os.kill(statuses(run)[0]["pid"], signal.SIGKILL)  # it leads
    drop_into(inbox, {"stop": True})
    until(lambda: [s["finished"] for s in statuses(run)[1:]] == [1, 1], PATIENCE_S)
    ended = {tuple(s["window"]) for s in statuses(run)[1:]}
    assert len(ended) == 1

    drop_into(inbox, ask(steps=3, by="a test", options={"with_stack": True}))
    until(lambda: [s["finished"] for s in statuses(run)[1:]] == [2, 2], PATIENCE_S)
    (tmp_path / "stop").touch()
    assert process.wait(PATIENCE_S) == 0
    (start, stop) = recorded(run)[1][2]["steps"]
    query = f"select rank, step from steps where is_recorded and step >= {start} order by all"
    assert rows(capsys, "sql", run, query) == [
        [rank, step] for rank in (1, 2) for step in range(start, stop)
    ]
    states = [rank["state"] for rank in json.loads((run / "run.json").read_text())["ranks"]]
    assert states == ["killed", "finished", "finished"]
