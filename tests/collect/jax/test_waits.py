"""Results are waited for in turn, and what was there already is told from what was waited for."""

import threading
import time

import pytest

from strobe.collect.jax.device import Device
from strobe.collect.jax.waits import Waits, together
from strobe.collect.steps import StepCount
from strobe.model.journal import Mark
from tests.collect.jax.test_device import Array, Recorder, execution, training

FAR_NS = 2**62


def there():
    array = Array()
    array.is_there.set()
    return array


@pytest.fixture
def steps():
    made = StepCount()
    made.is_watched = False
    return made


@pytest.fixture
def waits(steps):
    return Waits(steps)


def found_of(rows):
    return [leaf for _, _, leaf, _, _ in rows]


def test_all_are_waited_for_in_turn_also_those_that_come_meanwhile(waits):
    first, second = there(), Array()
    waits.leaves += [first, second]

    def send_another():
        assert second.is_blocked_on.wait(10)
        waits.leaves.append(there())
        second.is_there.set()

    other = threading.Thread(target=send_another)
    other.start()
    rows = waits.until(FAR_NS)
    other.join()
    assert found_of(rows)[:2] == [first, second] and len(rows) == 3
    assert waits.leaves == []


def test_the_first_is_waited_for_however_late_it_is_and_no_other(waits, steps):
    leaves = [there(), there()]
    waits.leaves += leaves
    assert found_of(waits.until(0)) == leaves[:1]
    assert waits.leaves == leaves[1:]
    steps.is_watched = True
    waits.leaves.append(there())
    assert found_of(waits.until(FAR_NS)) == leaves[1:]


def test_one_takes_with_it_what_is_there_as_well(waits):
    leaves = [there(), there(), Array(), there()]
    waits.leaves += leaves
    assert found_of(waits.one()) == leaves[:2]
    assert waits.leaves == leaves[2:]


def test_what_was_given_away_is_found_with_the_one_before_it_or_not_at_all(waits):
    gone = Array(is_gone=True)
    waits.leaves.append(gone)
    assert waits.until(FAR_NS) == [] and waits.leaves == []
    leaves = [there(), gone, there()]
    waits.leaves += leaves
    rows = waits.until(FAR_NS)
    assert found_of(rows) == leaves[:2] and waits.leaves == leaves[2:]
    assert [each for _, each in together(rows)] == [leaves[:2]]


def test_an_error_that_nobody_knows_is_not_kept_quiet(waits):
    class Odd(Array):
        def is_ready(self):
            raise ValueError("odd")

    waits.leaves.append(Odd(is_gone=True))
    with pytest.raises(ValueError, match="odd"):
        waits.until(FAR_NS)


def test_those_for_which_it_took_no_time_were_there_with_the_one_before_them():
    rows = [(True, 0, "a", "a", 100_000), (True, 100_100, "b", "b", 199_000),
            (True, 199_100, "c", "c", 900_000), (True, 900_100, "d", "d", 901_000)]  # fmt: skip
    assert list(together(rows)) == [(100_000, ["a", "b"]), (900_000, ["c", "d"])]
    assert list(together([])) == []


def test_steps_that_are_awaited_in_turn_end_where_their_results_were_there():
    recorder, steps = Recorder(), StepCount()
    device, step = Device(recorder, steps, lambda: None), training()
    device.marks.is_training_known, steps.is_watched = True, False
    leaves, ends_ns = [Array() for _ in range(4)], []
    for leaf in leaves:
        sent_ns = time.monotonic_ns()
        device.put(execution(step, called=sent_ns, sent=sent_ns, leaf=leaf))
    for leaf in leaves:
        assert leaf.is_blocked_on.wait(10)
        time.sleep(0.002)  # sooner, it would count as found with the one before
        ends_ns.append(time.monotonic_ns())
        leaf.is_there.set()
    device.finish()
    found = [ts for name, _, _, ts in recorder.marks if name == Mark.UPDATE_ENDED.name]
    next_ns = [*ends_ns[1:], time.monotonic_ns()]
    assert all(a <= b <= c for a, b, c in zip(ends_ns, found, next_ns, strict=True))
    assert device.awaited == {} and device.waits.leaves == []


def test_what_the_script_waited_for_before_the_thread_did_is_not_kept():
    recorder, steps = Recorder(), StepCount()
    device, step = Device(recorder, steps, lambda: None), training()
    for _ in range(3):
        leaf = there()
        sent = execution(step, called=10, sent=12, done=20, leaf=leaf)
        device.awaited[id(leaf)] = sent
        device.waits.leaves.append(leaf)
        device._queue.append(sent)
    device._take_done()
    assert device.waits.leaves == [] and device.awaited == {} and len(device._done) == 3


def test_an_array_that_the_script_waits_for_every_time_is_let_go_at_once():
    device, step, leaf = Device(Recorder(), StepCount(), lambda: None), training(), there()
    step.waits = 100
    sent = execution(step, called=10, sent=12, leaf=leaf)
    device._thread = threading.current_thread()  # none of its own
    device.put(sent)
    assert device.awaited == {id(leaf): sent}
    device.seen(leaf, sent)
    assert sent.leaf is None and sent.done_ns > 12 and device.awaited == {}
    device._take_done()
    assert device._done == [sent] and device._dated_ns == sent.done_ns
