"""Callbacks that a job's YAML file asks for, added to the training that `strobe run` starts."""

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any

from strobe.collect.notices import notice
from strobe.collect.recorder import Recorder

_MODEL = "mindspore.train.model"
_METHODS = ("train", "fit")
# Of MindSpore or of Strobe: the first callback of this kind in a training is the only one.
_KINDS = ("SummaryCollector", "SummaryMonitor")


class SummaryCallback:
    """Adds a SummaryMonitor to MindSpore's `Model.train` and `Model.fit`."""

    def __init__(self, recorder: Recorder, options: dict[str, Any], file: str) -> None:
        self._recorder, self._options, self._file = recorder, options, file
        self._undo: list[Callable[[], None]] = []
        self._is_added = False
        self._monitor: Any = None
        recorder.on_close.append(self.close)

    def hook_in(self) -> None:
        """MindSpore was imported."""
        model = sys.modules[_MODEL].Model
        for name in _METHODS:
            if hasattr(model, name):
                self._undo.append(self._wrap(model, name))

    def _wrap(self, model: Any, name: str) -> Callable[[], None]:
        original = getattr(model, name)
        signature = inspect.signature(original)

        @functools.wraps(original)
        def call(*given: Any, **more: Any) -> Any:
            given, more = self._recorder.guarded(self._with_monitor)(signature, given, more) or (
                given, more
            )  # fmt: skip
            return original(*given, **more)

        setattr(model, name, call)
        return lambda: setattr(model, name, original)

    def _with_monitor(
        self, signature: inspect.Signature, given: Any, more: Any
    ) -> tuple[Any, Any] | None:
        try:
            bound = signature.bind(*given, **more)
        except TypeError:
            return None  # the script's mistake: MindSpore reports it
        self._is_added = True
        callbacks = bound.arguments.get("callbacks")
        if callbacks is None:
            callbacks = []
        elif not isinstance(callbacks, (list, tuple)):
            callbacks = [callbacks]
        if any(base.__name__ in _KINDS for one in callbacks for base in type(one).__mro__):
            return None  # the script has made its own of the same file
        bound.arguments["callbacks"] = [*callbacks, self._collector()]
        return bound.args, bound.kwargs

    def _collector(self) -> Any:
        if self._monitor is None:
            from strobe.callbacks.summary.monitor import SummaryMonitor

            self._monitor = SummaryMonitor(**self._options)
        return self._monitor

    def close(self) -> None:
        while self._undo:
            self._undo.pop()()
        if not self._is_added and self._recorder.rank is not None:
            self._recorder.warn("summary", notice("summary-not-added", file=self._file))


def add(recorder: Recorder, options: dict[str, Any], file: str) -> None:
    from strobe.collect.start.autostart import when_imported

    made = SummaryCallback(recorder, options, file)
    when_imported(_MODEL, recorder.guarded(made.hook_in))
