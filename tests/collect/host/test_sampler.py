"""What is sampled of the host, from texts as the kernel writes them."""

import pytest

from strobe.collect.host import sampler as system
from strobe.collect.host.sampler import Sampler
from strobe.model.journal import Mark
from tests.collect.journals import NotedJournal


@pytest.fixture
def journal():
    return NotedJournal()


@pytest.fixture
def sampler(journal):
    return Sampler(journal, 1.0, lambda function: function)


def stat(*cores):
    """/proc/stat: user, nice, system, idle, iowait, irq, softirq, steal, guest, guest_nice."""
    lines = [f"cpu{name} {' '.join(map(str, ticks))} 0 0" for name, ticks in cores]
    return "\n".join([*lines, "intr 99 1 2 3", "ctxt 5", "btime 7", ""]).encode()


def test_cores_are_busy_as_far_as_they_are_neither_idle_nor_wait_for_a_disk(
    journal, sampler, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(system.os, "cpu_count", lambda: 2)
    before = [100, 0, 20, 500, 10, 0, 5, 0]
    sampler._sample_cores(stat(("", before), ("0", before), ("1", before)))
    assert journal.marks == []  # nothing to compare with
    busy = [130, 0, 25, 550, 20, 0, 10, 0]  # 40 of 100
    idle = [100, 0, 20, 600, 10, 0, 5, 0]
    sampler._sample_cores(stat((" ", busy), ("0", busy), ("1", idle)))
    assert journal.counters() == {
        "cores_busy_milli": 800, "core_0_busy_permille": 400, "core_1_busy_permille": 0,
    }  # fmt: skip


def test_cores_whose_clocks_have_not_gone_on_say_nothing(journal, sampler):
    same = stat(("", [1, 2, 3, 4, 5, 6, 7, 8]))
    sampler._sample_cores(same)
    sampler._sample_cores(same)
    assert journal.marks == []


def test_cores_are_read_every_second_time_at_first_then_always_and_less_if_they_are_many(sampler):
    assert [n for n in range(26) if n % sampler._cores_every(n) == 0] == [
        *range(0, system._EARLY_SAMPLES, 2), *range(system._EARLY_SAMPLES, 26)
    ]  # fmt: skip
    sampler._cores = dict.fromkeys(range(100))
    assert [n for n in range(26) if n % sampler._cores_every(n) == 0] == [0, 5, 10, 15, 20, 25]


def test_the_thread_ends_when_it_is_told_to_also_twice(journal):
    sampler = Sampler(journal, 1000.0, lambda function: function, what=None)
    sampler.start()
    sampler.stop()
    sampler.stop()
    sampler._thread.join(10)
    assert not sampler._thread.is_alive()


def test_clocks_are_compared_once_a_second_at_first_too(journal):
    sampler = Sampler(journal, 1.0, lambda function: function, what=None)
    early = range(system._EARLY_SAMPLES)
    for sample in (*early, system._EARLY_SAMPLES, system._EARLY_SAMPLES + 1):
        sampler._sample({}, sample)
    clocks = [mark for mark in journal.marks if mark.code == Mark.CLOCK]
    assert len(clocks) == len(early) // system._EARLY_FASTER + 2
