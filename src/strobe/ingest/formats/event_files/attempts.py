"""Which attempt each value of a folder belongs to: a resumed training logs some steps again.

A new attempt begins with a file in which a tag goes back behind the steps that it had reached in
earlier files, or where a file says that a session starts at a step that was passed. Within a file
steps may be in any order.
"""

import numpy as np

from strobe.ingest.trace.codes import Array

_NEVER = -(2**63)


class Attempts:
    def __init__(self) -> None:
        self.number = 1
        self._reached = np.full(0, _NEVER, dtype=np.int64)  # by tag, in this and earlier files
        self._before = self._reached  # in earlier files
        self._is_first_of_file = True

    def next_file(self) -> None:
        self._before, self._is_first_of_file = self._reached.copy(), True

    def take(self, tag: Array, step: Array) -> None:
        """Values of a stretch of the file; `number` is their attempt."""
        if not len(tag):
            return
        self._grow(int(tag.max()) + 1)
        if self._is_first_of_file:
            self.number += bool((step < self._before[tag]).any())
            self._is_first_of_file = False
        np.maximum.at(self._reached, tag, step)

    def start(self, step: int) -> None:
        """A session starts here."""
        if (self._reached >= max(step, 0)).any():
            self.number += 1
        self._before, self._is_first_of_file = self._reached[:0], False

    def _grow(self, tags: int) -> None:
        if min(len(self._reached), len(self._before)) >= tags:
            return
        self._reached, self._before = (
            np.append(reached, np.full(max(0, tags - len(reached)), _NEVER))
            for reached in (self._reached, self._before)
        )
