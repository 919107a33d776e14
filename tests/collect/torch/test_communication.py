"""Two gloo ranks under torchrun, one of them late: the other one's all-reduce shows it."""

import subprocess
import sys

import pytest

import strobe

pytest.importorskip("torch")

pytestmark = pytest.mark.slow

STEPS = 14
LATE_S = 0.03
SCRIPT = f"""
import time, torch, torch.distributed as dist
from torch import nn
dist.init_process_group("gloo")
torch.manual_seed(0)
torch.set_num_threads(1)
net = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 1)))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for _ in range({STEPS}):
    if dist.get_rank() == 1:
        time.sleep({LATE_S})
    optimizer.zero_grad()
    loss = net(torch.randn(8, 64)).mean()
    loss.backward()
    total = loss.detach().clone()
    dist.all_reduce(total)  # between backward and update
    optimizer.step()
dist.destroy_process_group()
"""


def recorded(folder, *options):
    script = folder / "train.py"
    script.write_text(SCRIPT)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    strobe_run = [sys.executable, "-m", "strobe", "run", "-q", "-o", str(folder / "run")]
    done = subprocess.run(
        [*strobe_run, *options, "--", *torchrun, "--master-port", "0", "--rdzv-backend", "c10d",
         "--rdzv-endpoint", "localhost:0", str(script)],
        capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder / "run"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    with strobe.open_run(recorded(tmp_path_factory.mktemp("ranks"))) as run:
        yield run


def test_only_the_ranks_that_were_named_are_recorded_in_full(tmp_path):
    there = recorded(tmp_path, "--ranks", "1,3-5")
    assert not list(there.glob("rank_0/raw/window-*"))
    with strobe.open_run(there) as run:
        steps = run.sql("select rank, count(*) from steps group by rank order by rank").fetchall()
        assert steps == [(0, STEPS), (1, STEPS)]
        ranks = run.sql(
            "select distinct t.rank from events e join tracks t on t.id = e.track_id"
            " where e.kind = 'op'"
        ).fetchall()
        assert ranks == [(1,)]


def test_each_rank_has_its_steps_and_the_launcher_none(run):
    counts = run.sql("select rank, count(*) from steps group by rank order by rank").fetchall()
    assert counts == [(0, STEPS), (1, STEPS)]
    assert [rank.world_size for rank in run.manifest.ranks] == [2, 2]


def test_the_rank_that_waits_spends_its_time_in_all_reduce(run):
    # DDP tells of an iteration at the next one, so the last step has only the wait of the script.
    rows = run.sql(
        f"select rank, median(all_reduce_ns), median(gap_ns) from steps"
        f" where step between 2 and {STEPS - 1} and not is_slowed group by rank order by rank"
    ).fetchall()
    late_ns = LATE_S * 1e9
    (_, waited, _), (_, exchanged, slept) = rows
    assert waited > 0.8 * late_ns > exchanged
    assert slept > 0.8 * late_ns


def test_parts_still_add_up(run):
    parts = "gap_ns + forward_ns + backward_ns + all_reduce_ns + update_ns + rest_ns + recorder_ns"
    assert run.sql(f"select * from steps where dur_ns <> {parts}").fetchall() == []


def test_waits_of_the_script_are_collectives(run):
    kinds = run.sql("select distinct name from events where kind = 'collective'").fetchall()
    assert ("wait",) in kinds
