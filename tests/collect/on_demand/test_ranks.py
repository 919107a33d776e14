import os
import subprocess
import sys

import pytest

from strobe.collect.on_demand import ranks as dynamic_ranks
from strobe.collect.on_demand.ranks import Ranks, RankStatus, publish
from strobe.collect.ranks import start_ticks


def status(rank, **changes):
    found = dynamic_ranks.of_this_process(rank, 2)
    for name, value in changes.items():
        setattr(found, name, value)
    return found


def test_what_is_told_is_read(tmp_path):
    told = status(1, step=7, window=(3, 5), reason="é")
    publish(tmp_path, told)
    ranks = Ranks(tmp_path)
    ranks.look()
    assert ranks.known == {1: told}
    assert [found.rank for found in ranks.alive()] == [1]


def test_ranks_that_ended_or_paused_take_no_part(tmp_path):
    for rank, state in enumerate(("training", "ended", "paused", "recording")):
        publish(tmp_path, status(rank, state=state))
    ranks = Ranks(tmp_path)
    ranks.look()
    assert [found.rank for found in ranks.alive()] == [0, 3]


@pytest.mark.slow
def test_a_killed_process_is_gone_at_once_and_a_new_one_of_its_number_is_another(tmp_path):
    command = [sys.executable, "-c", "input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as child:
        killed = status(0, pid=child.pid, start_ticks=start_ticks(child.pid))
        assert dynamic_ranks.is_gone(killed) is False
        child.kill()
    assert dynamic_ranks.is_gone(killed)
    assert dynamic_ranks.is_gone(status(0, start_ticks=1))
    assert not dynamic_ranks.is_gone(status(0))


def test_a_rank_of_another_machine_is_judged_by_its_silence(tmp_path, monkeypatch):
    publish(tmp_path, status(0, host="elsewhere", pid=os.getpid(), beat=3))
    ranks = Ranks(tmp_path)
    ranks.look()
    assert len(ranks.alive()) == 1
    monkeypatch.setattr(dynamic_ranks, "SILENCE_S", -1.0)
    ranks.look()
    assert not ranks.alive()


def test_the_furthest_step_is_that_of_the_first_in_so_much_time(tmp_path):
    publish(tmp_path, status(0, step=100, step_ns=0))
    publish(tmp_path, status(1, step=50, step_ns=10**9, monotonic_ns=2**62))
    ranks = Ranks(tmp_path)
    ranks.look()
    assert ranks.furthest_step() == 100
    assert ranks.furthest_step(ahead_s=60.5) == 110


def test_a_file_that_is_no_status_is_left_out(tmp_path):
    (tmp_path / "rank_0.json").write_text('{"rank": "zero"}')
    (tmp_path / "rank_1.json").write_text('{"half":')
    (tmp_path / "rank_2.json").write_text('{"rank": 2, "window": 5}')
    ranks = Ranks(tmp_path)
    ranks.look()
    assert not ranks.known
    assert isinstance(dynamic_ranks.from_json({"rank": 3}), RankStatus)
