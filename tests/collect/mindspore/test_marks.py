"""Marks that are kept for a moment, without MindSpore."""

import threading
from types import SimpleNamespace

from strobe.collect.host.sampler import Sampler
from strobe.collect.journal import Journal
from strobe.collect.mindspore.marks import LONGEST_NS, Marks
from strobe.model.journal import Mark
from tests.collect.test_journal import facts, records


def test_marks_that_were_kept_are_written_with_their_times_and_threads(tmp_path):
    journal = Journal()
    journal.open(tmp_path)
    marks = Marks(SimpleNamespace(journal=journal))
    is_over = threading.Event()
    other = threading.Thread(target=is_over.wait, name="loads data")
    other.start()
    here = threading.get_ident()
    marks.keep((Mark.UPDATE_BEGAN, 7, 0, 20, here, Mark.UPDATE_ENDED, 7, 0, 30, here))
    marks.keep((Mark.DATA_CAME, 8, -1, 25, other.ident))
    assert records(tmp_path).tolist() == []
    marks.write(40)
    assert records(tmp_path).tolist() == [
        (20, 0, 7, 1, Mark.UPDATE_BEGAN), (30, 0, 7, 1, Mark.UPDATE_ENDED),
        (25, -1, 8, 2, Mark.DATA_CAME),
    ]  # fmt: skip
    threads = [(f["id"], f["name"], f["native_id"]) for f in facts(tmp_path)]
    main = threading.current_thread()
    assert threads == [(1, main.name, main.native_id), (2, "loads data", other.native_id)]
    assert marks.due_ns == 40 + LONGEST_NS
    marks.write()  # nothing twice
    assert len(records(tmp_path)) == 3
    is_over.set()
    other.join()


def test_a_forked_child_writes_none_of_its_parents_marks(tmp_path):
    journal = Journal()
    marks = Marks(SimpleNamespace(journal=journal))
    marks.keep((Mark.UPDATE_BEGAN, 7, 0, 20, 1))
    marks.after_fork_in_child()
    marks.write()
    journal.open(tmp_path)
    assert records(tmp_path).tolist() == []


def test_while_a_step_hangs_the_sampler_writes_them(tmp_path):
    journal = Journal()
    journal.open(tmp_path)
    marks = Marks(SimpleNamespace(journal=journal))
    marks.keep((Mark.DATA_ASKED, 7, -1, 20, threading.get_ident()))
    is_written = threading.Event()
    sampler = Sampler(
        journal, 0.01, lambda function: function, None, at_looks=(marks.write, is_written.set)
    )
    sampler.start()
    assert is_written.wait(60)
    sampler.stop()
    asked = [row for row in records(tmp_path).tolist() if row[-1] == Mark.DATA_ASKED]
    assert asked == [(20, -1, 7, 1, Mark.DATA_ASKED)]
