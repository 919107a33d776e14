"""From which step or epoch to which a training is recorded in full: what all callbacks share.

The whole training is recorded lightly, so that its steps keep their numbers; the stretch asked for
is a window in it. Nothing here raises into training: what goes wrong ends the recording.
"""

import os
from dataclasses import replace
from typing import Any

from strobe.collect.notices import notice
from strobe.collect.on_demand.window import AskedWindow
from strobe.collect.profiler import Profiler
from strobe.errors import UsageError
from strobe.model.option_values import WHICH_STEPS
from strobe.model.options import DEFAULT_WINDOW

# Ends with its epoch, whose number of steps nobody knows before.
_OPEN_END = 2**62


class Stretch:
    """Steps and epochs count from 1, and the last one named is recorded too."""

    def __init__(
        self, output_path: str | os.PathLike[str] | None = None, *, start_step: int | None = None,
        stop_step: int | None = None, start_epoch: int | None = None,
        stop_epoch: int | None = None, **options: Any,
    ) -> None:  # fmt: skip
        self._steps = _bounds("step", start_step, stop_step)
        self._epochs = _bounds("epoch", start_epoch, stop_epoch)
        if self._steps and self._epochs:
            raise UsageError.of("errors/python.steps-and-epochs")
        given: dict[str, Any] = dict(options)
        if output_path is not None:
            given["output_path"] = output_path
        has_choice = any(options.get(name) for name in WHICH_STEPS)
        if has_choice and (self._steps or self._epochs):
            raise UsageError.of("errors/python.range-twice", names=", ".join(WHICH_STEPS))
        is_default = not (has_choice or self._steps or self._epochs)
        if is_default:
            given["steps"] = DEFAULT_WINDOW
        self._profiler = Profiler(**given)
        self._window_options = self._profiler.options
        if self._steps or self._epochs:
            self._profiler.options = replace(self._profiler.options, whole=False, light=True)
        self._asked: AskedWindow | None = None
        self._has_asked = False

    @property
    def profiler(self) -> Profiler:
        return self._profiler

    def training_begins(self) -> None:
        if not self._profiler.is_recording:
            self._profiler.start()

    def training_ends(self) -> None:
        if not self._profiler.is_recording:
            return
        self._profiler.stop()
        self._profiler.finish()
        wanted = self._steps or self._epochs
        if wanted and not self._has_asked:
            what = "step" if self._steps else "epoch"
            self._report(notice(f"no-{what}s-in-range", first=wanted[0], last=wanted[1]))

    def epoch_begins(self, epoch: int) -> None:
        if self._epochs and self._epochs[0] <= epoch <= self._epochs[1] and not self._has_asked:
            self._ask(0, _OPEN_END)

    def epoch_ends(self, epoch: int) -> None:
        if self._epochs and epoch >= self._epochs[1] and self._asked is not None:
            self._end_window()

    def step_begins(self, step: int) -> None:
        """May be called several times for a step, as gradient accumulation makes trainers do."""
        if not self._steps or self._has_asked:
            return
        first, last = self._steps
        # One ahead: the step before a window takes the cost of starting up.
        if first - 1 <= step <= last:
            ahead = max(0, first - step)
            self._ask(ahead, ahead + last - max(first, step) + 1)

    def step_now(self) -> int:
        """The step going on, as the recorder counts them."""
        hooks = self._hooks()
        return hooks.steps.now if hooks is not None else 1

    def _ask(self, ahead: int, behind: int) -> None:
        hooks = self._hooks()
        if hooks is None:
            return
        self._has_asked = True
        now = hooks.steps.now
        self._asked = AskedWindow(
            generation=0, start=now + ahead, stop=now + behind, options=self._window_options,
            by="callback",
        )  # fmt: skip
        hooks.recorder.guarded(hooks.windows.ask_now)(self._asked)

    def _end_window(self) -> None:
        hooks, asked = self._hooks(), self._asked
        self._asked = None
        if hooks is not None and asked is not None:
            hooks.recorder.guarded(hooks.windows.end_now)(asked)

    def _hooks(self) -> Any:
        active = self._profiler.recorder
        return None if active is None or active.is_off else active.hooks

    def _report(self, text: str) -> None:
        active = self._profiler.recorder
        if active is not None:
            active.problem("callback", text)
            active.say(text)


def _bounds(what: str, first: int | None, last: int | None) -> tuple[int, int] | None:
    if first is None and last is None:
        return None
    begin = 1 if first is None else first
    end = begin if last is None else last
    if type(begin) is not int or type(end) is not int or not 1 <= begin <= end:
        raise UsageError.of(f"errors/python.empty-{what}s", first=first, last=last)
    return begin, end
