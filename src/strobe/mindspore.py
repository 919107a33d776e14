"""MindSpore's profiler API on top of Strobe: `from strobe.mindspore import Profiler, profile`.

A script changes one import line. Arguments of `mindspore.Profiler`, `mindspore.profiler.profile`,
`DynamicProfilerMonitor` and mindformers' `ProfileMonitor` are taken as they are, in newer and older
spellings. An option that has no meaning here is accepted, and one line says so.
"""

import enum
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from strobe.collect import notices, ranks
from strobe.collect import profiler as own_profiler
from strobe.collect.notices import notice
from strobe.errors import MissingPackage, UsageError
from strobe.model import option_values
from strobe.model.option_values import without_effect
from strobe.model.options import Options

if TYPE_CHECKING:
    from strobe.callbacks.mindspore_callback import (
        DynamicProfilerMonitor as DynamicProfilerMonitor,
    )
    from strobe.callbacks.mindspore_callback import ProfileMonitor as ProfileMonitor
    from strobe.callbacks.mindspore_callback import StopAtEpoch as StopAtEpoch
    from strobe.callbacks.mindspore_callback import StopAtStep as StopAtStep

_CALLBACKS = ("DynamicProfilerMonitor", "ProfileMonitor", "StopAtEpoch", "StopAtStep")
__all__ = [
    *_CALLBACKS, "AicoreMetrics", "ExportType", "HostSystem", "Profiler", "ProfilerActivity",
    "ProfilerLevel", "_ExperimentalConfig", "profile", "schedule", "tensorboard_trace_handler",
]  # fmt: skip

# Where MindSpore writes if nothing else is said.
DEFAULT_OUTPUT = "./data"

# Of a schedule made by mindspore.profiler.schedule.
_SCHEDULE = ("wait", "warmup", "active", "repeat", "skip_first")


class ProfilerLevel(enum.Enum):
    LevelNone, Level0, Level1, Level2 = "LevelNone", "Level0", "Level1", "Level2"


class ProfilerActivity(enum.Enum):
    CPU, GPU, NPU = "CPU", "GPU", "NPU"


class AicoreMetrics(enum.Enum):
    AiCoreNone = "None"
    PipeUtilization = "PipeUtilization"
    ArithmeticUtilization = "ArithmeticUtilization"
    Memory = "Memory"
    MemoryL0 = "MemoryL0"
    MemoryUB = "MemoryUB"
    ResourceConflictRatio = "ResourceConflictRatio"
    L2Cache = "L2Cache"
    MemoryAccess = "MemoryAccess"


class ExportType(enum.Enum):
    Text, Db = "text", "db"


class HostSystem(enum.Enum):
    CPU, MEM, DISK, NETWORK, OSRT = "cpu", "mem", "disk", "network", "osrt"


# The options of an _ExperimentalConfig with MindSpore's defaults: a value that is the default is
# not asked for, and leaves ours as it is.
_EXPERIMENTAL: dict[str, Any] = {
    "profiler_level": ProfilerLevel.Level0, "aic_metrics": AicoreMetrics.AiCoreNone,
    "l2_cache": False, "mstx": False, "data_simplification": True, "export_type": None,
    "mstx_domain_include": None, "mstx_domain_exclude": None, "sys_io": False,
    "sys_interconnection": False, "host_sys": None,
}  # fmt: skip


class _ExperimentalConfig:
    """Further options, by the names of `mindspore.profiler._ExperimentalConfig`."""

    def __init__(self, **given: Any) -> None:
        for name in given:
            if name not in _EXPERIMENTAL:
                raise option_values.unknown(name, _EXPERIMENTAL)
        for name, default in _EXPERIMENTAL.items():
            setattr(self, name, given.get(name, default))


class schedule:  # noqa: N801  MindSpore's name
    """Which steps to record in full: as `mindspore.profiler.schedule`."""

    def __init__(
        self, *, wait: int, active: int, warmup: int = 0, repeat: int = 0, skip_first: int = 0
    ) -> None:
        self.wait, self.active, self.warmup = wait, active, warmup
        self.repeat, self.skip_first = repeat, skip_first

    def __call__(self, step: int) -> bool:
        """Whether a step, counted from 0, is recorded."""
        chosen = (self.wait, self.warmup, self.active, self.repeat, self.skip_first)
        return Options(schedule=chosen).wants_full(step + 1)


