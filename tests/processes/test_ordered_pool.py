"""Work in other processes: in order, and told when it fails."""

import os

import pytest

from strobe.processes import ordered_pool

MUCH = 1 << 40


@pytest.fixture(autouse=True)
def _two_cores(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})


def test_results_come_in_the_order_of_the_work():
    work = ((number, 2) for number in range(40))
    assert list(ordered_pool.mapped("operator:mul", work, expected_bytes=MUCH)) == list(
        range(0, 80, 2)
    )


def test_large_pieces_and_large_results_do_not_wait_for_each_other():
    work = ((b"x" * 3_000_000, 2) for _ in range(9))
    found = ordered_pool.mapped("operator:mul", work, expected_bytes=MUCH)
    assert [len(result) for result in found] == [6_000_000] * 9


def test_little_work_is_done_here():
    ((pid,),) = (
        [found] for found in ordered_pool.mapped("os:getpid", iter([()]), expected_bytes=10)
    )
    assert pid == os.getpid()
    ((pid,),) = (
        [found] for found in ordered_pool.mapped("os:getpid", iter([()]), expected_bytes=MUCH)
    )
    assert pid != os.getpid()


def test_an_exception_comes_back():
    with pytest.raises(ZeroDivisionError):
        list(ordered_pool.mapped("operator:floordiv", iter([(1, 0)]), expected_bytes=MUCH))


def test_the_death_of_a_worker_is_told():
    with pytest.raises(MemoryError, match="was ended"):
        list(ordered_pool.mapped("os:_exit", iter([(9,)] * 3), expected_bytes=MUCH))
