import os
import subprocess
import sys
from pathlib import Path

import pytest

from strobe.advise.finding import CannotTell, Clear, Finding
from strobe.advise.rules import slow_rank
from strobe.advise.training import Training
from strobe.ingest.building.opening import open_run_dir
from tests.advise.device_drawings import Drawing
from tests.advise.drawings import same, steps
from tests.helpers import make_run


def drawn(tmp_path, *ranks):
    """Ranks of steps alike, each by its parts in µs."""
    lines = [steps(*same(parts, 12), rank=rank) for rank, parts in enumerate(ranks)]
    return Training(make_run(tmp_path, "".join(lines)))


QUICK = {"gap": 10, "forward": 30, "backward": 20, "all_reduce": 40}


def test_the_rank_that_others_wait_for_is_found_with_its_longer_part(tmp_path):
    slow = {"gap": 10, "forward": 60, "backward": 25, "all_reduce": 5}
    verdict = slow_rank.check(drawn(tmp_path, QUICK, slow, QUICK))
    assert isinstance(verdict, Finding)
    # Own work of 95 µs against 60 µs, in steps of 100 µs.
    assert verdict.share == pytest.approx(0.35)
    assert verdict.expected_speedup == pytest.approx(1 / 0.65)
    assert verdict.title == "The other ranks spend 35% of each step waiting for rank 1."
    assert verdict.why == (
        "On rank 1, the forward pass takes 30.0 µs longer per step than on the others."
    )
    assert verdict.fixes[0].startswith("Give rank 1 as much work as the others")
    assert [row["all_reduce_ns"] for row in verdict.evidence[0].rows] == [40_000, 5_000, 40_000]


@pytest.mark.parametrize(("more_us", "kind"), [(9, Clear), (11, Finding)])
def test_either_side_of_the_threshold(tmp_path, more_us, kind):
    slow = {**QUICK, "forward": 30 + more_us, "all_reduce": 40 - more_us}
    assert isinstance(slow_rank.check(drawn(tmp_path, QUICK, slow)), kind)


def test_ranks_that_are_slow_by_turns_are_none(tmp_path):
    slow = {**QUICK, "forward": 60, "all_reduce": 10}
    drawing = steps(*[slow, QUICK, slow] * 5) + steps(*[QUICK, slow, QUICK] * 5, rank=1)
    verdict = slow_rank.check(Training(make_run(tmp_path, drawing)))
    assert isinstance(verdict, Clear) and "not consistently" in verdict.why


def counted(training, cores, busy):
    """What the processes of two ranks use of the processor, and what is busy in all."""
    rows = [f"({rank}, {ts}, 'process_cpu_ns_total', {ts * used})"
            for rank, used in enumerate(cores) for ts in (0, 1000)]  # fmt: skip
    rows.append(f"(0, 0, 'cores_busy_milli', {busy * 1000})")
    rows.append("(0, 0, 'cores_usable_milli', 4000)")
    training.run.connection.execute(
        "CREATE OR REPLACE VIEW counters AS SELECT col0 AS rank, col1 AS ts_ns, col2 AS name, "
        f"col3::DOUBLE AS value FROM (VALUES {', '.join(rows)})"
    )
    return training


SLOW = {**QUICK, "forward": 60, "all_reduce": 10}


def test_ranks_that_keep_all_cores_busy_wait_for_each_other(tmp_path):
    training = counted(drawn(tmp_path, QUICK, SLOW), cores=(1.9, 1.9), busy=3.9)
    verdict = slow_rank.check(training)
    assert isinstance(verdict, CannotTell) and "all 4 cores" in verdict.reason


def test_longer_batches_are_shared_and_do_not_vanish(tmp_path):
    training = counted(drawn(tmp_path, QUICK, SLOW), cores=(0.5, 0.9), busy=1.5)
    verdict = slow_rank.check(training)
    # 90 µs against 60 µs of 100 µs: if both took 75 µs, a step would be shorter by 15 µs.
    assert verdict.share == pytest.approx(0.3)
    assert verdict.expected_speedup == pytest.approx(1 / 0.85)


