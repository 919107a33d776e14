import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from strobe.cli import main
from strobe.cli.commands.attach import find_run
from strobe.errors import UsageError

pytestmark = pytest.mark.slow

# Trains until its standard input is closed.
TRAIN = """
import sys, threading, time, torch
torch.set_num_threads(1)
net = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
stopped = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), stopped.set()), daemon=True).start()
while not stopped.wait(0.01):
    optimizer.zero_grad()
    net(torch.randn(4, 8)).square().mean().backward()
    optimizer.step()
"""


@pytest.fixture(scope="module")
def light(tmp_path_factory):
    """A training that `strobe run --light` records: its process, and its run."""
    folder = tmp_path_factory.mktemp("light")
    (folder / "train.py").write_text(TRAIN)
    command = [sys.executable, "-m", "strobe", "run", "--light", "-q", "-o", "run", "train.py"]
    with subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE) as process:
        deadline = time.monotonic() + 90
        while not list((folder / "run" / "live" / "ranks").glob("rank_0.json")):
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.1)
        yield process, folder / "run"
        process.stdin.close()


def refusal(pid: int) -> UsageError:
    with pytest.raises(UsageError) as error:
        find_run(pid)
    return error.value


def test_a_window_is_recorded_by_the_number_of_the_process_above(light, capsys):
    process, run = light
    assert main(["attach", str(process.pid), "--steps", "3", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["run"], told["steps"], told["generation"]) == (str(run), 3, 1)
    assert main(["sql", str(run), "select step from steps where is_recorded", "--json"]) == 0
    steps = [step for (step,) in json.loads(capsys.readouterr().out)["rows"]]
    assert steps == list(range(told["start_step"], told["start_step"] + 3))
    assert main(["show", str(run)]) == 0
    assert "asked for by strobe attach" in capsys.readouterr().out
    assert main(["advise", str(run)]) == 0


def test_a_window_with_stacks_by_the_number_of_the_rank(light, capsys):
    _, run = light
    rank = json.loads((run / "live" / "ranks" / "rank_0.json").read_text())
    assert main(["attach", str(rank["pid"]), "--steps", "1", "--with-stack"]) == 0
    assert "recorded step" in capsys.readouterr().out
    facts = [json.loads(line) for line in (run / "rank_0/raw/facts.jsonl").read_text().splitlines()]
    asked = [fact for fact in facts if fact["type"] == "asked window"]
    assert asked[-1]["options"]["with_stack"] is True


def test_words_for_what_cannot_be_attached_to(monkeypatch, tmp_path):
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as stranger:
        error = refusal(stranger.pid)
        assert "is recorded by Strobe" in error.what and "strobe run --light" in error.hint
        monkeypatch.setattr("strobe.cli.commands.attach._may_read", lambda pid: False)
        assert "belongs to another user" in refusal(stranger.pid).what
        stranger.communicate(b"\n")
    assert "does not exist" in refusal(stranger.pid).what


def test_a_process_that_has_not_begun_to_train(tmp_path):
    environment = {**os.environ, "STROBE_SESSION": "soon"}
    command = [sys.executable, "-S", "-c", "input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, env=environment) as early:
        while b"STROBE_SESSION" not in Path(f"/proc/{early.pid}/environ").read_bytes():
            time.sleep(0.01)
        assert "has not started to train" in refusal(early.pid).what
        early.communicate(b"\n")
