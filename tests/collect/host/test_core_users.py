"""Who has the cores: real threads and processes that compute for a while and then wait."""

import _thread
import errno
import os
import subprocess
import sys
import threading
import time

import pytest

from strobe.collect.host import core_users
from strobe.collect.host.core_users import CoreUsers, native_threads, thread_name
from strobe.model.journal import Mark
from tests.collect.journals import NotedJournal

pytestmark = pytest.mark.skipif(
    not os.path.exists("/proc/thread-self/schedstat"), reason="the kernel does not tell"
)
WORK_NS = 60_000_000


def computed(until_ns: int) -> None:
    while time.thread_time_ns() < until_ns:
        pass


class Busy(threading.Thread):
    """Computes for a while, then waits to be let go."""

    def __init__(self, name="prefetch"):
        super().__init__(name=name, daemon=True)
        self.has_computed, self.may_end = threading.Event(), threading.Event()
        self.start()
        assert self.has_computed.wait(60)

    def run(self):
        computed(WORK_NS)
        self.has_computed.set()
        self.may_end.wait(60)

    def end(self):
        self.may_end.set()
        self.join(60)
        while self.native_id in native_threads():  # Python has left it, the kernel not yet
            time.sleep(0)


@pytest.fixture
def journal():
    return NotedJournal()


@pytest.fixture
def users(journal):
    made = CoreUsers(journal, threading.get_ident())
    yield made
    made.close()


@pytest.mark.timing("threads get the cores that they need")
def test_time_is_told_by_what_threads_are_there_for(journal, users):
    users.look(1)
    before = journal.counters()
    threads = [Busy(), Busy("strobe-sampler")]
    mine_ns = time.thread_time_ns()
    computed(mine_ns + WORK_NS)
    look_again(users)
    after = journal.counters()
    grown = {name: value - before.get(name, 0) for name, value in after.items()}
    for role in ("training_threads", "python_threads", "strobe_threads"):
        assert WORK_NS <= grown[f"{role}_cpu_ns_total"] < 3 * WORK_NS, role
        assert f"{role}_no_core_ns_total" in after
    assert grown["child_processes_cpu_ns_total"] == 0
    for thread in threads:
        thread.end()


def test_threads_that_a_framework_knows_make_its_batches(journal):
    """They are none of Python's, or were once seen in Python: then they are dummies."""
    known = native_threads()
    made, may_end = threading.Event(), threading.Event()

    def compute():
        computed(WORK_NS)
        threading.current_thread()  # makes itself known
        made.set()
        may_end.wait(60)

    _thread.start_new_thread(compute, ())
    assert made.wait(60)
    (new,) = native_threads() - known
    assert thread_name(new) == thread_name(os.getpid())
    for makes_batches, role in ((lambda thread: thread == new, "data"), (None, "training")):
        users = CoreUsers(journal, 0, *([makes_batches] if makes_batches else []))
        journal.marks.clear()
        users.look(1)
        assert journal.counters()[f"{role}_threads_cpu_ns_total"] >= WORK_NS
        users.close()
    assert "data_threads_cpu_ns_total" not in journal.counters()
    may_end.set()


def test_what_a_thread_computed_stays_counted_when_it_has_ended(journal, users):
    thread = Busy()
    users.look(1)
    before = journal.counters()["python_threads_cpu_ns_total"]
    thread.end()
    look_again(users)
    assert journal.counters()["python_threads_cpu_ns_total"] >= before >= WORK_NS


def test_no_thread_is_held_on_to(users):
    users.look(1)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        thread = Busy()
        look_again(users)
        thread.end()
    look_again(users)
    assert len(os.listdir("/proc/self/fd")) == before


