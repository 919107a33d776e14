"""`strobe run --watch`: request a window when steps get slower, but not too often."""

import time
from typing import Any

from strobe.collect.on_demand.requests import Request, ask
from strobe.collect.slowdown.model import StepTimes
from strobe.collect.slowdown.step_times import StepMarks

WATCH = "watch"

# A window doubles the time of some steps and takes megabytes. At this distance in seconds that is
# less than 1%, and at this number per run they fit on any disk. Each kind of reason has its own
# limit.
_APART_S = 60.0
_MOST_WINDOWS = 20


class Watch:
    """Of one rank. Checks the marks when called, on the channel's thread."""

    def __init__(self, recorder: Any) -> None:
        self._recorder = recorder
        self._marks = StepMarks(recorder.journal)
        self._times = StepTimes()

    def look(self) -> None:
        hooks = self._recorder.hooks
        if hooks is None:
            return
        for step, dur_ns, is_slowed in self._marks.new_steps(hooks.steps.has_optimizer):
            if is_slowed:
                self._times.skip()
                continue
            reason = self._times.see(step, dur_ns)
            if reason is not None:
                content = ask(steps=reason.steps, start=reason.start, by=WATCH, why=reason.why)
                self._recorder.channel.ask({**content, "kind": reason.kind})


class Allowance:
    """How often a window may be recorded automatically; used by the rank that leads."""

    def __init__(self) -> None:
        self._last: dict[str, float] = {}
        self._count = 0

    def why_not(self, request: Request) -> str:
        if request.by != WATCH:
            return ""
        now = time.monotonic()
        last = self._last.get(request.kind)
        if self._count >= _MOST_WINDOWS:
            return f"--watch records at most {_MOST_WINDOWS} windows; ignoring: {request.why}"
        if last is not None and now - last < _APART_S:
            return f"a window was recorded less than {_APART_S:.0f} s ago; ignoring: {request.why}"
        self._last[request.kind] = now
        self._count += 1
        return ""
