import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import strobe

pytestmark = pytest.mark.slow

LOGS = """
import strobe
strobe.log_hyperparameters({"lr": 0.1})
for step in range(100):
    strobe.log({"loss": 1 / (step + 1), "step": step}, step=step)
"""
# Tells through a pipe how far it came, as fast as it can.
FAST = """
import os, strobe
strobe.log_lineage({"data": "v1"})
strobe.log({"n": -1}, step=0)
print("ready", flush=True)
step = 0
while True:
    step += 1
    strobe.log({"n": step, "m": -step}, step=step)
    progress[0] = step
"""


def run(script: str, folder: Path, **variables: str) -> subprocess.CompletedProcess:
    (folder / "train.py").write_text(script)
    return subprocess.run(
        [sys.executable, "train.py"], cwd=folder, capture_output=True, text=True, timeout=120,
        env={**os.environ, **variables}, check=False,
    )  # fmt: skip


def test_a_script_logs_without_strobe_run(tmp_path):
    done = run(LOGS, tmp_path, STROBE_OUTPUT=str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    assert done.stderr == f"strobe: logging to {tmp_path / 'out'}\n"
    with strobe.open_run(tmp_path / "out") as opened:
        rows = opened.run.sql("select step, value from scalars where tag = 'loss' order by step")
        assert rows.fetchall() == [(n, 1 / (n + 1)) for n in range(100)]
        assert opened.run.sql("select name, number from hyperparameters").fetchall() == [
            ("lr", 0.1)
        ]


def test_a_folder_that_cannot_be_written_is_named_and_the_script_goes_on(tmp_path):
    (tmp_path / "file").write_text("")
    done = run(LOGS + "print('done')", tmp_path, STROBE_OUTPUT=str(tmp_path / "file" / "out"))
    assert done.stdout == "done\n"
    assert done.stderr.startswith("strobe: nothing that this script logs is recorded: ")
    assert done.stderr.count("\n") == 1


def test_kills_lose_nothing(tmp_path):
    """What was logged before the kill is there, whenever it comes; lineage, too."""
    script = FAST.replace(
        "import os, strobe",
        "import mmap, os, strobe\n"
        "progress = memoryview(mmap.mmap(os.open('progress', os.O_RDWR), 8)).cast('q')",
    )
    chance = random.Random(3)
    for number in range(6):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "progress").write_bytes(bytes(8))
        (folder / "train.py").write_text(script)
        process = subprocess.Popen(
            [sys.executable, "train.py"], cwd=folder, stdout=subprocess.PIPE, text=True,
            stderr=subprocess.DEVNULL, env={**os.environ, "STROBE_OUTPUT": str(folder / "out")},
        )  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.1 + chance.uniform(0, 0.4))
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        done = int.from_bytes((folder / "progress").read_bytes(), "little")
        with strobe.open_run(folder / "out") as opened:
            sql = "select count(*), max(value) from scalars where tag = 'n' and value > 0"
            ((count, last),) = opened.run.sql(sql).fetchall()
            assert count == last
            assert done <= last <= done + 1
            assert done > 100
            names = opened.run.sql("select name, value from lineage").fetchall()
            assert names == [("data", "v1")]


FORKS = """
import os, strobe
strobe.log({"parent": 1.0}, step=1)
for child in range(2):
    pid = os.fork()
    if pid == 0:
        strobe.log({"child": float(child)}, step=child)
        strobe.log_text("note", "x" * 100_000, step=child)
        if os.fork() == 0:
            strobe.log({"grandchild": float(child)}, step=child)
            os._exit(0)
        os.wait()
        strobe.recorder_of_tests.close("finished")
        os._exit(0)
    os.waitpid(pid, 0)
strobe.log({"parent": 2.0}, step=2)
""".replace(
    'strobe.recorder_of_tests.close("finished")',
    "from strobe.collect.metrics import api; api._home.metrics.close()",
)


def test_forked_processes_log_to_the_rank_of_their_parent(tmp_path):
    done = run(FORKS, tmp_path, STROBE_OUTPUT=str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    assert [path.name for path in (tmp_path / "out").glob("rank_*")] == ["rank_0"]
    with strobe.open_run(tmp_path / "out") as opened:
        rows = opened.run.sql("select tag, step, value from scalars order by tag, step").fetchall()
        texts = opened.run.sql("select step, length(text) from texts order by step").fetchall()
        assert opened.run.sql("from problems").fetchall() == []
    assert rows == [
        ("child", 0, 0.0), ("child", 1, 1.0), ("grandchild", 0, 0.0), ("grandchild", 1, 1.0),
        ("parent", 1, 1.0), ("parent", 2, 2.0),
    ]  # fmt: skip
    assert texts == [(0, 100_000), (1, 100_000)]
