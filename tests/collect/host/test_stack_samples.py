"""Looks at the stack of a thread."""

import gc
import json
import subprocess
import sys
import threading
import time
import weakref

import pytest

from strobe.collect.host import stack_samples
from strobe.collect.host.stack_samples import Stacks, StackSampler
from strobe.collect.journal import Journal
from strobe.ingest.recording import journal_reader as reading
from strobe.model.journal import SAMPLE_WAIT_BITS, Mark
from tests.faults.processes import TRAINING, ask, problems, write
from tests.warm import python, recorded


def from_here(frame) -> list:
    """The frame and those around it."""
    found = []
    while frame is not None:
        found.append(frame)
        frame = frame.f_back
    return found


def test_the_frames_of_another_thread_the_innermost_first():
    is_there, may_end = threading.Event(), threading.Event()

    def inner():
        is_there.set()
        may_end.wait(10)

    def outer():
        inner()

    thread = threading.Thread(target=outer)
    thread.start()
    is_there.wait(10)
    names = [frame.f_code.co_name for frame in stack_samples.stack_of(thread.ident)]
    may_end.set()
    thread.join()
    assert names[names.index("inner") :][:3] == ["inner", "outer", "run"]
    assert names[-1] == "_bootstrap"
    assert stack_samples.stack_of(thread.ident) == []


class Words:
    """Numbers for texts, as a journal gives them."""

    def __init__(self) -> None:
        self.texts: dict[str, int] = {}

    def __call__(self, kind: str, text: str) -> int:
        assert kind == "stack"
        return self.texts.setdefault(text, len(self.texts) + 1)


def unguarded(function):
    return function


def journal_in(folder) -> Journal:
    journal = Journal()
    journal.open(folder)
    return journal


def looks(folder) -> list[tuple[list, int, int]]:
    """Of each: its stack, CPU time in us, us waited."""
    marks = reading.read(folder)
    chosen = marks.code == Mark.SAMPLE
    values = marks.value[chosen].tolist()
    stacks = [json.loads(marks.text(ref, "")) for ref in marks.ref[chosen].tolist()]
    low = (1 << SAMPLE_WAIT_BITS) - 1
    return [(s, v >> SAMPLE_WAIT_BITS, v & low) for s, v in zip(stacks, values, strict=True)]


def test_a_stack_is_told_once_innermost_first_with_the_users_line():
    words = Words()
    stacks = Stacks(words)

    def deeper() -> int:
        return stacks.number(from_here(sys._getframe()))

    first = [deeper() for _ in range(3)]
    assert len(set(first)) == 1 and len(words.texts) == 1
    users, frames = json.loads(next(iter(words.texts)))
    assert users == 0
    assert frames[0][0] == __file__ and frames[0][2] == "deeper"
    assert [deeper()] != first[:1], "another line of the caller is another stack"
    assert len(words.texts) == 2


def test_a_deep_stack_is_cut_but_keeps_the_users_line():
    words = Words()
    stacks = Stacks(words)
    # A library that calls itself: 60 frames deep, all in a file of site-packages.
    code = compile(
        "def down(n, look):\n return look() if n == 0 else down(n - 1, look)\n",
        "/usr/lib/site-packages/library.py", "exec",
    )  # fmt: skip
    scope: dict = {}
    exec(code, scope)
    scope["down"](60, lambda: stacks.number(from_here(sys._getframe(1))))
    users, frames = json.loads(next(iter(words.texts)))
    assert len(frames) <= stack_samples.MOST_FRAMES
    assert frames[users][0] == __file__
    assert frames[users][2] == test_a_deep_stack_is_cut_but_keeps_the_users_line.__name__


