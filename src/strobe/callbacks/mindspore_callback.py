"""For MindSpore: `model.train(..., callbacks=[MindSporeCallback(start_step=10, stop_step=20)])`."""

from typing import Any

from mindspore.train import Callback

from strobe.callbacks.stretch import Stretch
from strobe.collect.on_demand.monitor import DynamicProfilerMonitor as Monitor
from strobe.mindspore import translated


class MindSporeCallback(Callback):  # type: ignore[misc]
    """Steps are those of `cur_step_num`, epochs of `cur_epoch_num`; both count from 1."""

    def __init__(self, output_path: Any = None, **options: Any) -> None:
        super().__init__()
        self._stretch = Stretch(output_path, **options)

    @property
    def run_path(self) -> Any:
        return self._stretch.profiler.run_path

    def on_train_begin(self, run_context: Any) -> None:
        self._stretch.training_begins()

    def on_train_epoch_begin(self, run_context: Any) -> None:
        self._stretch.epoch_begins(run_context.original_args().cur_epoch_num)

    def on_train_step_begin(self, run_context: Any) -> None:
        self._stretch.step_begins(run_context.original_args().cur_step_num)

    def on_train_epoch_end(self, run_context: Any) -> None:
        self._stretch.epoch_ends(run_context.original_args().cur_epoch_num)

    def on_train_end(self, run_context: Any) -> None:
        self._stretch.training_ends()


class StopAtStep(MindSporeCallback):
    """Record from one step to another, the last included, as MindSpore's documents write it."""

    def __init__(self, start_step: int, stop_step: int, **options: Any) -> None:
        super().__init__(start_step=start_step, stop_step=stop_step, **options)


class StopAtEpoch(MindSporeCallback):
    """Record from one epoch to another, the last included."""

    def __init__(self, start_epoch: int, stop_epoch: int, **options: Any) -> None:
        super().__init__(start_epoch=start_epoch, stop_epoch=stop_epoch, **options)


class ProfileMonitor(MindSporeCallback):
    """As the callback of mindformers: `ProfileMonitor(start_step=1, stop_step=10)`.

    With `start_profile`, their default, it records from the first step on. Other options count if
    they are asked for: what is not leaves ours as they are."""

    def __init__(
        self, start_step: int = 1, stop_step: int = 10, output_path: Any = None,
        start_profile: bool = True, config: Any = None, **options: Any,
    ) -> None:  # fmt: skip
        asked = {name: value for name, value in options.items() if value}
        asked.pop("data_simplification", None)  # on by default there
        super().__init__(output_path or "./output/profile", stop_step=stop_step,
                         start_step=1 if start_profile else start_step,
                         **translated(asked))  # fmt: skip


class DynamicProfilerMonitor(Callback):  # type: ignore[misc]
    """Takes what MindSpore's own takes: `callbacks=[DynamicProfilerMonitor(cfg_path="./cfg")]`, or
    in a loop of one's own `step()` at the end of each step."""

    def __init__(
        self, cfg_path: Any = None, output_path: Any = "./dyn_profile_data",
        poll_interval: float | None = None, **options: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        self._monitor = Monitor(cfg_path, output_path, poll_interval, **options)

    @property
    def run_path(self) -> Any:
        return self._monitor.run_path

    def step(self) -> None:
        self._monitor.step()

    def on_train_end(self, run_context: Any) -> None:
        """Steps need no word: the recorder sees them."""
        self._monitor.stop()
