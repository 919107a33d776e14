"""Errors of the recorder, and parts of a framework that it does not recognise."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from strobe.collect.notices import notice

if TYPE_CHECKING:
    from strobe.collect.recorder import Recorder

Undo = Callable[[], None]


def fault_text(error: Exception) -> str:
    """The error message, and the line of code that raised it."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    place = f" at {Path(frame.tb_frame.f_code.co_filename).name}:{frame.tb_lineno}" if frame else ""
    return f"{type(error).__name__}: {error}{place}"


class Unseen:
    """Parts of a framework that are not as expected; recording goes on without them.

    Every rank has a row in `problems` for each. The first rank prints one line for the whole run,
    once its process is known to train.
    """

    def __init__(self, recorder: "Recorder") -> None:
        self._recorder = recorder
        self._parts: list[str] = []
        self._is_reported = False

    def add(self, source: str, part: str, error: Exception) -> str:
        """Returns the reason, for callers that record it elsewhere too."""
        why = fault_text(error)
        self._recorder.problem(source, f"not recorded: {part} ({why})")
        self._parts.append(f"{part} ({why})")
        if self._recorder.rank is not None:
            self.report()
        return why

    def tried(self, source: str, part: str, install: Callable[[], Undo]) -> list[Undo]:
        """The function that removes the hook; a no-op if the framework has no place for it."""
        try:
            return [install()]
        except Exception as error:
            self.add(source, part, error)
            return []

    def report(self) -> None:
        recorder = self._recorder
        if not self._parts or self._is_reported or recorder.likely_rank() != 0:
            return
        self._is_reported = True
        versions = " and ".join(f"{name} {text}" for name, text in recorder.frameworks.items())
        parts = ", ".join(dict.fromkeys(self._parts))
        recorder.say(notice("unsupported", versions=versions, parts=parts))
