"""For accelerate: `AccelerateHook(start_step=10, stop_step=20).attach(model)` before `prepare`."""

from typing import Any

from accelerate.hooks import ModelHook, add_hook_to_module, remove_hook_from_module

from strobe.callbacks.stretch import Stretch


class AccelerateHook(ModelHook):  # type: ignore[misc]
    """Steps are counted by the updates of the optimizer; epochs are said with `epoch()`.

    Recording ends with `close()`, with the `with` block around it, or with the process.
    """

    def __init__(self, output_path: Any = None, **options: Any) -> None:
        self._stretch = Stretch(output_path, **options)
        self._module: Any = None
        self._epoch = 0

    @property
    def run_path(self) -> Any:
        return self._stretch.profiler.run_path

    def attach(self, model: Any) -> Any:
        """The model itself, with this hook around its forward pass."""
        self._module = model
        self._stretch.training_begins()
        return add_hook_to_module(model, self, append=True)

    def pre_forward(self, module: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        if module.training:
            self._stretch.step_begins(self._stretch.step_now())
        return args, kwargs

    def epoch(self) -> None:
        """Another epoch begins here, and the one before has ended."""
        if self._epoch:
            self._stretch.epoch_ends(self._epoch)
        self._epoch += 1
        self._stretch.epoch_begins(self._epoch)

    def close(self) -> None:
        if self._epoch:
            self._stretch.epoch_ends(self._epoch)
        self._stretch.training_ends()
        if self._module is not None:
            remove_hook_from_module(self._module)
            self._module = None

    def __enter__(self) -> "AccelerateHook":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
