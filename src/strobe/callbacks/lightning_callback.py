"""For Lightning: `Trainer(callbacks=[LightningCallback(start_step=10, stop_step=20)])`."""

from typing import Any

from lightning.pytorch.callbacks import Callback

from strobe.callbacks.stretch import Stretch


class LightningCallback(Callback):  # type: ignore[misc]
    """Steps are those of `trainer.global_step`, epochs of `trainer.current_epoch`, from 1."""

    def __init__(self, output_path: Any = None, **options: Any) -> None:
        self._stretch = Stretch(output_path, **options)

    @property
    def run_path(self) -> Any:
        return self._stretch.profiler.run_path

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        self._stretch.training_begins()

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        self._stretch.epoch_begins(trainer.current_epoch + 1)

    def on_train_batch_start(
        self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int
    ) -> None:
        self._stretch.step_begins(trainer.global_step + 1)

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        self._stretch.epoch_ends(trainer.current_epoch + 1)

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
        self._stretch.training_ends()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._stretch.training_ends()
