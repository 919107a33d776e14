"""For a loop written by hand: `with Loop(start_step=6, stop_step=10) as loop: ...`."""

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from strobe.callbacks.stretch import Stretch

Batch = TypeVar("Batch")


class Loop:
    """Goes through the batches of each epoch, and records the steps or epochs asked for in full.

    with Loop(output_path="data", start_epoch=2, stop_epoch=2) as loop:
        for epoch in range(3):
            for batch in loop.epoch(batches):
                train_on(batch)
    """

    def __init__(self, output_path: Any = None, **options: Any) -> None:
        self._stretch = Stretch(output_path, **options)
        self._epochs = 0

    @property
    def run_path(self) -> Any:
        return self._stretch.profiler.run_path

    def __enter__(self) -> "Loop":
        self._stretch.training_begins()
        return self

    def __exit__(self, *_: object) -> None:
        self._stretch.training_ends()

    def epoch(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        self._epochs += 1
        self._stretch.epoch_begins(self._epochs)
        self._stretch.step_begins(self._stretch.step_now())
        for batch in batches:
            yield batch
            self._stretch.step_begins(self._stretch.step_now())
        self._stretch.epoch_ends(self._epochs)
