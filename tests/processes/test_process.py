"""Processes of our own: what ends one ends no other, and an interrupt ends them all."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from strobe.ingest.building import builder
from strobe.ingest.building.opening import open_run_dir
from strobe.ingest.importing.importer import import_traces
from strobe.model.manifest import read_manifest
from strobe.processes import process
from strobe.store.run import Run

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


def alone(code: str) -> list[str]:
    """The lines that a process prints which has one thread only."""
    begin = "import os; from strobe.processes import process\n"
    done = subprocess.run(
        [sys.executable, "-c", begin + code], capture_output=True, text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"}, timeout=TIMEOUT_S,
    )  # fmt: skip
    assert not done.returncode, done.stderr
    return done.stdout.splitlines()


ENDS = {
    'os.putenv, "A", "B"': (0, "no word"),
    'os.write, 1, b"one\\ntwo\\n"': (0, "two"),
    'int, "x"': (1, "ValueError: invalid literal for int() with base 10: 'x'"),
    "exit, 3": (1, "SystemExit: 3"),
    "os._exit, 4": (4, "no word"),
}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells how many threads there are")
class TestWithOneThread:
    def test_how_a_function_ended_and_its_last_words_are_told(self):
        calls = [f"print(tuple(process.run_apart({call})))" for call in ENDS]
        assert alone("\n".join(calls)) == [str(end) for end in ENDS.values()]

    def test_a_crash_ends_there(self):
        code = """
def crash():
    os.kill(os.getpid(), 11)
print(process.run_apart(crash).code, "goes on")
"""
        assert alone(code) == ["-11 goes on"]

    def test_nothing_of_the_parent_is_done_twice(self):
        code = """
import atexit
atexit.register(print, "end")
process.run_apart(print, "x")
"""
        assert alone(code) == ["end"]

    def test_who_is_waited_for_by_a_process_that_is_killed_is_killed_too(self, tmp_path):
        mark = tmp_path / "mark"
        code = f"""
import time
def wait():
    open({str(mark)!r}, "w").write(str(os.getpid()))
    time.sleep(600)
waiting = os.fork()
if not waiting:
    process.run_apart(wait)
while not os.path.exists({str(mark)!r}) or not open({str(mark)!r}).read():
    time.sleep(0.005)
os.kill(waiting, 9)
os.waitpid(waiting, 0)
"""
        alone(code)
        pid = int(mark.read_text())
        wait_for(lambda: not Path(f"/proc/{pid}").exists(), "end of the child")


def test_beside_other_threads_a_process_is_started():
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    try:
        assert process.run_apart(os.write, 1, b"one\ntwo\n") == (0, "two")
        code, words = process.run_apart(int, "x")
        assert (code, words) == (1, "ValueError: invalid literal for int() with base 10: 'x'")
    finally:
        over.set()
        thread.join()


def test_a_rank_whose_process_is_killed_does_not_spoil_the_others(tmp_path, monkeypatch):
    (tmp_path / "traces").mkdir()
    for rank in range(2):
        write_trace(tmp_path / "traces" / f"rank{rank}.json", events=100)
    run = tmp_path / "run"
    import_traces([tmp_path / "traces"], run)
    monkeypatch.setattr(process, "run_apart", lambda *_: process.Ended(-9, "no word"))
    builder.build_apart(run, 1, 0, run)
    ranks = "SELECT DISTINCT rank FROM tracks ORDER BY rank"
    stored = Run(run, read_manifest(run), [run / "rank_0", run / "rank_1"])
    with contextlib.closing(stored) as opened:
        assert opened.sql(ranks).fetchall() == [(0,)]
        said = opened.sql("SELECT rank, what FROM problems WHERE source = 'ingest'").fetchall()
        assert said == [(1, "the tables of this rank were not built (exit -9): no word")]
    monkeypatch.undo()
    with contextlib.closing(open_run_dir(run)) as opened:  # tries again
        assert opened.sql(ranks).fetchall() == [(0,), (1,)]
