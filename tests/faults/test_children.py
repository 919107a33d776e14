"""Children of a training: those that train are ranks of their own, the others leave no trace."""

from pathlib import Path

import pytest

from tests.faults.processes import TRAINING, python, recorded, said_training, states, steps, write

WAYS = """
import multiprocessing

def child(count, leave):
    train(count)
    if leave:
        raise leave

if __name__ == "__main__":
    train(10)
    for way in ("fork", "spawn", "forkserver"):
        context = multiprocessing.get_context(way)
        process = context.Process(target=child, args=(5, None))
        process.start()
        process.join()
        process = context.Process(target=child, args=(6, ValueError("mine")))
        process.start()
        process.join()
    train(10)
"""


def test_children_of_multiprocessing_that_train_are_ranks_and_end_as_they_did(tmp_path: Path):
    done = python(*recorded(tmp_path / "run", said_training(tmp_path, WAYS)))
    assert done.returncode == 0, done.stderr
    assert "strobe: " not in done.stderr
    assert steps(tmp_path / "run") == {0: 20, 1: 5, 2: 6, 3: 5, 4: 6, 5: 5, 6: 6}
    ends = ["finished"] + ["finished", "failed"] * 3
    assert states(tmp_path / "run") == ("finished", ends)


FORKS = """
def fork(child):
    pid = os.fork()
    if not pid:
        child()
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))

def trains_and_leaves():
    train(7)
    sys.exit(4)

train(10)
fork(lambda: sys.exit(3))
fork(lambda: os._exit(5))
fork(trains_and_leaves)
train(10)
"""


def test_forks_in_the_middle_of_training(tmp_path: Path):
    done = python(*recorded(tmp_path / "run", said_training(tmp_path, FORKS)))
    assert (done.returncode, done.stdout, done.stderr) == (0, "3\n5\n4\n", "")
    assert steps(tmp_path / "run") == {0: 20, 1: 7}
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [
        "live", "rank_0", "rank_1", "run.json",
    ]  # fmt: skip


# The window of full recording is open throughout, so every fork happens inside it.
TORCH = """
from torch.utils.data import DataLoader, Dataset
import torch.multiprocessing as mp

class Samples(Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, i):
        layer = torch.nn.Linear(8, 8)  # a worker that uses modules, and even a backward pass
        layer(torch.randn(8)).sum().backward()
        return torch.full((8,), float(i))

def epoch(**options):
    seen = 0.0
    for x in DataLoader(Samples(), batch_size=4, num_workers=2, **options):
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        seen += x.sum().item()
    print("epoch", seen)

def spawned(number):
    train(3 + number)

if __name__ == "__main__":
    train(4)
    epoch()
    pid = os.fork()
    if not pid:
        train(3)
        with torch.no_grad():
            net(torch.ones(1, 8))
        sys.exit(6)
    print("fork", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    epoch(multiprocessing_context="spawn")
    mp.spawn(spawned, nprocs=2)
    print("trained", train(4) > 0)
"""


@pytest.mark.slow
def test_forks_workers_and_spawned_trainings_of_torch(tmp_path: Path):
    pytest.importorskip("torch")
    script = write(tmp_path, TRAINING + TORCH)
    done = python(*recorded(tmp_path / "run", "--whole", script))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["epoch 3968.0", "fork 6", "epoch 3968.0", "trained True"]
    found = steps(tmp_path / "run")
    assert (found[0], found[1], sorted([found[2], found[3]])) == (4 + 8 + 8 + 4, 3, [3, 4])
    assert len(found) == 4, "a worker of a data loader is no rank"
    state, of_ranks = states(tmp_path / "run")
    assert (state, of_ranks) == ("finished", ["finished"] * 4)
    names = [path.name for path in (tmp_path / "run").rglob("raw/*")]
    assert not [name for name in names if name.endswith((".tmp", ".json")) and "trace" in name]
