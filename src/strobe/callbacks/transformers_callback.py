"""For transformers: `Trainer(callbacks=[TransformersCallback(start_step=10, stop_step=20)])`."""

import math
from typing import Any

from transformers import TrainerCallback

from strobe.callbacks.stretch import Stretch


class TransformersCallback(TrainerCallback):  # type: ignore[misc]
    """Steps are those of `state.global_step`, epochs of `state.epoch`, from 1."""

    def __init__(self, output_path: Any = None, **options: Any) -> None:
        self._stretch = Stretch(output_path, **options)

    @property
    def run_path(self) -> Any:
        return self._stretch.profiler.run_path

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._stretch.training_begins()

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._stretch.epoch_begins(math.floor(state.epoch or 0) + 1)

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._stretch.step_begins(state.global_step + 1)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._stretch.epoch_ends(math.ceil(state.epoch or 0))

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._stretch.training_ends()