class tensorboard_trace_handler:  # noqa: N801  MindSpore's name
    """For `on_trace_ready`: the folder of the run, and whether to analyse it."""

    def __init__(
        self, dir_name: str | None = None, worker_name: str | None = None,
        analyse_flag: bool = True, async_mode: bool = False,
    ) -> None:  # fmt: skip
        self.dir_name, self.analyse_flag, self.async_mode = dir_name, analyse_flag, async_mode

    def __call__(self, profiler: "Profiler") -> None:
        if self.analyse_flag:
            profiler.analyse(mode="async" if self.async_mode else "sync")


class Profiler(own_profiler.Profiler):
    """Records from when it is made, unless `start_profile` is False, to `stop` or `analyse`."""

    def __init__(self, output_path: str | os.PathLike[str] | None = None, **given: Any) -> None:
        handler = given.pop("on_trace_ready", None)
        self._handler = handler if callable(handler) else None
        folder = output_path or getattr(handler, "dir_name", None) or DEFAULT_OUTPUT
        super().__init__(common_folder(folder), **translated(given))
        if self.options.start_profile and not self.is_recording:
            self.start()

    def stop(self) -> None:
        """Then calls what was given as `on_trace_ready`, once."""
        was_recording = self.is_recording
        super().stop()
        handler = self._handler
        if was_recording and handler is not None and self._has_recorded():
            self._handler = None
            try:
                handler(self)
            except Exception as error:
                reason = f"{type(error).__name__}: {error}"
                notices.write(notice("handler-failed", reason=reason))

    def __enter__(self) -> "Profiler":
        if not self.is_recording:
            self.start()
        return self

    def analyse(  # type: ignore[override]
        self, offline_path: Any = None, pretty: bool = False, step_list: Any = None,
        mode: str | None = None, async_mode: bool = False,
    ) -> None:  # fmt: skip
        if offline_path is not None:
            notices.write(notice("to-import", path=offline_path))
            return
        self._handler = None  # the script analyses by itself
        if step_list is not None:
            notices.write(notice("step-list"))
        super().analyse(mode or ("async" if async_mode else None))

    @classmethod
    def offline_analyse(cls, path: Any, *_: Any, **__: Any) -> None:
        notices.write(notice("to-import", path=path))

    def op_analyse(self, op_name: Any, device_id: Any = None) -> None:
        notices.write(notice("operator-times", run=self.run_path or "RUN"))

    def add_metadata(self, key: str, value: str) -> None:
        notices.write(notice("metadata"))

    def add_metadata_json(self, key: str, value: str) -> None:
        self.add_metadata(key, value)


class profile(Profiler):  # noqa: N801  MindSpore's name
    """As `mindspore.profiler.profile`: in a `with` block, or from `start` to `stop`."""

    def __init__(self, activities: Any = None, **given: Any) -> None:
        super().__init__(activities=activities, **given)


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
    given = {**given, **_experimental(given.get("experimental_config"))}
    for name, value in given.items():
        if name == "experimental_config":
            continue
        if value is None and (name == "schedule" or without_effect([name])):
            continue  # as good as not given
        if isinstance(value, enum.Enum):
            value = value.value
        elif name == "schedule" and callable(value):
            value = _schedule(value)
        found[name] = value
    return found


def _experimental(config: Any) -> dict[str, Any]:
    """What a configuration asks for, made by us or by MindSpore, apart from its defaults."""
    if config is None:
        return {}
    values = {name: getattr(config, name, default) for name, default in _EXPERIMENTAL.items()}
    return {
        name: value for name, value in values.items()
        if _plain(value) != _plain(_EXPERIMENTAL[name]) and value not in (None, [])
    }  # fmt: skip


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, enum.Enum) else value


def _schedule(made: Any) -> list[int]:
    try:
        return [int(getattr(made, name)) for name in _SCHEDULE]
    except (AttributeError, TypeError, ValueError):
        raise UsageError.of("errors/python.bad-schedule") from None


def __getattr__(name: str) -> Any:
    if name not in _CALLBACKS:
        raise AttributeError(f"module 'strobe.mindspore' has no attribute {name!r}")
    try:
        from strobe.callbacks import mindspore_callback
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "mindspore":
            raise
        raise MissingPackage.of("errors/python.mindspore-needed", name=name) from None
    return getattr(mindspore_callback, name)


def __dir__() -> list[str]:
    return __all__
