import random

from strobe.collect.slowdown.model import StepTimes

MS = 1_000_000


def steps(times, count=60, ns=20 * MS, spread=0.01, first=1, seed=0):
    """So many steps with a little noise; what the watch said to each, where it said something."""
    noise = random.Random(seed)
    said = {}
    for step in range(first, first + count):
        reason = times.see(step, round(ns * noise.gauss(1, spread)))
        if reason is not None:
            said[step] = reason
    return said


def test_even_steps_give_no_reason():
    times = StepTimes()
    assert not steps(times, count=5000)
    assert abs(times.usual_ns - 20 * MS) < MS


def test_noisy_steps_give_no_reason():
    for seed in range(5):
        assert not steps(StepTimes(), count=3000, spread=0.15, seed=seed)


def test_warm_up_is_not_what_is_usual():
    times = StepTimes()
    steps(times, count=10, ns=500 * MS)
    steps(times, count=60, first=11)
    assert abs(times.usual_ns - 20 * MS) < MS


def test_a_step_far_beyond_is_a_spike():
    times = StepTimes()
    steps(times, count=100)
    reason = times.see(101, 60 * MS)
    assert reason.kind == "spike" and reason.start is None
    assert "step 101 took 60.0 ms" in reason.why
    assert times.see(102, 61 * MS) is None  # the same trouble
    assert not steps(times, first=103)


def test_steps_that_become_slower_drift_and_are_then_usual():
    times = StepTimes()
    steps(times, count=100)
    said = steps(times, count=300, ns=28 * MS, first=101)
    assert [reason.kind for reason in said.values()] == ["drift"]
    (step,) = said
    assert step <= 120
    assert "steps became slower: the median is 2" in said[step].why
    assert abs(times.usual_ns - 28 * MS) < MS


def test_a_creeping_drift_is_told_too():
    times, said = StepTimes(), {}
    steps(times, count=100)
    for number in range(400):
        said |= steps(times, count=1, ns=20 * MS + number * 50_000, first=101 + number, seed=number)
    assert next(iter(said.values())).kind == "drift"


def test_faster_steps_are_nobodys_trouble():
    times = StepTimes()
    steps(times, count=100)
    assert not steps(times, count=300, ns=12 * MS, first=101)
    assert abs(times.usual_ns - 12 * MS) < MS


def test_spikes_at_equal_distances_have_a_rhythm_and_the_next_is_waited_for():
    times, said = StepTimes(), {}
    for step in range(1, 301):
        reason = times.see(step, 400 * MS if step % 50 == 0 and step > 60 else 20 * MS)
        if reason is not None:
            said[step] = reason
    assert [said[step].kind for step in (100, 150, 200, 250)] == [
        "spike", "spike", "rhythm", "rhythm",
    ]  # fmt: skip
    assert said[200].start == 249 and said[200].steps == 3
    assert "every 50 steps" in said[200].why


def test_a_rhythm_that_was_there_from_the_start_is_usual():
    """A log line every tenth step: learned with the rest."""
    times = StepTimes()
    assert not [
        step for step in range(1, 1000)
        if times.see(step, 45 * MS if step % 10 == 0 else 20 * MS) is not None
    ]  # fmt: skip


def test_steps_recorded_in_full_say_nothing():
    times = StepTimes()
    steps(times, count=100)
    for _ in range(50):
        times.skip()
    assert not steps(times, count=19, ns=28 * MS, first=151)  # 19 recent ones are not enough
