"""What is marked of a device that runs behind the script: with arrays that are there when told."""

import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

from strobe.collect.jax.call_counts import Reading
from strobe.collect.jax.device import Device
from strobe.collect.jax.programs import Program
from strobe.collect.jax.steps import Computed, Execution, StepSaid, Waited
from strobe.collect.steps import StepCount
from strobe.model.journal import GRAPH_PARTS_BITS, Mark


class Array:
    """There once it is told to be, or gone."""

    def __init__(self, is_gone=False):
        self.is_there, self._is_gone = threading.Event(), is_gone
        self.is_blocked_on = threading.Event()

    def is_ready(self):
        return self.is_there.is_set()

    def block_until_ready(self):
        self.is_blocked_on.set()
        if self._is_gone:
            raise RuntimeError("Array has been deleted")
        assert self.is_there.wait(10)


class Recorder:
    def __init__(self):
        self.marks, self.is_recording, self.faults = [], True, []
        self.journal = SimpleNamespace(string=lambda kind, text: 99)

    def mark(self, code, ref, value, ts_ns, thread):
        assert thread == 7
        self.marks.append((Mark(code).name, ref, value, ts_ns))

    def broke(self, where, error):
        self.faults.append(error)


@pytest.fixture
def recorder():
    return Recorder()


def device_of(recorder):
    made = Device(recorder, StepCount(), lambda: None)
    made.marks.is_training_known = True
    return made


def training(name="step", number=1):
    program = Program(name, number)
    program.trains = True
    return program


def execution(program, called, sent, done=0, leaf=None):
    made = Execution(program, 7, called, sent)
    made.done_ns, made.leaf = done, leaf
    return made


def finished(device, recorder):
    device.finish()
    assert recorder.faults == []
    return [mark for mark in recorder.marks if mark[0] != "GRAPH"]


def graphs(recorder):
    found = [mark for mark in recorder.marks if mark[0] == "GRAPH"]
    return [(ref, ts, ts + (value >> GRAPH_PARTS_BITS)) for _, ref, value, ts in found]


def test_a_step_sent_ahead_begins_when_the_one_before_it_is_done(recorder):
    device, step = device_of(recorder), training()
    device.put(execution(step, called=10, sent=12, done=50))
    device.put(execution(step, called=13, sent=15, done=90))
    assert finished(device, recorder) == [
        ("UPDATE_BEGAN", 1, 0, 10), ("UPDATE_ENDED", 1, 0, 50),
        ("UPDATE_BEGAN", 1, 0, 50), ("UPDATE_ENDED", 1, 0, 90),
    ]  # fmt: skip
    # While the first was handed over, the device had nothing to do.
    assert graphs(recorder) == [(99, 10, 12), (1, 12, 50), (1, 50, 90)]


def test_results_that_are_there_when_the_call_returns_were_computed_in_it(recorder):
    device = device_of(recorder)
    device.put(execution(training(), called=10, sent=40, done=40))
    finished(device, recorder)
    assert graphs(recorder) == [(1, 10, 40)]


def test_the_moment_the_script_saw_a_result_counts_if_it_was_earlier(recorder):
    device, leaf = device_of(recorder), Array()
    waited = execution(training(), called=10, sent=12, leaf=leaf)
    device.put(waited)
    device.seen(leaf, None)
    seen_ns = waited.done_ns
    leaf.is_there.set()
    assert finished(device, recorder)[-1] == ("UPDATE_ENDED", 1, 0, seen_ns)
    assert device.awaited == {}


def waited_for_so_far(device, step):
    """A step whose results the script has waited for, time and again."""
    while not step.is_waited_for:
        leaf = Array()
        sent = execution(step, called=10, sent=12, leaf=leaf)
        device.put(sent)
        leaf.is_there.set()
        device.seen(leaf, sent)


