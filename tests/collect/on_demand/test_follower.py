"""A rank whose training goes on while it takes up what the others propose."""

from types import SimpleNamespace

import pytest

from strobe.collect.on_demand.follower import Follower
from strobe.collect.on_demand.log import Entry, Log
from strobe.collect.on_demand.ranks import RankStatus
from strobe.model.options import Options


@pytest.fixture
def log(tmp_path):
    (tmp_path / "log").mkdir()
    return Log(tmp_path / "log")


class Training:
    """At the step that the test says; asked for a window, it goes on by so many steps."""

    def __init__(self, log: Log) -> None:
        self.asked, self.goes_on = [], 0
        self.steps = SimpleNamespace(now=10)
        self.windows = SimpleNamespace(ask=self._ask, are_written=True)
        recorder = SimpleNamespace(hooks=self, options=Options(), problem=print)
        self.follower = Follower(recorder, log, RankStatus(rank=1), print)

    def _ask(self, window) -> None:
        self.asked.append(window)
        self.steps.now += self.goes_on

    def hear(self) -> None:
        list(self.follower.read(is_paused=False))


def test_a_window_that_the_training_passed_meanwhile_is_for_nobody(log):
    training = Training(log)
    training.goes_on = 12
    log.propose(Entry(1, 1, 20, 25))
    training.hear()
    assert not log.decision(1).go and log.decision(1).step == 22


def test_a_window_in_good_time_is_left_to_the_leader(log):
    training = Training(log)
    log.propose(Entry(1, 1, 20, 25))
    training.hear()
    assert log.decision(1) is None


@pytest.mark.parametrize(("step", "is_late"), [(28, False), (29, True), (35, True)])
def test_an_end_that_the_training_may_have_passed_is_decided_before_it_says_ready(
    log, step, is_late
):
    training = Training(log)
    log.propose(Entry(1, 1, 20, 100))
    training.hear()
    training.steps.now = step
    log.propose(Entry(2, 1, 30, 30, ends=True))
    training.hear()
    decision = log.decision(2)
    assert (decision is not None and not decision.go) == is_late
    (window,) = training.asked
    assert [ending.at for ending in window.endings] == [30]
