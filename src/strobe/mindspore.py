"""MindSpore's profiler API on top of Strobe: `from strobe.mindspore import Profiler, profile`.

A script changes one import line. Arguments of `mindspore.Profiler`, `mindspore.profiler.profile`,
`DynamicProfilerMonitor` and mindformers' `ProfileMonitor` are taken as they are, in newer and older
spellings. An option that has no meaning here is accepted, and one line says so.
"""

import enum
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from strobe.collect import analysis, notices, ranks, recorder
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
    from strobe.callbacks.summary.collector import SummaryCollector as SummaryCollector
    from strobe.callbacks.summary.monitor import SummaryMonitor as SummaryMonitor
    from strobe.callbacks.summary.record import SummaryRecord as SummaryRecord

_CALLBACKS = ("DynamicProfilerMonitor", "ProfileMonitor", "StopAtEpoch", "StopAtStep")
# Work without MindSpore, and are its callbacks where it is imported.
_SUMMARIES = {
    "SummaryCollector": "collector", "SummaryMonitor": "monitor", "SummaryRecord": "record",
}  # fmt: skip
__all__ = [
    *_CALLBACKS, *_SUMMARIES, "AicoreMetrics", "ExportType", "HostSystem", "Profiler",
    "ProfilerActivity", "ProfilerLevel", "_ExperimentalConfig", "analyse", "profile", "schedule",
    "tensorboard_trace_handler",
]  # fmt: skip

# Where MindSpore writes if nothing else is said.
DEFAULT_OUTPUT = "./data"

# Processes that nobody waits for: Python warns about one that is forgotten while it runs.
_background: "list[subprocess.Popen[bytes]]" = []

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
        self._metadata: dict[str, Any] = {}  # until there is a recording to add it to
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

    def start(self) -> None:
        super().start()
        for key, value in self._metadata.items():
            self._add(key, value)
        self._metadata = {}

    def analyse(  # type: ignore[override]
        self, offline_path: Any = None, pretty: bool = False, step_list: Any = None,
        mode: str | None = None, async_mode: bool = False,
    ) -> None:  # fmt: skip
        mode = mode or ("async" if async_mode else None)
        if step_list is not None:
            _print("step-list")
        if offline_path is not None:
            _import_output(offline_path, mode or "sync")
            return
        self._handler = None  # the script analyses by itself
        super().analyse(mode)

    @classmethod
    def offline_analyse(
        cls, path: Any, pretty: bool = False, step_list: Any = None,
        data_simplification: bool = True,
    ) -> None:  # fmt: skip
        """Import what MindSpore's own profiler wrote, into a new run."""
        analyse(path, pretty=pretty, step_list=step_list)

    def op_analyse(self, op_name: Any, device_id: Any = None) -> str:
        """Calls and times of operators by their input shapes, as JSON in MindSpore's words.

        `op_name` is a name or type, or a list of them; `device_id` the number of a rank (default:
        that of this process).
        """
        names = [op_name] if isinstance(op_name, str) else op_name
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            _print("operator-names", given=repr(op_name))
            return "{}"
        if device_id is not None and not isinstance(device_id, int):
            _print("operator-rank", given=repr(device_id))
            return "{}"
        active = self.recorder or recorder.current
        if active is None or active.rank is None:
            _print("operators-without-steps")
            return "{}"
        rank = active.rank if device_id is None else device_id
        return _operator_times(active.run, names, rank)

    def add_metadata(self, key: str, value: str) -> None:
        """Keep a text with the run: a row of the table `lineage`."""
        if isinstance(key, str) and isinstance(value, str):
            self._add(key, value)
        else:
            _print("metadata-type", key=repr(key))

    def add_metadata_json(self, key: str, value: str) -> None:
        """The same for any value, as a JSON text."""
        try:
            self._add(str(key), json.loads(value))
        except (TypeError, ValueError) as error:
            _print("metadata-json", key=repr(key), reason=error)

    def _add(self, key: str, value: Any) -> None:
        active = self.recorder or recorder.current
        if active is None:
            self._metadata[key] = value
        elif active.is_off:
            _print("metadata-late", key=repr(key))
        else:
            active.journal.fact(type="metadata", key=key, value=value)


class profile(Profiler):  # noqa: N801  MindSpore's name
    """As `mindspore.profiler.profile`: in a `with` block, or from `start` to `stop`."""

    def __init__(self, activities: Any = None, **given: Any) -> None:
        super().__init__(activities=activities, **given)


def analyse(
    profiler_path: Any, max_process_number: Any = None, pretty: bool = False,
    step_list: Any = None, data_simplification: bool = True,
) -> None:  # fmt: skip
    """As `mindspore.profiler.profiler.analyse`: import what MindSpore's own profiler wrote."""
    if step_list is not None:
        _print("step-list")
    _import_output(profiler_path, "sync")


def _import_output(path: Any, mode: str) -> None:
    """In another process: reading traces is no work for the one that trains."""
    from strobe.model.new_run import imported_name, new_run_folder

    if mode not in analysis.MODES:
        raise UsageError.of(
            "errors/python.unknown-mode", mode=repr(mode), known=", ".join(analysis.MODES)
        )
    run = new_run_folder(None, imported_name(Path(path)))
    words = ["import", str(path), "-o", str(run), "-q"]
    if mode == "sync":
        done = _command(words)
        if done.returncode:
            notices.write(done.stderr.strip())
        else:
            _print("imported", path=path, run=run)
        return
    log = run.with_name(f"{run.name}.log")
    run.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "strobe", *words], env=analysis.command_environment(),
            stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
        )  # fmt: skip
    _background.append(process)
    _print("importing", path=path, log=log, run=run)


# The time of an operator is that of its kernels, if it launched any.
_OPERATORS = """
    SELECT name, type, coalesce(device, 'cpu') AS side, input_shapes, sum(calls) AS calls,
           sum(coalesce(device_ns, total_ns)) / 1000 AS total_us
    FROM operators WHERE rank = {rank} AND (name IN ({names}) OR type IN ({names}))
    GROUP BY ALL ORDER BY total_us DESC
"""


def _operator_times(run: Path, names: list[str], rank: int) -> str:
    """As JSON: by name, then by input shapes."""
    quoted = ", ".join("'" + name.replace("'", "''") + "'" for name in names)
    query = _OPERATORS.format(rank=rank, names=quoted)
    done = _command(["sql", str(run), query, "--json", "--top", "0"])
    answer = json.loads(done.stdout or "{}")
    if not answer.get("ok"):
        notices.write(f"op_analyse: {answer.get('error') or done.stderr.strip()}")
    found: dict[str, Any] = {}
    for name in names:
        rows = [row[2:] for row in answer.get("rows", []) if name in row[:2]]
        if rows:
            found[name] = [_of_shape(*row) for row in rows]
        elif answer.get("ok"):
            _print("operator-unknown", name=repr(name), run=run)
    return json.dumps({**found, "device_id": rank})


def _of_shape(side: str, shapes: str | None, calls: int, total_us: float) -> dict[str, Any]:
    return {
        "op_side": side.partition(":")[0], "input_shape": shapes or "", "op_occurrences": calls,
        "op_total_time(us)": round(total_us, 4), "op_avg_time(us)": round(total_us / calls, 4),
    }  # fmt: skip


def _print(id: str, **values: Any) -> None:
    notices.write(notice(id, **values))


def _command(words: list[str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "strobe", *words], env=analysis.command_environment(),
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip


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
    if name in _SUMMARIES:
        home = f"strobe.callbacks.summary.{_SUMMARIES[name]}"
        return getattr(importlib.import_module(home), name)
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
