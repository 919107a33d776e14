"""Clocks around a batch: what is told in one number, and when Linux is asked about cores."""

import os
import threading
import time

import pytest

from strobe.collect.torch import batch_timing
from strobe.collect.torch.batch_timing import Timing
from strobe.model.journal import SHORT_BATCH_BITS, SHORT_BATCH_FIRST_BIT, SHORT_WAIT_NS, Figure

MS = 1_000_000


@pytest.fixture
def clocks(monkeypatch):
    """Clocks that stand still until they are put on: all time, and that on a core."""
    now = {"all": 1_000 * MS, "on_core": 50 * MS}
    monkeypatch.setattr(batch_timing, "_monotonic_ns", lambda: now["all"])
    monkeypatch.setattr(batch_timing, "_thread_time_ns", lambda: now["on_core"])

    def put_on(all_ns, on_core_ns):
        now["all"] += all_ns
        now["on_core"] += on_core_ns

    return put_on


def made(clocks, fetch, collate):
    timing = Timing()
    timing.look()
    timing.begin()
    clocks(*fetch)
    timing.collate()
    clocks(*collate)
    timing.end()
    return timing


def test_a_short_batch_is_one_number(clocks):
    timing = made(clocks, fetch=(300_000, 280_000), collate=(90_000, 90_000))
    low = (1 << SHORT_BATCH_BITS) - 1
    parts = [timing.packed() >> SHORT_BATCH_FIRST_BIT + n * SHORT_BATCH_BITS for n in range(3)]
    assert timing.packed() & 3 == 1
    assert [part & low for part in parts] == [300_000, 20_000, 90_000]
    assert timing.packed() < 1 << 63


def test_clocks_that_disagree_by_a_little_do_not_spoil_the_number(clocks):
    timing = made(clocks, fetch=(300_000, 300_500), collate=(90_000, 90_000))
    off = timing.packed() >> SHORT_BATCH_FIRST_BIT + SHORT_BATCH_BITS
    assert off & (1 << SHORT_BATCH_BITS) - 1 == 0


@pytest.mark.parametrize(
    "fetch, collate",
    [((2 * MS, 2 * MS), (0, 0)), ((1_000, 1_000), (2 * MS, 2 * MS)), ((MS // 2, 0), (0, 0))],
)
def test_what_does_not_fit_or_waited_long_is_told_in_figures(clocks, fetch, collate):
    timing = made(clocks, fetch, collate)
    figures = dict(timing.figures())
    assert timing.packed() == 0
    assert figures[Figure.FETCH_NS] == fetch[0] and figures[Figure.COLLATE_NS] == collate[0]
    assert figures[Figure.FETCH_CPU_NS] == fetch[1]
    assert (Figure.FETCH_QUEUED_NS in figures) == (fetch[0] - fetch[1] > SHORT_WAIT_NS)


def test_without_a_collate_function_all_of_it_was_fetching(clocks):
    timing = Timing()
    timing.begin()
    clocks(2 * MS, MS)
    timing.end()
    figures = dict(timing.figures())
    assert (figures[Figure.FETCH_NS], figures[Figure.COLLATE_NS]) == (2 * MS, 0)
    assert timing.on_and_without_core()[0] == MS


def test_linux_is_asked_again_only_after_a_while(clocks):
    clocks(60 * MS, 0)
    assert Timing().look() is not None
    clocks(5 * MS, 0)
    assert Timing().look() is None
    clocks(60 * MS, 0)
    assert Timing().look() is not None


@pytest.mark.slow
def test_a_thread_and_a_forked_child_have_clocks_of_their_own():
    mine = Timing()._no_core
    found = []
    thread = threading.Thread(target=lambda: found.append(Timing()._no_core))
    thread.start()
    thread.join()
    assert found[0] is not mine and Timing()._no_core is mine
    child = os.fork()
    if not child:
        os._exit(Timing()._no_core is mine)
    assert os.waitpid(child, 0)[1] == 0


def test_a_script_that_closes_all_files_costs_only_that_figure():
    timing = Timing()
    timing._no_core = batch_timing._NoCore()
    os.close(timing._no_core._handle)
    assert timing._no_core.look(time.monotonic_ns()) is None
    assert timing._no_core.look(time.monotonic_ns()) is None
