import json
from pathlib import Path

import pytest

from strobe.collect.on_demand.config import CONFIG_FILE
from strobe.collect.on_demand.requests import ask, drop_into
from tests.collect.jobs import Rank, until


@pytest.fixture
def job(tmp_path):
    """Make ranks that train at these seconds a step; they are stopped at the end."""
    made: list[Rank] = []

    def make(*seconds: float, config: bool = True) -> list[Rank]:
        folder = tmp_path / "dyn" if config else None
        for rank, step_s in enumerate(seconds):
            made.append(Rank(tmp_path / "run", rank, len(seconds), folder))
            made[-1].train(step_s)
        return made

    yield make
    for rank in made:
        rank.stop()


def edit(folder: Path, **keys) -> None:
    path = folder / CONFIG_FILE
    until(path.exists)
    path.write_text(json.dumps({**json.loads(path.read_text()), **keys}))


def statuses(folder: Path) -> list[dict]:
    files = sorted((folder / "run" / "live" / "ranks").glob("rank_*.json"))
    return [json.loads(path.read_text()) for path in files]


def test_all_ranks_record_the_steps_that_the_file_asks_for(job, tmp_path):
    ranks = job(0.02, 0.02, 0.02)
    edit(tmp_path / "dyn", start_step=200, stop_step=202)
    until(lambda: all(rank.windows.recorded for rank in ranks))
    until(lambda: all(status["finished"] for status in statuses(tmp_path)))
    assert [rank.windows.recorded for rank in ranks] == [{1: [200, 201, 202]}] * 3


@pytest.mark.slow
def test_ranks_of_different_speed_record_the_same_steps(job, tmp_path):
    """The fastest is hundreds of steps ahead of the slowest when the window is asked for."""
    ranks = job(0.05, 0.005, 0.01)
    until(lambda: ranks[1].steps.done > 300)
    edit(tmp_path / "dyn", start_step=10, stop_step=12)
    until(lambda: all(len(r.windows.recorded.get(1, [])) == 3 for r in ranks), 60)
    first, second, third = (rank.windows.recorded[1] for rank in ranks)
    assert first == second == third
    assert first[0] > 300  # step 10 had passed


@pytest.mark.slow
def test_windows_are_asked_for_again_and_again(job, tmp_path):
    ranks = job(0.01, 0.012)
    for generation in range(1, 6):
        edit(tmp_path / "dyn", start_step=max(r.steps.done for r in ranks) + 40,
             stop_step=max(r.steps.done for r in ranks) + 60)  # fmt: skip
        until(lambda n=generation: all(n in rank.windows.recorded for rank in ranks))
        until(lambda n=generation: all(s["finished"] == n for s in statuses(tmp_path)))
    assert ranks[0].windows.recorded == ranks[1].windows.recorded
    assert list(ranks[0].windows.recorded) == [1, 2, 3, 4, 5]


def test_a_rank_that_stops_does_not_hold_up_the_others(job, tmp_path):
    ranks = job(0.01, 0.01, 0.01)
    until(lambda: len(statuses(tmp_path)) == 3)
    ranks[1].stop()
    edit(tmp_path / "dyn", start_step=50, stop_step=52)
    until(lambda: [s["finished"] for s in statuses(tmp_path)] == [1, 0, 1])
    assert ranks[0].windows.recorded == ranks[2].windows.recorded
    assert not ranks[1].windows.recorded


def test_the_next_rank_leads_when_the_leader_ends(job, tmp_path):
    ranks = job(0.01, 0.01)
    until(lambda: len(statuses(tmp_path)) == 2)
    ranks[0].stop()
    until(lambda: statuses(tmp_path)[1]["is_leader"])
    edit(tmp_path / "dyn", start_step=2000, stop_step=2001)
    edit(tmp_path / "dyn", start_step=50, stop_step=51)  # not due: replaced
    until(lambda: statuses(tmp_path)[1]["finished"])
    assert len(ranks[1].windows.recorded[1]) == 2
    assert ranks[1].windows.recorded[1][0] < 2000


def test_a_request_from_the_inbox_needs_no_file(job, tmp_path):
    ranks = job(0.01, 0.01, config=False)
    inbox = tmp_path / "run" / "live" / "inbox"
    until(inbox.is_dir)
    drop_into(inbox, ask(steps=4, by="a test", options={"with_stack": True}))
    until(lambda: all(1 in rank.windows.recorded for rank in ranks))
    until(lambda: all(s["finished"] == 1 for s in statuses(tmp_path)))
    assert ranks[0].windows.recorded == ranks[1].windows.recorded
    assert len(ranks[0].windows.recorded[1]) == 4
    until(lambda: not list(inbox.iterdir()))


def test_a_window_is_stopped_at_the_same_step_everywhere(job, tmp_path):
    ranks = job(0.01, 0.013)
    inbox = tmp_path / "run" / "live" / "inbox"
    until(inbox.is_dir)
    drop_into(inbox, ask(steps=5000, by="a test"))
    until(lambda: all(1 in rank.windows.recorded for rank in ranks))
    drop_into(inbox, {"stop": True})
    until(lambda: all(s["finished"] == 1 for s in statuses(tmp_path)))
    first, second = (rank.windows.recorded[1] for rank in ranks)
    assert first == second and len(first) < 5000


def test_a_request_that_makes_no_sense_is_told_and_dropped(job, tmp_path):
    (rank,) = job(0.01, config=False)
    inbox = tmp_path / "run" / "live" / "inbox"
    until(inbox.is_dir)
    drop_into(inbox, {"steps": "many"})
    (inbox / "half.json").write_text('{"steps": 3')
    until(lambda: not list(inbox.iterdir()))
    drop_into(inbox, ask(steps=1, by="a test"))
    until(lambda: 1 in rank.windows.recorded)
