import pytest

from strobe.collect.journal import Journal
from strobe.collect.slowdown.step_times import StepMarks
from strobe.model.journal import Mark


@pytest.fixture
def journal(tmp_path):
    made = Journal(segment_bytes=8192)
    made.open(tmp_path)
    yield made
    made.close()


def update(journal, ts_ns, optimizer=1):
    journal.mark(Mark.BACKWARD_BEGAN, 0, 0, ts_ns - 2)
    journal.mark(Mark.BACKWARD_ENDED, 0, 0, ts_ns - 1)
    journal.mark(Mark.UPDATE_ENDED, optimizer, 0, ts_ns)


def test_each_step_is_told_once_with_its_length(journal):
    marks = StepMarks(journal)
    for ts_ns in (100, 300, 600):
        update(journal, ts_ns)
    assert list(marks.new_steps(True)) == [(2, 200, False), (3, 300, False)]
    assert list(marks.new_steps(True)) == []
    update(journal, 1000)
    assert list(marks.new_steps(True)) == [(4, 400, False)]


def test_steps_go_on_over_segments(journal):
    marks, found = StepMarks(journal), []
    for number in range(1, 501):  # 3 marks each, 170 fit into a segment
        update(journal, 100 * number)
        if number % 50 == 0:
            found += marks.new_steps(True)
    assert found == [(number, 100, False) for number in range(2, 501)]


def test_steps_that_full_recording_touched_are_told_so(journal):
    marks = StepMarks(journal)
    update(journal, 100)
    journal.mark(Mark.WINDOW_BEGAN, 0, 1, 150)
    update(journal, 200)
    journal.mark(Mark.WINDOW_ENDED, 0, 1, 250)
    for ts_ns in (300, 400):
        update(journal, ts_ns)
    assert list(marks.new_steps(True)) == [(2, 100, True), (3, 100, True), (4, 100, False)]


def test_steps_said_by_hand_count_alone(journal):
    marks = StepMarks(journal)
    for ts_ns in (100, 200, 300):
        update(journal, ts_ns)
        journal.mark(Mark.STEP, 0, 0, ts_ns + 10)
    found = list(marks.new_steps(True))
    assert [(step, dur) for step, dur, _ in found] == [(2, 100), (3, 100)]
