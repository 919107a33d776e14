"""Ranks that are threads of this process, each with a real channel in one run, and no training.

A rank makes a step when its test says so; hooks and windows are those of a training in which
nothing but steps happen. What is tested is what the ranks agree on.
"""

import threading
import time
from pathlib import Path
from types import SimpleNamespace

from strobe.collect.on_demand.channel import Channel
from strobe.collect.on_demand.window import AskedWindow
from strobe.collect.steps import StepCount
from strobe.model.options import Options


class PlainWindows:
    """As the real ones: asked at each boundary, on the thread that makes the steps."""

    def __init__(self, steps: StepCount) -> None:
        self._steps = steps
        self.asked: list[AskedWindow] = []
        self.recorded: dict[int, list[int]] = {}
        self._under_way: AskedWindow | None = None
        self.are_written = True

    def ask(self, window: AskedWindow) -> None:
        self.asked.append(window)

    def at_boundary(self) -> None:
        step = self._steps.now
        due = [window for window in self.asked if window.is_due(step)]
        asked = next((window for window in due if window.takes(step)), None)
        if self._under_way is not None and asked is not self._under_way:
            self._under_way.end(step)
            self._under_way = None
        self.asked = [window for window in self.asked if not window.is_over]
        if asked is not None:
            if self._under_way is None:
                asked.begun(step)
                self._under_way = asked
            if step >= asked.start:
                self.recorded.setdefault(asked.generation, []).append(step)


class Rank:
    def __init__(self, run: Path, rank: int, world_size: int, config: Path | None = None) -> None:
        self.steps = StepCount()
        self.windows = PlainWindows(self.steps)
        self.said: list[str] = []
        self.recorder = SimpleNamespace(
            run=run, rank=rank, options=Options(light=True), home=run,
            hooks=SimpleNamespace(steps=self.steps, windows=self.windows),
            say=self.said.append, problem=lambda source, what: None,
        )  # fmt: skip
        self.channel = Channel(self.recorder, world_size, config)  # type: ignore[arg-type]
        self.channel.start()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def train(self, step_s: float) -> None:
        """Steps of that length, on a thread of its own, until it is stopped."""

        def work() -> None:
            while not self._stopped.wait(step_s):
                self.step()

        self._thread = threading.Thread(target=work, daemon=True)
        self._thread.start()

    def step(self) -> None:
        self.steps.said()
        self.windows.at_boundary()

    def stop(self) -> None:
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()
        self.channel.close()


def until(is_so, timeout_s: float = 30.0) -> None:
    """Wait for what must come; a machine under load takes its time."""
    deadline = time.monotonic() + timeout_s
    while not is_so():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.01)
