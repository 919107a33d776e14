"""Marks of MindSpore's hooks: kept for a moment, and written several at once.

Between two of them MindSpore computes for milliseconds. What writes marks has then left the
processor's caches, and takes ten microseconds to come back; each further mark takes half of one. To
keep its numbers for later takes two.
"""

import threading
from collections.abc import Callable

from strobe.collect.recorder import Recorder

# A process that is killed loses what it has kept: at most so much, and the step under way. While a
# step hangs, the sampler writes it (Recorder.at_looks).
LONGEST_NS = 200_000_000

# code, ref, value, ns, thread: as they are kept, one behind the other.
_NUMBERS = 5


class Marks:
    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._kept: list[int] = []
        self._lock = threading.Lock()
        # Of one or several marks, the numbers of each one behind the other.
        self.keep: Callable[[tuple[int, ...]], None] = self._kept.extend
        # From then on they are to be written, by whoever comes by.
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
        """They are the parent's, and so is the lock if it is held."""
        self._lock = threading.Lock()
        self._kept.clear()
