"""kill -9 at any moment: the run opens, holds every step that was finished, and says so."""

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import strobe
from tests.faults.processes import ask, end, problems, python, recorded, start, states, training

pytest.importorskip("torch")
pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
KILLS = 200
SECOND_NS = 1_000_000_000
BEFORE_TRAINING = (
    "this run does not exist",
    "this folder is empty",
    # Taken, but run.json not yet written.
    "run.json cannot be read: Expecting value: line 1 column 1 (char 0)",
    "nothing was recorded: none of its processes has started to train yet",
)


def plan() -> list[list]:
    """Moments from before the first mark to well past a second; every fifth records in full."""
    chance = random.Random(2)
    short = [[chance.uniform(0.0, 0.3), {"light": True}] for _ in range(KILLS - 50)]
    full = [[chance.uniform(0.05, 0.5), {"whole": True}] for _ in range(40)]
    long = [[chance.uniform(1.2, 2.0), {"light": True}] for _ in range(10)]
    together = short + full + long
    chance.shuffle(together)
    return together


@pytest.mark.timing("processes train before they are killed")
def test_two_hundred_kills_lose_no_finished_step(tmp_path: Path):
    moments = plan()
    done = python(HERE / "kill_server.py", tmp_path, json.dumps(moments))
    assert done.returncode == 0, done.stderr
    kills = [line.split() for line in (tmp_path / "kills.log").read_text().splitlines()]
    assert [int(status) for *_, status in kills] == [signal.SIGKILL] * KILLS
    killed_at = {int(number): int(at_ns) for number, at_ns, _ in kills}
    with ThreadPoolExecutor(2) as workers:
        lost = list(workers.map(lambda n: check_killed(tmp_path, n), range(KILLS)))
    assert lost == [0] * KILLS
    older = [len(steps_before(tmp_path, n, at - SECOND_NS)) for n, at in killed_at.items()]
    assert sum(older) > 1000, "the kills came too early to say anything about a second before"


def check_killed(folder: Path, number: int) -> int:
    """Opens the run and checks what it says of its end; returns how many steps it has lost."""
    finished = len(steps_before(folder, number, None))
    try:
        with strobe.open_run(folder / str(number)) as run:
            found = run.sql("select max(step), count(distinct step) from steps").fetchall()[0]
            assert run.manifest.state == "killed"
            assert [rank.state for rank in run.manifest.ranks] == ["killed"]
    except strobe.StrobeError as error:
        # Killed before the first backward pass had begun: no rank, and that is said.
        assert not finished, error
        assert error.what in BEFORE_TRAINING and error.hint, error
        return 0
    last, count = found[0] or 0, found[1]
    assert last == count
    assert count <= finished + 1, "a step that was never finished"
    return max(0, finished - count)


def steps_before(folder: Path, number: int, at_ns: int | None) -> list[int]:
    try:
        lines = (folder / f"{number}.log").read_text().splitlines()
    except FileNotFoundError:
        return []
    pairs = [tuple(map(int, line.split())) for line in lines]
    return [step for step, ts_ns in pairs if at_ns is None or ts_ns < at_ns]


LOGGING = """
log = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
print(os.getpid(), flush=True)
for step in range(1, 1_000_000):
    train(1)
    os.write(log, b"%d\\n" % step)
"""


def test_a_script_under_strobe_run_is_killed(tmp_path: Path):
    """The real command, once for each way to record: the import of torch takes the time."""
    script = training(tmp_path, LOGGING)
    options = ["--light", "--steps=3:6", "--whole"]
    chance = random.Random(3)
    running = [
        start(*recorded(tmp_path / f"{n}", option, script, tmp_path / f"{n}.log"))
        for n, option in enumerate(options)
    ]
    pids = [int(process.stdout.readline()) for process in running]
    for number, (process, pid) in enumerate(zip(running, pids, strict=True)):
        moment = chance.randrange(1, 400)
        wait_until(lambda n=number, m=moment: lines_in(tmp_path / f"{n}.log") >= m)
        os.kill(pid, signal.SIGKILL)
        assert end(process).returncode == -signal.SIGKILL
        finished = lines_in(tmp_path / f"{number}.log")
        assert ask(tmp_path / f"{number}", "select count(*) from steps")[0][0] in (
            finished, finished + 1,
        )  # fmt: skip
        assert states(tmp_path / f"{number}") == ("killed", ["killed"])


TORCHRUN = """
import torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
net = torch.nn.parallel.DistributedDataParallel(net)
for step in range(1, 1_000_000):
    train(1)
    if rank == 2 and step == 30:
        os.kill(os.getpid(), 9)
"""


def test_one_of_four_ranks_of_torchrun_is_killed_and_all_are_readable(tmp_path: Path):
    script, run = training(tmp_path, TORCHRUN), tmp_path / "run"
    torchrun = ("--", Path(sys.executable).with_name("torchrun"), "--nproc-per-node", 4)
    done = python(*recorded(run, "--steps=3:5", *torchrun, "--standalone", script))
    assert done.returncode == 1, done.stderr
    found = dict(ask(run, "select rank, count(*) from steps group by rank order by rank"))
    assert list(found) == [0, 1, 2, 3]
    # Rank 2 finished 30 steps; the others can be one ahead or behind it, and in their last.
    assert found[2] == 30 and all(29 <= count <= 31 for count in found.values()), found
    state, of_ranks = states(run)
    assert state == "failed" and of_ranks[2] == "killed" and "finished" not in of_ranks
    assert sorted(path.name for path in run.glob("rank_*")) == [f"rank_{n}" for n in range(4)]


EXPORTING = """
print(os.getpid(), flush=True)
while True:
    loss = net(torch.randn(4, 8)).mean()
    for _ in range(4000):
        loss = loss + 1
    loss.backward()
    optimizer.step()
"""


def test_a_kill_while_a_window_is_written_costs_that_window_only(tmp_path: Path):
    script, run = training(tmp_path, EXPORTING), tmp_path / "run"
    process = start(*recorded(run, "--steps=2:7", script))
    pid, raw = int(process.stdout.readline()), run / "rank_0" / "raw"
    wait_until(lambda: any(raw.glob("window-0001.trace.json*")))
    os.kill(pid, signal.SIGKILL)
    assert end(process).returncode == -signal.SIGKILL
    assert not list(raw.glob("*.gz")), "the window was written before the kill"
    assert ask(run, "select count(*) > 2 from steps") == [(True,)]
    assert any("trace" in what or "cut" in what for what in problems(run)), problems(run)


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def lines_in(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0
