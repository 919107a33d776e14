"""An import that is interrupted leaves nothing behind: no folder, no process."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from strobe.ingest import children

TIMEOUT_S = 60


def write_trace(path: Path, events: int = 60_000) -> None:
    line = '{"ph":"B","name":"n%d","pid":1,"tid":1,"ts":%d,"args":{"text":"' + "x" * 200 + '"}}'
    path.write_text("[" + ",\n".join(line % (n % 50, n) for n in range(events)))


def wait_for(condition, what: str):
    end = time.monotonic() + TIMEOUT_S
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.005)
    raise AssertionError(f"no {what} within {TIMEOUT_S} s")


def processes_on(folder: Path) -> list[int]:
    """Those that have the folder's name on their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and str(folder).encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("to_group", [False, True], ids=["alone", "group"])
def test_an_interrupted_import_leaves_nothing(tmp_path, ranks, number, to_group):
    folder = tmp_path / "traces"
    folder.mkdir()
    for rank in range(ranks):
        write_trace(folder / f"rank{rank}.json")
    process = subprocess.Popen(
        [sys.executable, "-m", "strobe", "import", folder, "-o", tmp_path / "run"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    wait_for(lambda: list(tmp_path.glob(".run.tmp-*/rank_*/.tables.tmp-*")), "tables begun")
    if to_group:
        os.killpg(process.pid, number)
    else:
        os.kill(process.pid, number)
    out, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == (130 if number == signal.SIGINT else -signal.SIGTERM), err
    assert (out, err) == ("", "")
    assert [path.name for path in tmp_path.iterdir()] == ["traces"]
    wait_for(lambda: not processes_on(tmp_path), "end of all children")


def test_an_exception_ends_the_children_and_begins_no_more(tmp_path):
    mark = tmp_path / "mark"
    code = "import sys, time; open(sys.argv[1], 'w').close(); time.sleep(600)"
    command = [sys.executable, "-c", code, str(mark)]
    began = time.monotonic()
    with pytest.raises(RuntimeError), children.pool(1) as workers:
        waiting = [workers.submit(children.run, command, dict(os.environ)) for _ in range(5)]
        wait_for(mark.exists, "child")
        raise RuntimeError
    assert waiting[0].result().returncode == -signal.SIGKILL
    assert all(later.cancelled() or later.result().returncode for later in waiting[1:])
    assert time.monotonic() - began < TIMEOUT_S
    assert children.run([sys.executable, "-c", ""], {}).returncode == -9  # it is over


def test_what_a_child_says_is_heard():
    with children.pool(2) as workers:
        code = "import sys; sys.exit('a word')"
        done = workers.submit(children.run, [sys.executable, "-c", code], dict(os.environ)).result()
    assert (done.returncode, done.stderr) == (1, "a word\n")
    assert json.dumps(done.stdout) == '""'
