"""Signals end a recorded script as they would a bare one, and the run says which it was."""

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.processes import end, recorded, said_training, start, states, steps, training

FOREVER = """
train(20)
print("ready", flush=True)
while True:
    signal.sigtimedwait([], 0.01)  # a wait that no early signal can miss
"""
OWN_HANDLER = """
def leave(number, frame):
    train(1)
    print("own handler", flush=True)
    sys.exit(5)

signal.signal(signal.SIGINT, leave)
signal.signal(signal.SIGTERM, leave)
"""


@pytest.mark.parametrize(
    ("number", "state"),
    [(signal.SIGINT, "interrupted"), (signal.SIGTERM, "terminated"), (signal.SIGHUP, "killed")],
)
def test_a_signal_to_strobe_ends_the_script_and_strobe_by_it(number, state, tmp_path: Path):
    process = start(*recorded(tmp_path / "run", said_training(tmp_path, FOREVER)))
    assert process.stdout.readline() == "ready\n"
    os.kill(process.pid, number)
    done = end(process)
    assert done.returncode == -number
    assert steps(tmp_path / "run") == {0: 20}
    assert states(tmp_path / "run")[0] == state
    if number == signal.SIGINT:
        assert states(tmp_path / "run")[1] == ["interrupted"]
        assert done.stderr.splitlines()[-1] == "KeyboardInterrupt"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_script_own_handler_runs_once(number, tmp_path: Path):
    script = said_training(tmp_path, OWN_HANDLER + FOREVER)
    process = start(*recorded(tmp_path / "run", script))
    assert process.stdout.readline() == "ready\n"
    os.kill(process.pid, number)
    done = end(process)
    assert (done.returncode, done.stdout, done.stderr) == (5, "own handler\n", "")
    assert steps(tmp_path / "run") == {0: 21}
    assert states(tmp_path / "run") == ("failed", ["failed"])


@pytest.mark.slow
def test_control_c_on_a_terminal_reaches_the_script_once(tmp_path: Path):
    """A terminal signals the whole group: Strobe must not pass it on a second time."""
    pytest.importorskip("torch")
    text = """
import signal, time
handled = 0
def count(number, frame):
    global handled
    handled += 1
signal.signal(signal.SIGINT, count)
train(20)
print("ready", flush=True)
while not handled:  # pause() would miss a signal that came before it
    time.sleep(0.001)
train(20)
print("handled", handled, flush=True)
signal.signal(signal.SIGINT, signal.default_int_handler)
print("ready", flush=True)
while True:
    train(1)
"""
    words = recorded(tmp_path / "run", training(tmp_path, text))
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", TAKE_TERMINAL, *map(str, words)],
        stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    assert process.stdout.readline() == "ready\n"
    os.write(ours, b"\x03")
    assert process.stdout.readline() == "handled 1\n"
    assert process.stdout.readline() == "ready\n"
    os.write(ours, b"\x03")
    done = end(process)
    os.close(ours)
    os.close(theirs)
    assert done.returncode == -signal.SIGINT
    assert done.stderr.splitlines()[-1] == "KeyboardInterrupt"
    assert steps(tmp_path / "run")[0] >= 40
    assert states(tmp_path / "run") == ("interrupted", ["interrupted"])


# Become the foreground of the terminal on stdin, then the command.
TAKE_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
