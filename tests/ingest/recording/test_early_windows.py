"""Windows read ahead: the build takes them if they still hold, and does without if not."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from strobe.errors import NoSuchRun
from strobe.ingest.building.opening import open_run_dir
from strobe.ingest.formats import kineto
from strobe.ingest.recording import early_windows, rank_state
from strobe.model.journal import FACTS_FILE
from tests.ingest.runs import Mark, op, plain_steps, write_raw, write_window

EVENTS = [
    op("aten::linear", 20, 60, **{"Input Dims": [[2, 3]], "Input type": ["float"]}),
    op("aten::addmm", 25, 55, **{"Sequence number": 7, "External id": 3}),
    op("strobe:0", 15, 65),
    {"ph": "i", "name": "[memory]", "ts": 30, "pid": 77, "tid": 77, "s": "t",
     "args": {"Addr": 4096, "Bytes": 512, "Device Type": 0, "Device Id": -1}},
    {"ph": "M", "name": "thread_name", "pid": 77, "tid": 77, "args": {"name": "Hauptfaden ü"}},
    {"ph": "X", "cat": "cpu_op", "name": "no time", "pid": 77, "tid": 77, "args": {}},
]  # fmt: skip


@pytest.fixture
def window(tmp_path) -> Path:
    """A run of two steps with a window, and the trace of that window."""
    marks = [(10_000, Mark.WINDOW_BEGAN, 0, 1), (140_000, Mark.WINDOW_ENDED, 0, 1)]
    raw = write_raw(tmp_path / "run", [*plain_steps(2), *marks])
    write_window(raw, EVENTS, modules={"0": {"class": "Linear", "path": "net"}})
    return raw / "window-0001.trace.json.gz"


def everything(trace: kineto.Trace) -> dict[str, object]:
    """All that a trace holds, as plain values."""
    found: dict[str, object] = {f"args.{k}": v.tolist() for k, v in trace.events.args.items()}
    for part in ("events", "memory"):
        columns = getattr(trace, part)
        for field in fields(columns):
            if field.name != "args":
                column = getattr(columns, field.name)
                found[f"{part}.{field.name}"] = (column.dtype, column.tolist())
    for field in fields(trace):
        if field.name not in ("events", "memory"):
            found[field.name] = getattr(trace, field.name)
    return found


def tables(run: Path) -> list[object]:
    with open_run_dir(run).connection as connection:
        return [
            connection.sql(f"FROM {name} ORDER BY ALL").fetchall()
            for name in ("events", "op_args", "allocations", "tracks", "problems")
        ]


def unreadable(*_):
    raise AssertionError("the trace was read again")


def test_it_is_what_reading_the_file_gives(window):
    early_windows.save(window)
    assert everything(early_windows.load(window)) == everything(kineto.read(window))
    assert early_windows.load(window).problems.counts  # of the event without a time


def test_columns_may_be_changed_like_those_of_a_file(window):
    early_windows.save(window)
    trace = early_windows.load(window)
    trace.events.ts_ns += 1
    assert trace.events.ts_ns[0] == kineto.read(window).events.ts_ns[0] + 1


def test_nothing_is_kept_of_a_window_that_was_removed_meanwhile(window, monkeypatch):
    read = kineto.read

    def removing_it(path):
        trace = read(path)
        path.unlink()
        return trace

    monkeypatch.setattr(kineto, "read", removing_it)
    with pytest.raises(NoSuchRun):
        early_windows.save(window)
    assert [path.name for path in window.parents[1].iterdir()] == ["raw"]


def test_the_build_takes_it_and_then_it_goes(window, monkeypatch, tmp_path):
    run = window.parents[2]
    expected = tables(run)
    early_windows.save(window)
    for path in (window.parents[1] / "tables").iterdir():
        path.unlink()
    monkeypatch.setattr(kineto, "read", unreadable)
    assert tables(run) == expected
    assert not (window.parents[1] / early_windows.FOLDER).exists()


def test_it_stays_while_the_rank_trains(window):
    facts = window.parent / FACTS_FILE
    lines = [line for line in facts.read_text().splitlines() if '"end"' not in line]
    here = f'"pid": {os.getpid()}, "host": "{os.uname().nodename}"'
    facts.write_text("\n".join(lines).replace('"pid": 77, "host": "there"', here) + "\n")
    early_windows.save(window)
    open_run_dir(window.parents[2]).close()
    assert early_windows.load(window) is not None


def test_a_window_that_changed_since_is_read_anew(window):
    early_windows.save(window)
    write_window(window.parent, [op("aten::other", 20, 60)])
    assert early_windows.load(window) is None
    assert early_windows.read(window).names == ["aten::other"]


def test_what_other_code_read_is_not_taken(window, monkeypatch):
    early_windows.save(window)
    monkeypatch.setattr(rank_state, "builder", lambda: 1)
    assert early_windows.load(window) is None


def test_damage_anywhere_is_noticed(window):
    early_windows.save(window)
    place = window.parents[1] / early_windows.FOLDER / "window-0001.columns"
    whole = place.read_bytes()
    for position in [*range(60), *range(60, len(whole), 97)]:
        place.write_bytes(whole[:position] + bytes([whole[position] ^ 4]) + whole[position + 1 :])
        assert early_windows.load(window) is None, position
        place.write_bytes(whole[:position])
        assert early_windows.load(window) is None, position
    place.write_bytes(whole)
    assert early_windows.load(window) is not None


def test_a_window_that_cannot_be_read_leaves_nothing(window):
    window.write_bytes(b"\x1f\x8b broken")
    early_windows.save(window)  # an empty trace with its problem, like the file's
    assert everything(early_windows.load(window)) == everything(kineto.read(window))


def reader(run: Path) -> subprocess.Popen:
    code = "import sys; from strobe.ingest.recording.early_windows import main; main(sys.argv[1])"
    return subprocess.Popen([sys.executable, "-c", code, run], stdin=subprocess.PIPE, bufsize=0)


def until(is_so, patience_s: float = 60.0) -> bool:
    end = time.monotonic() + patience_s
    while not is_so() and time.monotonic() < end:
        time.sleep(0.02)
    return bool(is_so())


@pytest.mark.slow
def test_the_reader_looks_when_told_humbly_and_ends_with_its_pipe(window):
    process = reader(window.parents[2])
    process.stdin.write(b".")
    assert until(lambda: early_windows.load(window))
    assert os.sched_getscheduler(process.pid) == os.SCHED_IDLE
    assert os.getpriority(os.PRIO_PROCESS, process.pid) == 19
    write_window(window.parent, EVENTS, number=2)
    process.stdin.write(b".")
    assert until(lambda: early_windows.load(window.with_name("window-0002.trace.json.gz")))
    process.stdin.close()
    assert process.wait(60) == 0


@pytest.mark.slow
def test_a_killed_reader_leaves_nothing_half(window):
    """Killed at moments all over its work; the build then reads the file."""
    expected = everything(kineto.read(window))
    for delay in np.linspace(0, 0.6, 7):
        process = reader(window.parents[2])
        process.stdin.write(b".")
        time.sleep(float(delay))
        process.kill()
        process.wait()
        process.stdin.close()
        assert everything(early_windows.read(window)) == expected
    assert open_run_dir(window.parents[2]).sql("FROM op_args").fetchall()
    assert not (window.parents[1] / early_windows.FOLDER).exists()


PARENT = """
import subprocess, sys, time
code = "import sys; from strobe.ingest.recording.early_windows import main; main(sys.argv[1])"
child = subprocess.Popen([sys.executable, "-c", code, sys.argv[1]], stdin=subprocess.PIPE)
print(child.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.slow
def test_a_reader_whose_parent_is_killed_goes_too(window):
    command = [sys.executable, "-c", PARENT, window.parents[2]]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as parent:
        pid = int(parent.stdout.readline())
        parent.send_signal(signal.SIGKILL)
    assert until(lambda: not Path(f"/proc/{pid}").exists() or is_zombie(pid))


def is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