def test_of_many_threads_few_files_are_kept_open(journal, users, monkeypatch):
    monkeypatch.setattr(core_users, "MOST_HANDLES", 2)
    before = len(os.listdir("/proc/self/fd"))
    threads = [Busy(), Busy(), Busy()]
    users.look(1)
    look_again(users)
    assert len(os.listdir("/proc/self/fd")) <= before + 2
    assert journal.counters()["python_threads_cpu_ns_total"] >= 3 * WORK_NS
    for thread in threads:
        thread.end()
    look_again(users)
    assert len(os.listdir("/proc/self/fd")) <= before + 2


def test_a_number_that_becomes_another_threads_counts_anew(journal, users, monkeypatch):
    monkeypatch.setattr(core_users, "MOST_HANDLES", 0)
    monkeypatch.setattr(os, "listdir", lambda path: ["7"])
    told = iter([b"900 50 1", b"100 10 1", b"300 20 1"])  # at the second look it is another
    monkeypatch.setattr(core_users, "_schedstat", lambda task, kept: next(told))
    for _ in range(3):
        look_again(users)
    assert journal.counters()["training_threads_cpu_ns_total"] == 900 + 300


def test_a_system_without_files_to_spare_is_left_alone(journal, users, monkeypatch):
    users.look(1)
    held = len(os.listdir("/proc/self/fd"))

    def refuse(path, *_):
        raise OSError(errno.EMFILE, "Too many open files")

    thread = Busy()
    monkeypatch.setattr(core_users, "_opened", refuse)
    look_again(users)
    assert len(os.listdir("/proc/self/fd")) < held  # all are given back
    told = len(journal.marks)
    users.look(10**15)
    assert len(journal.marks) == told
    thread.end()


@pytest.mark.slow
def test_processes_below_this_one_and_below_them(journal, users):
    users.look(1)
    computes = "import time\nwhile time.process_time() < 0.15: pass\nprint(1, flush=True)\ninput()"
    below = (
        "import subprocess, sys\n"
        f"command = [sys.executable, '-c', {computes!r}]\n"
        "child = subprocess.Popen(command, stdin=sys.stdin, stdout=subprocess.PIPE)\n"
        "child.stdout.readline()\n"
        "print('computed', flush=True)\n"
        "child.wait()\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", below], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdout is not None and child.stdout.readline() == b"computed\n"
    look_again(users)
    counted = journal.counters()["child_processes_cpu_ns_total"]
    assert counted >= 150_000_000
    child.communicate(b"\n")
    look_again(users)
    assert journal.counters()["child_processes_cpu_ns_total"] == counted
    assert child.returncode == 0  # it was not waited for by us


@pytest.mark.timing("threads get the cores that they need")
def test_a_busy_thread_is_asked_what_it_does(journal, users):
    users.look(1)
    thread = Busy("augment")
    users._due_ns = 0
    users.look(1 + 2 * WORK_NS)
    (mark,) = [mark for mark in journal.marks if mark.code == Mark.SAMPLE_BESIDE]
    assert mark.thread == thread.ident and mark.value >= WORK_NS
    assert f"{__file__}" in journal.text(mark.ref) and '"run"' in journal.text(mark.ref)
    users._due_ns = 0
    users.look(1 + 4 * WORK_NS)  # it did nothing since
    assert len([mark for mark in journal.marks if mark.code == Mark.SAMPLE_BESIDE]) == 1
    thread.end()


def test_looks_are_as_seldom_as_their_cost_demands(journal, users):
    users.look(1_000)
    users.look(1_001)  # the first one has more to do, and does not count
    told = len(journal.marks)
    users.look(1_002)
    assert len(journal.marks) == told
    users.look(10**12)
    assert len(journal.marks) > told


def test_a_system_that_does_not_tell_is_asked_once(journal, users, monkeypatch):
    def refuse(path):
        raise PermissionError(path)

    monkeypatch.setattr(os, "listdir", refuse)
    users.look(1)
    monkeypatch.undo()
    users.look(10**15)
    assert not journal.marks


def look_again(users: CoreUsers) -> None:
    users._due_ns = 0
    users.look(10**12)
