"""Workers forked from a process with one thread, and none from any other."""

import os
import subprocess
import sys
import threading

import pytest

from strobe.ingest.formats.registry import READERS, WITH_WORKERS
from strobe.processes import forked, ordered_pool

MUCH = 1 << 30


def alone(code: str) -> str:
    """What a process prints that has one thread only."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    begin = "import os; from strobe.processes import forked, ordered_pool; MUCH = 1 << 30; "
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
    pids = [process._pid for process in forked._standing]
    print(len(pids))
    print([*ordered_pool.mapped("operator:mul", ((n, 2) for n in range(20)), expected_bytes=MUCH)])
    print(forked._standing)
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
        assert alone("with ordered_pool.standing_by(10): print(forked._standing)") == "[]\n"


def test_beside_other_threads_nobody_is_forked():
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    try:
        with ordered_pool.standing_by(MUCH):
            assert forked.taken() == []
    finally:
        over.set()
        thread.join()


def test_those_who_hand_out_work_are_readers():
    assert {reader.NAME for reader in READERS} >= WITH_WORKERS