def test_a_rank_that_others_keep_from_the_processor_is_not_to_blame(tmp_path):
    crowded = counted(drawn(tmp_path / "a", QUICK, SLOW), (0.3, 0.3), 2.0)
    assert isinstance(slow_rank.check(crowded), CannotTell)
    quiet = counted(drawn(tmp_path / "b", QUICK, SLOW), (0.3, 0.3), 0.7)
    assert isinstance(slow_rank.check(quiet), Finding)
    computing = counted(drawn(tmp_path / "c", QUICK, SLOW), (0.3, 0.6), 2.0)
    assert isinstance(slow_rank.check(computing), Finding)


def test_a_rank_that_computes_more_is_found_through_more_noise(tmp_path):
    drawing = steps(*[QUICK, SLOW, QUICK] * 5) + steps(*[SLOW, QUICK, SLOW] * 5, rank=1)
    training = Training(make_run(tmp_path, drawing))
    assert isinstance(slow_rank.check(training), Clear)
    assert isinstance(slow_rank.check(counted(training, (0.3, 0.6), 2.0)), Finding)


def test_a_rank_that_works_longer_while_nobody_waits_is_none(tmp_path):
    longer = {**QUICK, "forward": 60}
    verdict = slow_rank.check(drawn(tmp_path, QUICK, longer))
    assert isinstance(verdict, Clear) and verdict.why.endswith("they do not wait for it.")


def with_programs(tmp_path, ranks, windows, more=""):
    """Each rank's parts, and those of the steps recorded in full, in which they were measured."""
    lines = []
    for rank, (parts, inside) in enumerate(zip(ranks, windows, strict=True)):
        lines.append(steps(*same(parts, 5), *inside, *same(parts, 12), rank=rank, window=(6, 10)))
        lines.append(f"{rank}/compiled~programs runtime:program~step 1000..2000\n")
    return Training(make_run(tmp_path, "".join(lines) + more))


def test_parts_of_programs_are_believed_where_they_were_measured(tmp_path):
    # Elsewhere they are in the proportions of the window: one odd step of it is then in all.
    windows = [[QUICK] * 4 + [SLOW], [SLOW] * 4 + [QUICK]]
    assert isinstance(slow_rank.check(with_programs(tmp_path / "a", [QUICK, SLOW], windows)), Clear)
    windows = [[QUICK] * 5, [SLOW] * 5]
    verdict = slow_rank.check(with_programs(tmp_path / "b", [QUICK, SLOW], windows))
    assert isinstance(verdict, Finding) and "the forward pass takes 30.0 µs" in verdict.why


def test_what_a_rank_does_between_programs_is_seen_in_every_step(tmp_path):
    busy = {**QUICK, "gap": 40, "all_reduce": 10}
    verdict = slow_rank.check(with_programs(tmp_path, [QUICK, busy], [[QUICK] * 5] * 2))
    assert isinstance(verdict, Finding)
    assert verdict.share == pytest.approx(0.3)
    assert "the gap between steps takes 30.0 µs longer" in verdict.why


def test_programs_between_steps_wait_for_cores_as_those_of_the_passes_do(tmp_path):
    busy = {**QUICK, "gap": 40, "all_reduce": 10}

    def judged(name, *, until_us, cores, used):
        """Rank 1 has longer gaps, in which a program runs for the first µs."""
        lines = [f"1/compiled~programs runtime:program~encode {at}..{at + until_us * 1000}\n"
                 for at in range(500_000, 1_000_000, 100_000)]  # fmt: skip
        windows = [[QUICK] * 5, [busy] * 5]
        training = with_programs(tmp_path / name, [QUICK, busy], windows, "".join(lines))
        return slow_rank.check(counted(training, cores=cores, busy=used))

    shared = judged("shared", until_us=35, cores=(1.8, 1.8), used=3.8)
    assert isinstance(shared, CannotTell) and "all 4 cores" in shared.reason
    assert isinstance(judged("python", until_us=5, cores=(1.8, 1.8), used=3.8), Finding)
    assert isinstance(judged("quiet", until_us=35, cores=(1, 1), used=2.2), Finding)
    assert isinstance(judged("more", until_us=35, cores=(1, 2), used=3.8), Finding)


