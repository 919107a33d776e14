"""Work in other processes: results in order, failures reported; workers forked only when safe."""

import os
import subprocess
import sys
import threading

import pytest

from strobe.ingest.formats.registry import READERS, WITH_WORKERS
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
    with pytest.raises(MemoryError, match="ended, perhaps"):
        list(ordered_pool.mapped("os:_exit", iter([(9,)] * 3), expected_bytes=MUCH))


# --- workers that stand by ----------------------------------------------------------------


def alone(code: str) -> str:
    """What a process prints that has one thread only."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    begin = "import os; from strobe.processes import ordered_pool; MUCH = 1 << 30; "
    begin += "os.sched_getaffinity = lambda _: {0, 1}\n"
    done = subprocess.run(
        [sys.executable, "-c", begin + code], env=environment, capture_output=True, text=True
    )
    assert not done.returncode, done.stderr
    return done.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells how many threads there are")
class TestWithOneThread:
    def test_the_one_who_asks_gets_them_and_its_results_in_order(self):
        found = alone("""
with ordered_pool.standing_by(MUCH):
    pids = [process.pid for process in ordered_pool._waiting]
    print(len(pids))
    print([*ordered_pool.mapped("operator:mul", ((n, 2) for n in range(20)), expected_bytes=MUCH)])
    print(ordered_pool._waiting)
try:
    os.waitpid(-1, 0)
except ChildProcessError:
    print("no child is left")
""")
        assert found.splitlines() == ["2", str(list(range(0, 40, 2))), "[]", "no child is left"]

    def test_they_are_ended_if_nobody_asks_and_nothing_of_the_parent_is_done_twice(self):
        found = alone("""
import atexit
atexit.register(print, "end")
try:
    with ordered_pool.standing_by(MUCH):
        raise RuntimeError
except RuntimeError:
    print("raised")
try:
    os.waitpid(-1, 0)
except ChildProcessError:
    print("no child is left")
""")
        assert found.splitlines() == ["raised", "no child is left", "end"]

    def test_an_exception_and_a_death_come_back(self):
        found = alone("""
for work in (("operator:floordiv", (1, 0)), ("os:_exit", (9,))):
    with ordered_pool.standing_by(MUCH):
        try:
            list(ordered_pool.mapped(work[0], iter([work[1]]), expected_bytes=MUCH))
        except (ZeroDivisionError, MemoryError) as error:
            print(type(error).__name__)
""")
        assert found.splitlines() == ["ZeroDivisionError", "MemoryError"]

    def test_for_little_work_there_are_none(self):
        assert alone("with ordered_pool.standing_by(10): print(ordered_pool._waiting)") == "[]\n"


def test_beside_other_threads_nobody_is_forked():
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    try:
        with ordered_pool.standing_by(MUCH):
            assert ordered_pool._taken() == []
    finally:
        over.set()
        thread.join()


def test_those_who_hand_out_work_are_readers():
    assert {reader.NAME for reader in READERS} >= WITH_WORKERS
