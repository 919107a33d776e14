"""A window of full recording on demand, as the training thread sees it.

Another thread creates it and may set its `verdict`; the training thread takes it up at a step
boundary. The verdict may be open until the step at which the window would begin: all ranks must
agree on it.
"""

from collections.abc import Callable
from typing import Any

from strobe.model.options import Options


class AskedWindow:
    def __init__(
        self, *, generation: int, start: int, stop: int, options: Options,
        given: dict[str, Any] | None = None, asked_start: int | None = None, by: str = "",
        why: str = "",
        settle: Callable[[], bool] = lambda: True,
    ) -> None:  # fmt: skip
        """Steps `start` to `stop` - 1. `given` are the options that differ from the run's. `settle`
        decides at once, for all ranks, whether it takes place.
        """
        self.generation, self.start, self.stop = generation, start, stop
        self.options, self.by, self.why = options, by, why
        self._given, self._asked_start, self._settle = given or {}, asked_start, settle
        self.verdict: bool | None = None
        self.is_recording = self.is_over = False
        # Why it was not, or not completely, recorded.
        self.reason = ""
        # The steps really recorded, once known: the first, and the one after the last.
        self.began_at: int | None = None
        self.ended_at: int | None = None
        # Requests to end before `stop`, on which the ranks must agree as well. Another thread
        # appends to them; none is replaced, as the others may have agreed on it.
        self.endings: tuple[Ending, ...] = ()

    @property
    def first_needed(self) -> int:
        """The step before the window, which absorbs the cost of starting up."""
        return max(1, self.start - 1)

    def is_due(self, step: int) -> bool:
        return step >= self.first_needed

    def takes(self, step: int) -> bool:
        """Whether this step, which is due, belongs to it; called by the training thread."""
        if self.verdict is None:
            self.verdict = self._settle()
        if self.verdict and not self.reason and step < self._stop_at(step):
            return True
        if not self.is_recording:
            self.is_over = True
        return False

    def _stop_at(self, step: int) -> int:
        for ending in self.endings:
            if ending.is_true_at(step):
                self.stop = min(self.stop, ending.at)
        return self.stop

    def begun(self, step: int) -> dict[str, Any]:
        """Recording begins, or continues, with this step; returns the fact for the journal."""
        self.is_recording = True
        self.began_at = self.began_at or max(step, self.start)
        return {
            "type": "asked window", "generation": self.generation, "steps": [self.start, self.stop],
            "asked_start": self._asked_start, "by": self.by, "why": self.why,
            "options": self._given,
        }  # fmt: skip

    def end(self, step: int) -> None:
        self.ended_at = step
        self.is_recording = False
        self.is_over = True

    def refuse(self, why: str) -> None:
        self.reason = why
        if not self.is_recording:
            self.is_over = True


class Ending:
    """A request to end a window at a step."""

    def __init__(self, at: int, settle: Callable[[], bool]) -> None:
        self.at, self._settle = at, settle
        self.verdict: bool | None = None

    def is_true_at(self, step: int) -> bool:
        if step < self.at:
            return False
        if self.verdict is None:
            self.verdict = self._settle()
        return self.verdict
