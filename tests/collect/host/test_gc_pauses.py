import gc
import sys
import threading
import time

import pytest

from strobe.collect.host import gc_pauses
from strobe.collect.host.gc_pauses import GcPauses
from strobe.model.journal import Mark


class Journal:
    def __init__(self) -> None:
        self.marks: list[tuple[int, ...]] = []

    def mark(self, code, ref=0, value=0, ts_ns=0, thread=0) -> None:
        self.marks.append((code, ref, value, ts_ns, thread))


@pytest.fixture
def pauses():
    gc.collect()
    gc.disable()  # only those that a test asks for
    pauses = GcPauses(Journal())  # type: ignore[arg-type]
    pauses.start()
    yield pauses
    pauses.forget()
    gc.enable()


def test_a_pause_is_told_with_its_beginning_its_length_its_generation_and_its_thread(pauses):
    many = [[] for _ in range(300_000)]  # to be looked through
    before_ns = time.monotonic_ns()
    thread = threading.Thread(target=gc.collect, args=(1,))
    thread.start()
    ident = thread.ident
    thread.join()
    after_ns = time.monotonic_ns()
    del many
    pauses.forget()
    pauses.tell()
    ((code, _, value, ts_ns, told),) = pauses._journal.marks
    assert code == Mark.GC_PAUSE and value % 4 == 1 and told == ident
    assert before_ns <= ts_ns and ts_ns + value // 4 <= after_ns
    assert value // 4 >= gc_pauses.WORTH_NS
    gc.collect()
    assert not pauses._words  # nothing is kept any more


def test_short_pauses_are_not_told(pauses):
    gc.collect(0)
    gc.collect(0)
    assert len(pauses._words) == 16
    pauses.tell()
    assert pauses._journal.marks == [] and not pauses._words and not pauses._moments


def test_no_line_of_python_runs_where_the_collector_begins(pauses):
    """It would give Python's lock to other threads, in the middle of anything."""
    called = []
    sys.setprofile(lambda frame, event, arg: called.append((frame.f_code.co_name, event, arg)))
    gc.collect()
    sys.setprofile(None)
    assert [event for _, event, _ in called if event == "call"] == []
    assert len(pauses._words) == 8


def test_a_collection_that_was_under_way_and_ones_that_nobody_told_are_left_out(pauses):
    moments = [(0, 7), (1, 7), (10_000_000, 7), (10_000_001, 7), (50_000_000, 7), (50_000_001, 7)]
    for phase in ("stop", "start", "stop"):
        pauses._words.extend((phase, " ", "{'generation': 2, 'collected': 0}", "\n"))
    pauses._moments.extend(moments)
    pauses.tell()
    assert pauses._journal.marks == [(Mark.GC_PAUSE, 0, 40_000_000 * 4 + 2, 10_000_000, 7)]
    pauses._journal.marks.clear()
    pauses._words.extend(["x"] * pauses._words.maxlen)
    pauses._moments.extend(moments)
    pauses.tell()
    assert pauses._journal.marks == [] and not pauses._words and not pauses._moments