def test_stacks_without_end_become_short_ones_then_other(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(stack_samples, "MOST_STACKS", 3)
    monkeypatch.setattr(stack_samples, "MOST_SHORT_STACKS", 2)
    words = Words()
    stacks = Stacks(words)
    for number in range(10):
        scope: dict = {"look": lambda: stacks.number(from_here(sys._getframe(1)))}
        exec(compile("\n" * number + "look()", f"/job/{number}.py", "exec"), scope)
    texts = list(words.texts)
    assert len(texts) == 6 and texts[-1] == stack_samples.OTHER
    assert len(json.loads(texts[0])[1]) > 2 >= len(json.loads(texts[3])[1])


def test_no_frame_is_kept():
    class Large:
        pass

    stacks = Stacks(Words())

    def work() -> weakref.ref:
        large = Large()
        stacks.number(from_here(sys._getframe()))
        return weakref.ref(large)

    gc.disable()
    try:
        assert work()() is None
    finally:
        gc.enable()


def test_a_thread_is_looked_at_with_its_cpu_time(tmp_path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(stack_samples, "PERIOD_NS", 2_000_000)
    monkeypatch.setattr(stack_samples, "EARLY_BUDGET_RATIO", 1.0)
    sampler = StackSampler(journal_in(tmp_path), unguarded)
    sampler.start()
    time.sleep(0.2)
    slept = len(looks(tmp_path))
    ends = time.thread_time() + 0.1
    while time.thread_time() < ends:
        pass
    sampler.stop()
    seen = looks(tmp_path)
    assert slept >= 5 and len(seen) > slept
    assert all(stack[1][stack[0]][0] == __file__ for stack, _, _ in seen)
    cpu = [cpu_us for _, cpu_us, _ in seen]
    assert cpu[slept - 1] - cpu[0] < 50_000, "asleep"
    assert cpu[-1] - cpu[slept] > 50_000, "at work"
    sampler._thread.join(5)
    assert not sampler._thread.is_alive()


def test_the_thread_that_ended_is_looked_at_no_more(tmp_path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(stack_samples, "PERIOD_NS", 1_000_000)
    watched = threading.Thread(target=time.sleep, args=(0.05,))
    watched.start()
    assert watched.ident is not None
    sampler = StackSampler(journal_in(tmp_path), unguarded, thread=watched.ident)
    sampler.start()
    sampler._thread.join(5)
    assert not sampler._thread.is_alive()
    sampler.stop()
    sampler.stop()  # twice is no fault


def test_the_period_keeps_to_the_budget_and_is_never_the_same():
    sampler = StackSampler(Journal(), unguarded)
    sampler._cost_ns = 135_000.0  # with the switch 150 us: 100 ms apart at first
    periods = [sampler._period_ns() for _ in range(200)]
    assert min(periods) >= 50_000_000 and max(periods) <= 150_000_000
    assert len(set(periods)) > 150 and abs(sum(periods) / 200 - 100_000_000) < 10_000_000
    sampler._began_ns -= 2 * stack_samples.EARLY_NS
    assert 100_000_000 <= min(sampler._period_ns() for _ in range(50)) <= 150_000_000
    sampler._began_ns -= 100 * stack_samples.EARLY_NS
    assert 150_000_000 <= min(sampler._period_ns() for _ in range(50)) <= 225_000_000
    sampler._is_window = lambda: True
    assert max(sampler._period_ns() for _ in range(50)) <= 60_000_000


def test_without_a_gil_nothing_is_looked_at(tmp_path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    sampler = StackSampler(journal_in(tmp_path), unguarded)
    sampler.start()
    assert not sampler._thread.is_alive()
    sampler.stop()


SLEEPY = (
    TRAINING
    + """
import random, time
random.seed(1)
def log():
    time.sleep(0.03)  # line 19
for _ in range(25):
    train(1)
    log()
print(random.random(), torch.rand(1).item())
"""
)


@pytest.mark.slow
def test_samples_of_a_real_training_name_the_line_and_change_no_result(tmp_path):
    pytest.importorskip("torch")
    script = write(tmp_path, SLEEPY)
    done = python(*recorded(tmp_path / "run", "--light", script))
    assert done.stdout == python(script).stdout
    rows = ask(
        tmp_path / "run",
        "SELECT place, function, thread, cpu_ns, waited_ns FROM samples WHERE function = 'log'",
    )
    assert len(rows) >= 5
    assert {row[:3] for row in rows} == {("train.py:19", "log", "training")}
    assert all(row[3] > 0 and row[4] >= 0 for row in rows)
    assert problems(tmp_path / "run") == []


@pytest.mark.slow
def test_no_samples_when_told_so(tmp_path):
    pytest.importorskip("torch")
    script = write(tmp_path, SLEEPY)
    python(*recorded(tmp_path / "run", "--light", "--no-samples", script))
    assert ask(tmp_path / "run", "SELECT count(*) FROM samples") == [(0,)]


# A collection begins every few objects, so in the middle of most looks, and lets the watched thread
# go on. Functions of many sizes take turns on its stack.
_COLLECTED = """
import gc, random, sys, threading, time
from strobe.collect.host import stack_samples as samples

called = {}
for count in (1, 3, 8, 20, 60, 150):
    names = ", ".join(f"v{i}" for i in range(count))
    exec(f"def f{count}(depth):\\n    {names}, = {list(range(count))}\\n"
         "    return some(depth - 1) if depth else 0", called)
functions = [value for name, value in called.items() if name.startswith("f")]
called["some"] = lambda depth: random.choice(functions)(depth)
gc.callbacks.append(lambda phase, info: time.sleep(0.0001))
gc.set_threshold(8, 1, 1)
looks, is_over, watched = [], False, threading.get_ident()

def look():
    while not is_over:
        looks.append([frame.f_code.co_name for frame in samples.stack_of(watched)])

thread = threading.Thread(target=look)
thread.start()
until = time.monotonic() + 1.5
while time.monotonic() < until and thread.is_alive():
    called["some"](12)
is_alive, is_over = thread.is_alive(), True
thread.join()
assert is_alive and gc.isenabled() and len(looks) > 5, len(looks)
assert all("<module>" in names for names in looks if names)
"""


@pytest.mark.slow
def test_the_garbage_collector_does_not_begin_in_the_middle_of_a_look():
    done = subprocess.run(
        [sys.executable, "-c", _COLLECTED], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
