"""Record which debug modes of a framework are on, as counters, at each host sample.

Reading a flag takes well under a microsecond and happens on the sampling thread, so a training step
pays nothing. Modes that are never on leave no rows.
"""

import os
from collections.abc import Callable, Mapping
from typing import Any

from strobe.collect.recorder import Recorder
from strobe.model.journal import DEBUG_MODE_COUNTER, Mark

Readers = Mapping[str, Callable[[], Any]]

_COUNTER = int(Mark.COUNTER)
_FALSE = ("", "0", "false", "off", "no")


class DebugModes:
    """The debug modes of one framework; `readers` has a function for each that says if it is on."""

    def __init__(self, recorder: Recorder, readers: Readers) -> None:
        self._recorder = recorder
        self._readers = dict(readers)
        self._seen: set[str] = set()

    def begin(self) -> None:
        """Called when training begins."""
        self._recorder.at_looks.append(self.look)
        self.look()

    def look(self) -> None:
        for name, is_on in list(self._readers.items()):
            try:
                value = bool(is_on())
            except Exception:  # this version of the framework does not have the mode
                self._readers.pop(name, None)
                continue
            if value or name in self._seen:
                self._seen.add(name)
                self.count(DEBUG_MODE_COUNTER.format(name), int(value))

    def count(self, name: str, value: int) -> None:
        journal = self._recorder.journal
        journal.mark(_COUNTER, journal.string("counter", name), value)


def in_environment(*names: str) -> dict[str, Callable[[], bool]]:
    """Readers for modes that are set by environment variables."""
    return {name: lambda name=name: is_set(name) for name in names}  # type: ignore[misc]


def is_set(name: str) -> bool:
    return os.environ.get(name, "").strip().lower() not in _FALSE