def test_one_rank_cannot_be_compared(tmp_path):
    verdict = slow_rank.check(drawn(tmp_path, QUICK))
    assert isinstance(verdict, CannotTell) and verdict.reason == "Only one rank was recorded."


@pytest.mark.parametrize(("count", "reason"), [
    (1, "Only one step was recorded on all ranks."),
    (4, "Only 4 steps were recorded on all ranks."),
])  # fmt: skip
def test_too_few_steps_in_common_cannot_be_compared(tmp_path, count, reason):
    # The first three steps of each rank are warm-up.
    drawing = steps(*same(QUICK, 12)) + steps(*same(QUICK, 3 + count), rank=1)
    verdict = slow_rank.check(Training(make_run(tmp_path, drawing)))
    assert isinstance(verdict, CannotTell) and verdict.reason == reason


def on_devices(tmp_path, *waits_us):
    """Ranks whose collective begins at 90 less their wait and ends for all at 95."""
    drawing = Drawing()
    for rank, wait in enumerate(waits_us):
        drawing.steps(rank)
        drawing.work("kernel", "gemm", 0, 90 - wait, rank=rank, stream=f"s7@cuda:{rank}")
        drawing.work("collective", "nccl", 90 - wait, 95, rank=rank, stream=f"s9@cuda:{rank}")
    return drawing.training(tmp_path)


def test_on_devices_the_rank_that_never_waits_is_the_slow_one(tmp_path):
    verdict = slow_rank.check(on_devices(tmp_path, 40, 0, 42, 41))
    assert isinstance(verdict, Finding)
    assert verdict.share == pytest.approx(0.41)
    assert verdict.title == "The other ranks spend 41% of each step waiting for rank 1."
    assert "computing on the device takes 41.0 µs longer" in verdict.why


def test_on_devices_two_that_are_slow_together_are_stages_not_a_fault(tmp_path):
    verdict = slow_rank.check(on_devices(tmp_path, 40, 0, 1, 41))
    assert isinstance(verdict, Clear) and "another rank" in verdict.why


SCRIPT = """
import time, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

torch.set_num_threads(1)
dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(32, 32))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 4 * 40
    def __getitem__(self, index):
        time.sleep(0.005 if dist.get_rank() == 1 else 0)
        return torch.ones(32)

for batch in torch.utils.data.DataLoader(Rows(), batch_size=4):
    optimizer.zero_grad()
    model(batch).sum().backward()
    optimizer.step()
dist.destroy_process_group()
"""


@pytest.mark.slow
@pytest.mark.timing("a fault costs what it usually does")
def test_a_real_rank_with_slow_data(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command = [sys.executable, "-m", "strobe", "run", "--light", "-q", "-o", tmp_path / "run", "--",
               *launch, "--nproc-per-node", "2", script]  # fmt: skip
    source = str(Path(slow_rank.__file__).parents[3])
    done = subprocess.run(
        command, capture_output=True, timeout=300, env={**os.environ, "PYTHONPATH": source}
    )
    assert done.returncode == 0, done.stderr.decode()
    run = open_run_dir(tmp_path / "run")
    verdict = slow_rank.check(Training(run))
    run.close()
    assert isinstance(verdict, Finding)
    assert verdict.title.startswith("The other rank spends")
    assert verdict.title.endswith("of each step waiting for rank 1.")
    assert verdict.why.startswith("On rank 1, waiting for data takes")
    assert 0.5 < verdict.share < 1
