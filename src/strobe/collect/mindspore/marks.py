"""Marks of MindSpore's hooks: buffered for a moment, and written several at once.

Between two of them MindSpore computes for milliseconds. By then the code that writes marks has left
the processor's caches: the first takes ten microseconds, each further mark half of one. Buffering
its numbers takes two.
"""

import threading
from collections.abc import Callable

from strobe.collect.recorder import Recorder

# A process that is killed loses what is buffered: at most this many marks, and the current step.
# While a step hangs, the sampler writes them (Recorder.at_looks).
LONGEST_NS = 200_000_000

# code, ref, value, ns, thread: the order in which they are buffered.
_NUMBERS = 5


class Marks:
    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._kept: list[int] = []
        self._lock = threading.Lock()
        # One or several marks, as the numbers of one after the other.
        self.keep: Callable[[tuple[int, ...]], None] = self._kept.extend
        # When the buffer reaches this size, the next caller writes it.
        self.due_ns = 0

    def write(self, now_ns: int = 0) -> None:
        with self._lock:
            self.due_ns = now_ns + LONGEST_NS
            count = len(self._kept)
            numbers = iter(self._kept[:count])
            del self._kept[:count]
            mark = self._recorder.journal.mark
            for code, ref, value, ts_ns, thread in zip(*[numbers] * _NUMBERS, strict=True):
                mark(code, ref, value, ts_ns, thread)

    def after_fork_in_child(self) -> None:
        """They belong to the parent, and so does the lock if it is held."""
        self._lock = threading.Lock()
        self._kept.clear()
