import json

import pytest

from strobe.cli import main
from strobe.collect.on_demand.channel import JOB_FILE
from strobe.collect.on_demand.config import CONFIG_FILE
from tests.collect.jobs import Rank, until


@pytest.fixture
def job(tmp_path):
    """Two ranks that make steps; the folder of their file."""
    ranks = [Rank(tmp_path / "run", rank, 2, tmp_path / "dyn") for rank in range(2)]
    for rank in ranks:
        rank.train(0.01)
    until((tmp_path / "dyn" / JOB_FILE).exists)
    until(lambda: len(list((tmp_path / "run/live/ranks").glob("rank_*.json"))) == 2)
    yield tmp_path / "dyn", ranks
    for rank in ranks:
        rank.stop()


@pytest.fixture
def strobe(capsys):
    def call(*words):
        code = main(list(map(str, words)))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_start_asks_all_ranks_and_waits_if_told_to(job, strobe):
    folder, ranks = job
    code, out, err = strobe("dynamic", folder, "start", "--steps", 3, "--wait", "--with-stack")
    assert code == 0 and out.startswith("recorded steps") and "on 2 ranks" in err
    assert ranks[0].windows.recorded == ranks[1].windows.recorded
    assert len(ranks[0].windows.recorded[1]) == 3
    content = json.loads((folder / CONFIG_FILE).read_text())
    assert content["with_stack"] is True and content["generation"] == 1


def test_start_twice_is_two_generations(job, strobe):
    folder, ranks = job
    for generation in (1, 2):
        code, out, _ = strobe("dynamic", folder, "start", "--steps", 2, "--wait", "--json")
        assert code == 0 and json.loads(out)["generation"] == generation
    assert list(ranks[1].windows.recorded) == [1, 2]


def test_status_tells_of_every_rank_and_of_the_file(job, strobe):
    folder, ranks = job
    code, out, _ = strobe("dynamic", folder, "status")
    assert code == 0 and "2 ranks of run" in out and "json: valid" in out and "(leader)" in out
    (folder / CONFIG_FILE).write_text('{"start_step": 5')
    ranks[1].stop()
    code, out, _ = strobe("dynamic", folder, "status", "--json")
    told = json.loads(out)
    assert "is not valid JSON, or not completely written" in told["config"]
    assert [rank["is_alive"] for rank in told["ranks"]] == [True, False]
    assert told["ranks"][1]["state"] == "ended"


def test_start_mends_a_file_that_is_broken(job, strobe):
    folder, ranks = job
    (folder / CONFIG_FILE).write_text("nonsense")
    assert strobe("dynamic", folder, "start", "--steps", 1, "--wait")[0] == 0
    assert ranks[0].windows.recorded == ranks[1].windows.recorded != {}


def test_stop_ends_a_window(job, strobe):
    folder, ranks = job
    assert strobe("dynamic", folder, "start", "--steps", 5000)[0] == 0
    until(lambda: all(rank.windows.recorded for rank in ranks))
    assert strobe("dynamic", folder, "stop")[0] == 0
    until(lambda: not any(rank.windows.asked for rank in ranks))
    assert ranks[0].windows.recorded == ranks[1].windows.recorded
    assert len(ranks[0].windows.recorded[1]) < 5000


def test_a_folder_that_nobody_uses(tmp_path, strobe):
    code, _, err = strobe("dynamic", tmp_path / "absent", "status")
    assert code == 2 and "this folder does not exist" in err
    for action in ("status", "start", "stop"):
        code, _, err = strobe("dynamic", tmp_path, action)
        assert code == 2 and "no training uses this folder" in err
    code, out, _ = strobe("dynamic", tmp_path, "start", "--start-step", 10, "--steps", 2)
    assert code == 0 and "from the next training" in out
    content = json.loads((tmp_path / CONFIG_FILE).read_text())
    assert (content["start_step"], content["stop_step"]) == (10, 11)
