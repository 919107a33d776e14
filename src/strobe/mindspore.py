"""The words that MindSpore scripts have already: `from strobe.mindspore import Profiler`.

One import line of a script changes; what it gives to `mindspore.Profiler` and to
`mindspore.profiler.DynamicProfilerMonitor` is taken as it is, in their newer words and older ones.
What asks for hardware that is not there, or has another way here, is said once.
"""

import enum
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from strobe.collect import profiler as own_profiler
from strobe.collect import ranks
from strobe.collect.profiler import _say
from strobe.errors import MissingPackage, UsageError
from strobe.model.option_values import without_effect

if TYPE_CHECKING:
    from strobe.callbacks.mindspore_callback import (
        DynamicProfilerMonitor as DynamicProfilerMonitor,
    )
    from strobe.callbacks.mindspore_callback import StopAtEpoch as StopAtEpoch
    from strobe.callbacks.mindspore_callback import StopAtStep as StopAtStep

_CALLBACKS = ("DynamicProfilerMonitor", "StopAtEpoch", "StopAtStep")
__all__ = [*_CALLBACKS, "Profiler"]

# Where MindSpore writes if nothing else is said.
DEFAULT_OUTPUT = "./data"

# Of a schedule made by mindspore.profiler.schedule.
_SCHEDULE = ("wait", "warmup", "active", "repeat", "skip_first")


class Profiler(own_profiler.Profiler):
    """Records from when it is made, unless `start_profile` is False, to `stop` or `analyse`."""

    def __init__(self, output_path: str | os.PathLike[str] = DEFAULT_OUTPUT, **given: Any) -> None:
        super().__init__(common_folder(output_path), **translated(given))
        if self.options.start_profile and not self.is_recording:
            self.start()

    def __enter__(self) -> "Profiler":
        if not self.is_recording:
            self.start()
        return self

    def analyse(  # type: ignore[override]
        self, offline_path: Any = None, pretty: bool = False, step_list: Any = None,
        mode: str | None = None,
    ) -> None:  # fmt: skip
        if offline_path is not None:
            _say(f"to read what MindSpore's own profiler wrote: strobe import {offline_path}")
            return
        if step_list is not None:
            _say("step_list has no effect: the tables have every step, and can be asked for some")
        super().analyse(mode)

    @classmethod
    def offline_analyse(cls, path: Any, *_: Any, **__: Any) -> None:
        _say(f"to read what MindSpore's own profiler wrote: strobe import {path}")

    def op_analyse(self, op_name: Any, device_id: Any = None) -> None:
        _say(f"times of operators: strobe show {self.run_path or 'RUN'} operators")

    def add_metadata(self, key: str, value: str) -> None:
        _say("add_metadata has no effect: name the run's folder after what it is")

    def add_metadata_json(self, key: str, value: str) -> None:
        self.add_metadata(key, value)


def common_folder(path: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """MindSpore's documents give each rank a folder of its own, `rank_3` at the end of a path.

    Here the ranks of a job share one run, which has such folders itself."""
    place = ranks.of_this_process()
    is_one_of_many = place.rank is not None and place.world_size != 1
    folder, name = os.path.split(os.fspath(path).rstrip("/"))
    return (folder or ".") if is_one_of_many and name == f"rank_{place.rank}" else path


def translated(given: Mapping[str, Any]) -> dict[str, Any]:
    """What a script gives to MindSpore's profiler, in words that the options know."""
    found = {}
    for name, value in given.items():
        if value is None and (name == "schedule" or without_effect([name])):
            continue  # as good as not given
        if isinstance(value, enum.Enum):
            value = value.value
        elif name == "schedule" and callable(value):
            value = _schedule(value)
        found[name] = value
    return found


def _schedule(made: Any) -> list[int]:
    try:
        return [int(getattr(made, name)) for name in _SCHEDULE]
    except (AttributeError, TypeError, ValueError):
        raise UsageError(
            "this schedule cannot be read: it was not made by mindspore.profiler.schedule",
            hint="give strobe.schedule(wait=1, warmup=1, active=5)",
        ) from None


def __getattr__(name: str) -> Any:
    if name not in _CALLBACKS:
        raise AttributeError(f"module 'strobe.mindspore' has no attribute {name!r}")
    try:
        from strobe.callbacks import mindspore_callback
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "mindspore":
            raise
        raise MissingPackage(
            f"strobe.mindspore.{name} needs the package mindspore", hint="pip install mindspore"
        ) from None
    return getattr(mindspore_callback, name)


def __dir__() -> list[str]:
    return __all__
