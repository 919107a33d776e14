"""How long the garbage collector stops all threads.

Before Python 3.12 a collection may begin wherever an object is created, in the middle of C code
that relies on not being interrupted. A callback written in Python releases the GIL there: another
thread runs, and what the first one was doing breaks (`ast.literal_eval`, with which numpy reads the
headers of its files, then raises SystemError once several threads do that; trainings whose loader
reads `.npz` files in threads crashed). So the callbacks consist of C functions only, which save the
time, the thread and the arguments. Another thread writes them down later.
"""

import functools
import gc
import itertools
import operator
import re
import threading
import time
from collections import deque
from types import SimpleNamespace
from typing import Any

from strobe.collect.journal import Journal
from strobe.model.journal import Mark

# A shorter pause is not worth a record of its own.
WORTH_NS = 100_000

# What is saved per beginning or end: moments by `max`, one for each of its two arguments; and text
# by `print`, which writes an argument, a space, the other argument and the end of the line.
_MOMENTS, _WORDS = 2, 4
# Upper bound, as the thread that reads them may be blocked in a library for hours.
_MOST_KEPT = 100_000

_GENERATION = re.compile(r"'generation': (\d)")


class GcPauses:
    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._moments: deque[tuple[int, int]] = deque(maxlen=_MOST_KEPT * _MOMENTS)
        self._words: deque[str] = deque(maxlen=_MOST_KEPT * _WORDS)
        self._telling = threading.Lock()
        now: Any = zip(iter(time.monotonic_ns, None), iter(threading.get_ident, None), strict=False)
        # Each `next` saves a moment, and is True: `max` compares what it gets.
        kept = map(operator.is_, map(self._moments.append, now), itertools.repeat(None))
        keep_moments = functools.partial(max, key=functools.partial(next, kept))
        keep_words = functools.partial(print, file=SimpleNamespace(write=self._words.append))
        self._callbacks: list[Any] = [keep_moments, keep_words]

    def start(self) -> None:
        gc.callbacks.extend(self._callbacks)  # in one call: each has to see the same collections

    def forget(self) -> None:
        for callback in self._callbacks:
            if callback in gc.callbacks:
                gc.callbacks.remove(callback)

    def tell(self) -> None:
        """Write down the pauses since the last call."""
        if not self._telling.acquire(timeout=1):
            return
        try:
            self._tell()
        finally:
            self._telling.release()

    def _tell(self) -> None:
        moments, words = self._moments, self._words
        if len(words) == words.maxlen or len(moments) == moments.maxlen:
            moments.clear()  # beginnings were dropped, so that ends can no longer be matched
            words.clear()
        while len(moments) >= 2 * _MOMENTS and len(words) >= 2 * _WORDS:
            (began_ns, thread), *_ = (moments.popleft() for _ in range(_MOMENTS))
            phase, *_ = (words.popleft() for _ in range(_WORDS))
            if phase != "start":  # it began before we were installed
                continue
            ended_ns, *_ = (moments.popleft()[0] for _ in range(_MOMENTS))
            *_, info, _ = (words.popleft() for _ in range(_WORDS))
            generation = _GENERATION.search(info)
            if ended_ns - began_ns >= WORTH_NS and generation:
                value = (ended_ns - began_ns) * 4 + int(generation[1])
                self._journal.mark(Mark.GC_PAUSE, 0, value, began_ns, thread)
