"""Step times of a running training, from the marks that it leaves, at no cost to it.

Another thread reads the journal while it is written, and counts marks by the same rule by which the
training counts its own steps.
"""

from collections.abc import Iterator

from strobe.collect.journal import Journal
from strobe.collect.steps import StepCount
from strobe.model.journal import HEADER_BYTES, Mark

_WORD_BYTES = 8
_FIRST = HEADER_BYTES // _WORD_BYTES
_WORDS = 3  # of a record: its time, its value, and code, thread and ref

_UPDATE_ENDED, _BACKWARD_ENDED = int(Mark.UPDATE_ENDED), int(Mark.BACKWARD_ENDED)
_STEP, _WINDOW_BEGAN = int(Mark.STEP), int(Mark.WINDOW_BEGAN)
_WINDOW_ENDED = int(Mark.WINDOW_ENDED)
_TELLING = frozenset((_UPDATE_ENDED, _BACKWARD_ENDED, _STEP, _WINDOW_BEGAN, _WINDOW_ENDED))

_CODE_SHIFT, _REF_MASK = 48, 0xFFFFFFFF


class StepMarks:
    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._words = journal.words
        self._place = _FIRST
        self._count = StepCount()
        self._last_ns: int | None = None
        self._is_full = self._was_full = False

    def new_steps(self, has_optimizer: bool) -> Iterator[tuple[int, int, bool]]:
        """Steps that ended since the last call: number, nanoseconds between its end and the
        previous one, and whether full recording touched it.
        """
        self._count.has_optimizer = has_optimizer
        for ts_ns, last_word in self._new_records():
            code = last_word >> _CODE_SHIFT
            if code == _WINDOW_BEGAN:
                self._is_full = self._was_full = True
            elif code == _WINDOW_ENDED:
                self._is_full = False
            elif self._counts(code, last_word & _REF_MASK):
                yield from self._step(ts_ns)

    def _step(self, ts_ns: int) -> Iterator[tuple[int, int, bool]]:
        last, self._last_ns = self._last_ns, ts_ns
        # Also the step after a window: the trace is collected in it.
        was_full, self._was_full = self._was_full, self._is_full
        if last is not None:
            yield self._count.done, ts_ns - last, was_full or self._is_full

    def _counts(self, code: int, ref: int) -> bool:
        count = self._count
        before = count.done
        if code == _UPDATE_ENDED:
            count.updated(ref)
        elif code == _STEP:
            count.said()
            self._last_ns = None if count.done == 1 else self._last_ns
            return True
        else:
            count.went_backward()
        if count.done < before:  # what a step is, is known better now
            self._last_ns = None
        return count.done > before

    def _new_records(self) -> Iterator[tuple[int, int]]:
        while True:
            current = self._journal.words
            yield from self._records_here()
            if current is self._words:
                return
            self._words, self._place = current, _FIRST

    def _records_here(self) -> Iterator[tuple[int, int]]:
        """A record is complete when its last word is not zero."""
        words, place = self._words, self._place
        last_words = words[place + 2 :: _WORDS].tolist()
        if 0 in last_words:  # otherwise this segment is full
            last_words = last_words[: last_words.index(0)]
        for number, last_word in enumerate(last_words):
            if last_word >> _CODE_SHIFT in _TELLING:
                yield words[place + _WORDS * number], last_word
        self._place = place + _WORDS * len(last_words)
