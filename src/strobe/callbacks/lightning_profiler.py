"""For Lightning: `Trainer(profiler=LightningProfiler(output_path="data"))`.

The trainer's actions (its hooks, its strategy's calls) become scopes on the timeline.
"""

from typing import Any

from lightning.pytorch.profilers import Profiler

from strobe.callbacks.stretch import Stretch
from strobe.collect.scope import scope

_EPOCH, _BATCH = "run_training_epoch", "run_training_batch"


class LightningProfiler(Profiler):  # type: ignore[misc]
    def __init__(self, output_path: Any = None, **options: Any) -> None:
        self._stretch = Stretch(output_path, **options)
        self._epochs = 0
        self._open: dict[str, list[scope]] = {}
        super().__init__()

    @property
    def run_path(self) -> Any:
        return self._stretch.profiler.run_path

    def setup(self, stage: str, local_rank: int | None = None, log_dir: str | None = None) -> None:
        super().setup(stage, local_rank, log_dir)
        if stage == "fit":
            self._stretch.training_begins()

    def start(self, action_name: str) -> None:
        if action_name == _EPOCH:
            self._epochs += 1
            self._stretch.epoch_begins(self._epochs)
        elif action_name == _BATCH:
            self._stretch.step_begins(self._stretch.step_now())
        opened = scope(action_name)
        opened.__enter__()
        self._open.setdefault(action_name, []).append(opened)

    def stop(self, action_name: str) -> None:
        opened = self._open.get(action_name)
        if opened:
            opened.pop().__exit__()
        if action_name == _EPOCH:
            self._stretch.epoch_ends(self._epochs)

    def summary(self) -> str:
        return f"recorded by Strobe: strobe show {self.run_path}" if self.run_path else ""

    def teardown(self, stage: str | None) -> None:
        if stage == "fit":
            self._stretch.training_ends()
        super().teardown(stage)
