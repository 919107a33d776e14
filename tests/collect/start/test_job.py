"""Ranks that start apart come to one folder; other jobs do not."""

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from strobe.collect.start import job
from strobe.collect.start.job import FOLDER_VARIABLE, TOKEN_VARIABLE, run_folder
from strobe.collect.start.new_run import new_recorder
from strobe.model.manifest import Manifest, read_manifest, write_manifest
from strobe.model.options import Options
from tests.faults.processes import problems, states, steps, training
from tests.installed import environment


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch):
    for name in (*job._SHARED, FOLDER_VARIABLE, TOKEN_VARIABLE, "RANK", "WORLD_SIZE",
                 "SLURM_PROCID", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "RANK_ID"):  # fmt: skip
        monkeypatch.delenv(name, raising=False)


def folder(path: Path) -> str:
    os.environ.pop(FOLDER_VARIABLE, None)
    found = run_folder(path, Manifest(started_unix_ns=time.time_ns(), recorded_by="a test"))
    return found.name


def be(monkeypatch: pytest.MonkeyPatch, rank: int, size: int = 2, **more: str) -> None:
    for name, value in {"RANK": str(rank), "WORLD_SIZE": str(size), **more}.items():
        monkeypatch.setenv(name, value)


def change(run: Path, **job_values: str) -> Manifest:
    manifest = read_manifest(run)
    manifest.job.update(job_values)
    write_manifest(run, manifest)
    return manifest


def test_processes_alone_take_a_folder_each(tmp_path: Path):
    assert [folder(tmp_path / "data") for _ in range(3)] == ["data", "data-2", "data-3"]


def test_ranks_of_one_job_share_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    be(monkeypatch, 0)
    assert folder(tmp_path / "data") == "data"
    be(monkeypatch, 1)
    assert folder(tmp_path / "data") == "data"


def test_the_same_rank_again_is_another_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    be(monkeypatch, 0)
    assert folder(tmp_path / "data") == "data"
    (tmp_path / "data" / "rank_0").mkdir()
    assert folder(tmp_path / "data") == "data-2"
    be(monkeypatch, 1)
    (tmp_path / "data" / "rank_1").mkdir()
    assert folder(tmp_path / "data") == "data-2"


@pytest.mark.parametrize(
    "other", [{"MASTER_PORT": "2"}, {"SLURM_JOB_ID": "8"}, {"WORLD_SIZE": "4"}]
)
def test_another_job_takes_another_folder(
    other: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    be(monkeypatch, 0, MASTER_PORT="1")
    assert folder(tmp_path / "data") == "data"
    be(monkeypatch, 1, **{"MASTER_PORT": "1", **other})
    assert folder(tmp_path / "data") == "data-2"


def test_other_machines_join_unless_hours_lie_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    be(monkeypatch, 0)
    folder(tmp_path / "data")
    manifest = change(tmp_path / "data", host="elsewhere", parent="1-1", session="1-1")
    be(monkeypatch, 1)
    assert folder(tmp_path / "data") == "data"
    manifest.started_unix_ns -= 3600 * 10**9
    write_manifest(tmp_path / "data", manifest)
    assert folder(tmp_path / "data") == "data-2"


def test_a_run_begins_with_its_recorder_not_with_its_folder(tmp_path: Path):
    """A step may have begun long before the process is known to train, and take minutes."""
    first, second = (new_recorder(tmp_path / "data", Options(), "a test", "") for _ in range(2))
    made_ns = time.time_ns()
    assert (second.run.name, first.run.name) == ("data", "data-2")
    assert read_manifest(first.run).started_unix_ns <= made_ns
    assert read_manifest(second.run).started_unix_ns <= made_ns


def test_a_rank_whose_first_step_is_long_joins_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """What counts is how far apart they began, not when each is known to train."""
    long_ago_ns = time.time_ns() - 3600 * 10**9
    for rank in (0, 1):
        be(monkeypatch, rank)
        manifest = Manifest(started_unix_ns=long_ago_ns + rank, recorded_by="a test")
        os.environ.pop(FOLDER_VARIABLE, None)
        assert run_folder(tmp_path / "data", manifest).name == "data"


def test_on_one_machine_another_launcher_is_another_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    be(monkeypatch, 0)
    folder(tmp_path / "data")
    change(tmp_path / "data", parent="1-1", session="1-1")
    be(monkeypatch, 1)
    assert folder(tmp_path / "data") == "data-2"


def test_a_token_from_above_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(TOKEN_VARIABLE, "host-1-1")
    be(monkeypatch, 0)
    folder(tmp_path / "data")
    change(tmp_path / "data", parent="1-1", session="1-1")
    be(monkeypatch, 1)
    assert folder(tmp_path / "data") == "data"


def test_a_folder_with_other_things_in_it_is_left_alone(tmp_path: Path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "thesis.txt").write_text("mine")
    assert folder(tmp_path / "data") == "data-2"


def test_a_child_of_multiprocessing_joins_what_its_parent_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "data"
    (tmp_path / "data-2" / "rank_0").mkdir(parents=True)
    monkeypatch.setattr(job, "_is_child", lambda: True)
    monkeypatch.setenv(FOLDER_VARIABLE, f"1:{tmp_path / 'data-2'}")
    assert job._inherited(path) == tmp_path / "data-2"
    assert job._inherited(tmp_path / "other") is None
    monkeypatch.setenv(FOLDER_VARIABLE, f"{os.getpid()}:{tmp_path / 'data-2'}")
    assert job._inherited(path) is None  # it found that itself, for an earlier training
    monkeypatch.setattr(job, "_is_child", lambda: False)
    monkeypatch.setenv(FOLDER_VARIABLE, f"1:{tmp_path / 'data-2'}")
    assert job._inherited(path) is None


RANKS = """
import time
import torch.distributed as dist
rank = int(os.environ["RANK_ID"])
time.sleep(rank % 2)
train(9)  # the others come while some train already
dist.init_process_group("gloo", init_method="file://" + os.path.abspath("meeting"), rank=rank,
                        world_size=4)
net = torch.nn.parallel.DistributedDataParallel(net)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
train(3)
dist.barrier()
if rank == 2:
    os.kill(os.getpid(), 9)
train = None
for _ in range(4):
    torch.nn.Linear(4, 4)(torch.ones(4)).sum().backward()
os._exit(0) if rank == 3 else None
"""


@pytest.mark.slow
def test_a_killed_rank_leaves_the_others_whole(installed: Path, tmp_path: Path):
    script = training(tmp_path, RANKS)
    variables = environment(
        STROBE_OPTIONS=json.dumps({"start": True, "output_path": "data", "steps": [8, 1000]})
    )
    processes = [
        subprocess.Popen(
            [str(installed), str(script)], cwd=tmp_path, stderr=subprocess.PIPE, text=True,
            env={**variables, "RANK_ID": str(rank), "RANK_SIZE": "4"},
        )
        for rank in range(4)
    ]  # fmt: skip
    try:
        said = [process.communicate(timeout=300)[1] for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    codes = [process.returncode for process in processes]
    assert codes == [0, 0, -9, 0], said
    assert sorted(p.name for p in tmp_path.iterdir() if p.name.startswith("data")) == ["data"]
    found = steps(tmp_path / "data")
    assert sorted(found) == [0, 1, 2, 3] and min(found.values()) >= 12
    assert states(tmp_path / "data")[1][:3] == ["finished", "finished", "killed"]
    assert not [what for what in problems(tmp_path / "data") if "rank" in what]