def test_results_that_the_script_always_waits_for_are_left_to_it(recorder):
    device, step, leaf = device_of(recorder), training(), Array()
    waited_for_so_far(device, step)
    sent = execution(step, called=10, sent=12, leaf=leaf)
    device.put(sent)
    assert not leaf.is_blocked_on.wait(0.05)
    leaf.is_there.set()
    device.seen(Array(), sent)  # another result of the same call
    seen_ns = sent.done_ns
    assert finished(device, recorder)[-1] == ("UPDATE_ENDED", 1, 0, seen_ns)
    assert not leaf.is_blocked_on.is_set()


def test_results_that_the_script_passes_by_are_waited_for_again(recorder):
    device, step, leaf = device_of(recorder), training(), Array()
    waited_for_so_far(device, step)
    sent = execution(step, called=10, sent=12, leaf=leaf)
    device.put(sent)
    device.passed_by(sent)
    assert leaf.is_blocked_on.wait(10) and not step.is_waited_for
    leaf.is_there.set()
    finished(device, recorder)
    assert sent.done_ns > 12


def test_the_last_results_are_waited_for_if_the_script_ends_without(recorder):
    device, step, leaf = device_of(recorder), training(), Array()
    waited_for_so_far(device, step)
    device.put(execution(step, called=10, sent=12, leaf=leaf))
    threading.Timer(0.02, leaf.is_there.set).start()
    finished(device, recorder)
    assert leaf.is_blocked_on.is_set()


def test_what_is_found_done_at_once_is_spread_over_the_time_it_may_have_ended_in(recorder):
    device, step, leaves = device_of(recorder), training(), [Array() for _ in range(4)]
    sent_ns = time.monotonic_ns()
    for number, leaf in enumerate(leaves):
        device.put(execution(step, called=sent_ns + number, sent=sent_ns + number, leaf=leaf))
    time.sleep(0.02)
    for leaf in reversed(leaves):
        leaf.is_there.set()
    ends = [ts for name, _, _, ts in finished(device, recorder) if name == "UPDATE_ENDED"]
    lengths = [end - begin for begin, end in zip([sent_ns, *ends], ends, strict=False)]
    assert min(lengths) > 0.8 * max(lengths)


def test_a_result_that_was_given_away_leaves_the_step_in_place(recorder):
    device = device_of(recorder)
    device.put(execution(training(), called=10, sent=12, leaf=Array(is_gone=True)))
    assert finished(device, recorder)[-1] == ("UPDATE_ENDED", 1, 0, 12)


def test_a_fault_ends_the_recording_and_is_not_met_again(recorder):
    class Odd(Array):
        def is_ready(self):
            raise ValueError("odd")

    device, step = device_of(recorder), training()
    device.put(execution(step, called=10, sent=12, leaf=Array()))
    device.put(execution(step, called=13, sent=14, leaf=Odd()))
    device._queue[0].leaf.is_there.set()
    device.finish()
    assert [str(fault) for fault in recorder.faults] == ["odd"]


def test_counters_that_another_thread_is_reading_are_waited_for(recorder):
    """The script has seen the result and reads its counters; the device's thread needs them too."""
    device, is_first = device_of(recorder), threading.Lock()
    begun, go_on = threading.Event(), threading.Event()

    def value(number):
        if is_first.acquire(blocking=False):
            begun.set()
            assert go_on.wait(10)
        return np.array([number])

    device.value = value
    counters = [SimpleNamespace(addressable_data=lambda _, n=n: n) for n in (1, 5)]
    call = execution(training(), called=10, sent=12, done=50)
    call.counters = tuple(counters)
    script = threading.Thread(target=device.read, args=(call,))
    script.start()
    assert begun.wait(10)
    # As the device's thread does before it writes the call down.
    if call.counters is not None:
        device.read(call)
    assert call.reading == Reading(1, 5)
    go_on.set()
    script.join(10)
    assert call.reading == Reading(1, 5) and call.counters is None


def test_executions_are_kept_until_it_is_known_what_trains(recorder):
    device, step = device_of(recorder), training()
    device.marks.is_training_known = False
    device.put(execution(step, called=10, sent=12, done=20))
    device.finish()
    assert recorder.marks == []
    device.marks.is_training_known = True
    device.put(execution(step, called=21, sent=22, done=30))
    assert [mark[3] for mark in finished(device, recorder)] == [10, 20, 21, 30]


