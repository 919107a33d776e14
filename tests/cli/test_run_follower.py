"""A run is followed while its script trains: windows are read ahead, the summary comes early."""

import json
import signal
from pathlib import Path

import duckdb
import pytest

from strobe.ingest.recording.early_windows import FOLDER
from tests.faults.processes import TIMEOUT_S, ask, python, said_training, start, training

pytestmark = pytest.mark.slow

# Said when the interpreter takes the script's module apart, which is after everything else. It
# stays until there is a file `leave`, or for a minute.
SLOW_TO_LEAVE = """
class Last:
    def __del__(self, sleep=time.sleep, is_there=os.access, write=sys.stderr.write):
        for _ in range(6000):
            if is_there("leave", 0):
                break
            sleep(0.01)
        write("the script has gone")
        {leave}

last = Last()
train(20)
"""


def run(folder: Path, script: Path, *options: str):
    return python("-m", "strobe", "run", "-o", folder / "run", *options, script, cwd=folder)


def summary_and_rest(folder: Path, leave: str) -> tuple[str, str, int]:
    """What is printed up to the end of the summary, what comes once the script may leave, and the
    exit code."""
    script = said_training(folder, SLOW_TO_LEAVE.format(leave=leave))
    process = start("-m", "strobe", "run", "-o", folder / "run", "--light", script, cwd=folder)
    summary = ""
    for line in process.stderr:
        summary += line
        if "strobe: recorded to" in line:
            break
    (folder / "leave").touch()
    rest = process.stderr.read()
    process.stdout.close()
    process.stderr.close()
    return summary, rest, process.wait(TIMEOUT_S)


def manifest(folder: Path) -> dict:
    return json.loads((folder / "run" / "run.json").read_text())


def test_the_summary_does_not_wait_for_the_interpreter(tmp_path):
    summary, rest, code = summary_and_rest(tmp_path, "pass")
    assert "One step takes" in summary and "strobe: recorded to" in summary
    assert "the script has gone" not in summary
    assert rest == "the script has gone" and code == 0
    assert manifest(tmp_path)["state"] == "finished"
    assert ask(tmp_path / "run", "select count(*) from steps") == [(20,)]


def test_what_happens_after_the_summary_is_told(tmp_path):
    _, rest, code = summary_and_rest(tmp_path, "os.kill(os.getpid(), 9)")
    _, _, after = rest.partition("the script has gone")
    assert "strobe: the script then ended by signal 9" in after and "killed" in after
    assert code == -signal.SIGKILL
    assert (manifest(tmp_path)["state"], manifest(tmp_path)["signal"]) == ("killed", 9)


def test_an_exit_code_that_only_the_end_tells_is_told(tmp_path):
    done = run(tmp_path, said_training(tmp_path, "train(20)\nsys.exit(3)\n"), "--light")
    assert done.stderr.count("One step takes") == 1
    assert done.returncode == 3
    assert (manifest(tmp_path)["state"], manifest(tmp_path)["exit_code"]) == ("failed", 3)
    assert "exit code 3" in done.stderr


# It gives a summary that comes too early all the time it needs.
OUTER = """
import pathlib, subprocess, sys, time
subprocess.run([sys.executable, "inner.py"], check=True)
end = time.monotonic() + 4
while time.monotonic() < end and not pathlib.Path("run/rank_0/tables").exists():
    time.sleep(0.05)
print("more to do", file=sys.stderr)
"""


def test_a_training_inside_a_longer_script_is_not_the_end(tmp_path):
    """The rank is not the process that was started: that one may have more to do."""
    said_training(tmp_path, "train(20)\n", "inner.py")
    outer = tmp_path / "outer.py"
    outer.write_text(OUTER)
    done = run(tmp_path, outer, "--light")
    assert done.stderr.index("more to do") < done.stderr.index("One step takes")


# The window is read ahead; then its file is spoilt, keeping size and times. Whoever still knows its
# operators cannot have them from the file.
SPOIL = """
import pathlib, time
train(8)
rank = pathlib.Path("run/rank_0")
packed = rank / "raw" / "window-0001.trace.json.gz"
end = time.monotonic() + 60
while time.monotonic() < end and not list(rank.glob("{folder}/window-0001.columns")):
    train(1)
    time.sleep(0.05)
status = packed.stat()
packed.write_bytes(bytes(status.st_size))
os.utime(packed, ns=(status.st_atime_ns, status.st_mtime_ns))
"""


def test_windows_are_read_ahead_and_used(tmp_path):
    done = run(tmp_path, training(tmp_path, SPOIL.format(folder=FOLDER)), "--steps", "2:4")
    assert done.returncode == 0, done.stderr
    assert "aten::addmm" in done.stderr and "Linear" in done.stderr
    assert not (tmp_path / "run" / "rank_0" / FOLDER).exists()
    stored = str(tmp_path / "run" / "rank_0" / "tables" / "events.parquet")
    names = duckdb.sql(f"SELECT DISTINCT name FROM '{stored}' WHERE kind = 'op'").fetchall()
    assert ("aten::addmm",) in names
