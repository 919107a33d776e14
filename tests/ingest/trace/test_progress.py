"""How far an import has come."""

import os
import pty
import select
import subprocess
import sys
import time

import pytest

from strobe.ingest.formats import compressed
from strobe.ingest.trace import progress
from tests.processes.test_process import write_trace

TIMEOUT_S = 300  # an import on a busy machine


def test_without_anybody_waiting_nothing_is_written(tmp_path):
    assert "STROBE_PROGRESS" not in os.environ
    progress.report(10**9, 5)


@pytest.mark.slow
def test_what_is_read_here_and_in_children_adds_up(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(bytes(3 << 20))
    with progress.metered() as meter:
        assert meter.done() == (0, 0)
        for _ in compressed.blocks(file, print):
            pass
        progress.report(events=7)
        code = "from strobe.ingest.trace import progress; progress.report(5 << 20, 2)"
        subprocess.run([sys.executable, "-c", code], check=True)
        assert meter.done() == (8 << 20, 9)
    assert "STROBE_PROGRESS" not in os.environ


def shown_on_a_terminal(command: list[str]) -> str:
    outside, inside = pty.openpty()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=inside)
    os.close(inside)
    found, end = b"", time.monotonic() + TIMEOUT_S
    while time.monotonic() < end:
        if select.select([outside], [], [], 0.1)[0]:
            try:
                found += os.read(outside, 65536)
            except OSError:  # the terminal's other side is gone
                break
        elif process.poll() is not None:
            break
    assert process.wait(TIMEOUT_S) == 0
    os.close(outside)
    return found.decode("utf-8", "replace")


@pytest.mark.slow
def test_a_long_import_shows_bytes_events_and_time_left_on_a_terminal(tmp_path):
    write_trace(tmp_path / "a.json", events=800_000)
    command = [sys.executable, "-m", "strobe", "import", str(tmp_path / "a.json"), "-o"]
    shown = shown_on_a_terminal([*command, str(tmp_path / "one")])
    assert "reading" in shown or "writing tables" in shown
    assert "MB" in shown and "events" in shown and ":" in shown
    assert "imported 800,000 events from 1 file" in shown
    quiet = subprocess.run([*command, str(tmp_path / "two")], capture_output=True, text=True)
    (line,) = quiet.stderr.splitlines()
    assert line.startswith("imported 800,000 events") and " MB/s" in line