def test_a_step_that_the_script_says_ends_where_the_device_is(recorder):
    device = device_of(recorder)
    device.put(execution(training(), called=10, sent=12, done=2**62))
    said = StepSaid(by_hand=True)
    said.thread = 7
    device.put(said)
    assert finished(device, recorder)[-1] == ("STEP", 0, 0, 2**62)


def test_an_annotation_around_something_else_is_no_step(recorder):
    device = device_of(recorder)
    other = StepSaid(by_hand=False)
    other.thread = 7
    device.put(other)
    assert finished(device, recorder) == []


def test_evaluations_are_marked_where_they_ran(recorder):
    device, check = device_of(recorder), Program("check", 2)
    check.evaluates = True
    device.put(execution(training(), called=10, sent=12, done=50))
    device.put(execution(check, called=20, sent=21, done=70))
    assert finished(device, recorder)[-2:] == [
        ("FORWARD_BEGAN", 2, 0, 50), ("FORWARD_ENDED", 2, 1, 70),
    ]  # fmt: skip


def test_what_only_gathers_is_backward_and_the_update_ends_the_step(recorder):
    device = device_of(recorder)
    gradient, update = training("gradient", 1), training("update", 2)
    gradient.gathers = True
    for item in (execution(gradient, 10, 11, 20), execution(gradient, 20, 21, 30),
                 execution(update, 30, 31, 40)):  # fmt: skip
        device.put(item)
    assert [mark[:2] for mark in finished(device, recorder)] == [
        ("BACKWARD_BEGAN", 0), ("BACKWARD_ENDED", 0), ("BACKWARD_BEGAN", 0), ("BACKWARD_ENDED", 0),
        ("UPDATE_BEGAN", 2), ("UPDATE_ENDED", 2),
    ]  # fmt: skip
    assert device._steps.done == 1


def test_gradients_used_by_single_operations_end_the_step_with_the_last_call(recorder):
    device, gradient = device_of(recorder), training("gradient", 1)
    gradient.gathers = True
    device.put(execution(gradient, 10, 11, 20))
    second = execution(gradient, 50, 51, 60)
    second.is_next_step = True
    device.put(second)
    marks = finished(device, recorder)
    assert [(name, ts) for name, _, _, ts in marks if "UPDATE" in name] == [
        ("UPDATE_BEGAN", 20), ("UPDATE_ENDED", 20), ("UPDATE_BEGAN", 60), ("UPDATE_ENDED", 60),
    ]  # fmt: skip


def waited(asked, came):
    made = Waited(5, 3, asked, 1)
    made.came_ns, made.thread = came, 7
    return made


def test_a_wait_for_data_begins_when_the_device_has_nothing_to_do(recorder):
    device, step = device_of(recorder), training()
    device.put(execution(step, called=10, sent=12, done=50))
    device.put(waited(asked=13, came=80))
    device.put(execution(step, called=81, sent=82, done=120))
    device.put(waited(asked=83, came=100))  # it came before the device was done
    assert finished(device, recorder) == [
        ("UPDATE_BEGAN", 1, 0, 10), ("UPDATE_ENDED", 1, 0, 50),
        ("DATA_ASKED", 5, 3, 50), ("DATA_CAME", 5, 1, 80),
        ("UPDATE_BEGAN", 1, 0, 81), ("UPDATE_ENDED", 1, 0, 120),
        ("DATA_ASKED", 5, 3, 120), ("DATA_CAME", 5, 1, 120),
    ]  # fmt: skip


def test_a_metric_that_the_script_computes_belongs_to_the_training_call_before_it(recorder):
    device, step, leaf, found = device_of(recorder), training(), Array(), []
    before = Computed(found.append)
    device.put(before)
    device.put(execution(step, called=10, sent=12, done=50))
    device.put(Computed(found.append))
    sent = execution(step, called=60, sent=62, leaf=leaf)
    device.put(sent)
    device.put(Computed(found.append))  # the device is behind
    leaf.is_there.set()
    finished(device, recorder)
    assert found == [before.computed_ns, 49, sent.done_ns - 1]
