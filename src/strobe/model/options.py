"""What to record: one declaration shared by Python, the environment, YAML, the CLI and the docs.

Each field of `Options` is an option; its metadata describes its values, and `option_values.py`
reads and checks them. What each option does is in messages/catalogue/options.toml.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from strobe.messages import Message, message

MEGABYTE = 1_000_000

# By default a window of full recording comes after the warm-up steps.
DEFAULT_WINDOW = (6, 11)

# Files for other tools that can be written after the run; their writers are in show.FORMATS.
EXPORT_FORMATS = ("chrome_timeline.json", "csv", "html", "json", "memory_flow.svg",
                  "mindspore_summary", "tensorboard")  # fmt: skip

# Groups of hardware counters. The numbers and names are those of MindSpore's aicore_metrics.
HARDWARE_METRICS = ("pipeline", "cache", "branches", "all")
_AICORE_METRICS = {
    -1: None, 0: "pipeline", 1: "pipeline", 2: "cache", 3: "cache", 4: "branches", 5: "cache",
    6: "cache", 7: "cache", "AiCoreNone": None, "None": None, "PipeUtilization": "pipeline",
    "ArithmeticUtilization": "pipeline", "Memory": "cache", "MemoryL0": "cache",
    "MemoryUB": "cache", "MemoryAccess": "cache", "L2Cache": "cache",
    "ResourceConflictRatio": "branches",
}  # fmt: skip

# Ways in which an option can be given. "dynamic" is profiler_config.json of a running training.
PYTHON, ENVIRONMENT, YAML, CLI, DYNAMIC = "Python", "environment", "YAML", "CLI", "dynamic"
EVERY_WAY = (PYTHON, ENVIRONMENT, YAML, CLI)

# Options of older systems for what we cannot measure: accepted, with one warning.
WITHOUT_EFFECT = (
    "hbm_ddr", "pcie", "sync_enable", "num_tensor_watch", "enable_cupti", "activities",
    "export_type", "mstx", "mstx_domain_include", "mstx_domain_exclude", "sys_io",
    "sys_interconnection", "host_sys", "profile_pipeline", "on_trace_ready",
)  # fmt: skip


def _option(
    default: Any, kind: str, *, aliases: tuple[str, ...] = (),
    choices: tuple[Any, ...] = (), old_values: Mapping[Any, Any] | None = None,
    ways: tuple[str, ...] = EVERY_WAY, flag: str = "", metavar: str = "", needs_full: bool = False,
    least: int | None = None,
) -> Any:  # fmt: skip
    """`old_values`: values of older systems, and ours; `needs_full`: no effect without windows."""
    meta = {
        "kind": kind, "aliases": aliases, "choices": choices, "ways": ways,
        "old_values": old_values or {}, "flag": flag, "metavar": metavar,
        "needs_full": needs_full, "least": least,
    }  # fmt: skip
    return field(default=default, metadata=meta)


@dataclass(frozen=True)
class Options:
    output_path: str | None = _option(
        None, "path", aliases=("path", "profile_output"), ways=(PYTHON, ENVIRONMENT, YAML)
    )
    start_profile: bool = _option(
        True, "bool", aliases=("start", "init_start_profile"), ways=(PYTHON, ENVIRONMENT, YAML)
    )
    light: bool = _option(False, "bool")
    steps: tuple[int, int] | None = _option(None, "pair", metavar="FIRST:END")
    every: tuple[int, int] | None = _option(None, "pair", metavar="PERIOD:COUNT")
    whole: bool = _option(False, "bool")
    schedule: tuple[int, int, int, int, int] | None = _option(
        None, "schedule", metavar="WAIT:WARMUP:ACTIVE[:REPEAT[:SKIP_FIRST]]"
    )
    ranks: tuple[int, ...] = _option((), "ranks", aliases=("profile_rank_ids",), metavar="RANK,…")
    profiler_level: int = _option(
        1,
        "choice",
        choices=(0, 1, 2),
        aliases=("profile_level",),
        metavar="LEVEL",
        old_values={"LevelNone": 0, "Level0": 0, "Level1": 1, "Level2": 2, -1: 1},
        ways=(*EVERY_WAY, DYNAMIC),
    )
    op_time: bool = _option(True, "bool")
    record_shapes: bool = _option(True, "bool", flag="--no-shapes", needs_full=True)
    with_flops: bool = _option(True, "bool", needs_full=True)
    modules: bool = _option(
        True, "bool", aliases=("is_show_op_path", "with_modules", "with_scopes"), needs_full=True
    )
    is_detail: bool = _option(True, "bool", needs_full=True)
    subgraph: str = _option(
        "all",
        "choice",
        choices=("all", "forward", "backward"),
        needs_full=True,
        old_values={"Default": "forward", "Gradients": "backward"},
    )
    with_stack: bool = _option(
        False,
        "bool",
        aliases=("host_stack", "with_backtrace"),
        needs_full=True,
        ways=(*EVERY_WAY, DYNAMIC),
    )
    profile_memory: bool = _option(False, "bool", needs_full=True)
    sample_rate: int = _option(0, "int", least=0, metavar="N", needs_full=True)
    profile_communication: bool = _option(True, "bool", ways=(*EVERY_WAY, DYNAMIC))
    parallel_strategy: bool = _option(True, "bool", ways=(*EVERY_WAY, DYNAMIC))
    data_process: bool = _option(True, "bool")
    metrics: bool = _option(True, "bool")
    profile_framework: str | None = _option(
        "all",
        "choice",
        choices=("all", "time", None),
        old_values={0: "all", 1: "time", -1: "all"},
        metavar="WHAT",
        ways=(*EVERY_WAY, DYNAMIC),
    )
    hardware_metrics: str | None = _option(
        None,
        "choice",
        choices=(None, *HARDWARE_METRICS),
        aliases=("aicore_metrics", "aic_metrics"),
        old_values=_AICORE_METRICS,
        metavar="GROUP",
        ways=(*EVERY_WAY, DYNAMIC),
    )
    l2_cache: bool = _option(False, "bool")
    profile_device: bool = _option(True, "bool", needs_full=True)
    timeline_limit: int = _option(500, "int", least=1, metavar="MB")
    sample_stacks: bool = _option(True, "bool", flag="--no-samples")
    sample_ms: int = _option(500, "int", least=10, metavar="MS")
    analyse_mode: str | None = _option(
        None,
        "choice",
        choices=(None, "sync", "async"),
        old_values={0: "sync", 1: "async", -1: None},
        metavar="MODE",
        ways=(*EVERY_WAY, DYNAMIC),
    )
    formats: tuple[str, ...] = _option(
        (), "list", choices=EXPORT_FORMATS, aliases=("format",), metavar="FORMAT,…"
    )
    data_simplification: bool = _option(False, "bool", ways=(*EVERY_WAY, DYNAMIC))

    dynamic: str | None = _option(None, "path", metavar="DIR")
    watch: bool = _option(False, "bool")

    def __post_init__(self) -> None:
        from strobe.model import option_values

        option_values.check(self)

    def wants_full(self, step: int, rank: int = 0) -> bool:
        """Whether to record this step (counted from 1) in full."""
        if not self.takes_windows or (self.ranks and rank not in self.ranks):
            return False
        if self.whole:
            return True
        if self.every:
            period, count = self.every
            # The last steps of each period, so that the first window is past warm-up.
            return (step - 1) % period >= period - count
        if self.schedule:
            return _is_active(step, self.schedule)
        first, end = self.steps or DEFAULT_WINDOW
        return first <= step < end

    def wants_no_more(self, step: int) -> bool:
        """Whether neither this step nor any later one is to be recorded in full."""
        is_once = not (self.whole or self.every or self.schedule)
        return not self.takes_windows or (is_once and step >= (self.steps or DEFAULT_WINDOW)[1])

    @property
    def takes_windows(self) -> bool:
        """Whether any window is recorded without being requested while training runs."""
        has_steps = self.steps or self.every or self.whole or self.schedule
        waits = (self.dynamic or self.watch) and not has_steps
        return self.op_time and not self.light and not waits

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Options":
        """From user input with any accepted name; raises UsageError with the nearest name."""
        from strobe.model import option_values

        return cls(**option_values.read(data))

    @classmethod
    def from_stored(cls, data: Mapping[str, Any]) -> "Options":
        """From the output of `to_json`: every option has a value that was checked before."""
        from strobe.model import option_values

        return cls(**{name: option_values.one(name, value) for name, value in data.items()})


def _is_active(step: int, schedule: tuple[int, int, int, int, int]) -> bool:
    wait, warmup, active, repeat, skip_first = schedule
    since = step - 1 - skip_first
    if since < 0:
        return False
    cycle, place = divmod(since, wait + warmup + active)
    return place >= wait + warmup and (repeat == 0 or cycle < repeat)


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0
) -> tuple[int, int, int, int, int]:
    """For `Profiler(schedule=...)`: the steps to record in full, in cycles."""
    return (wait, warmup, active, repeat, skip_first)


def doc(name: str) -> Message:
    """What an option does, as a sentence."""
    return message(f"options.{name}", formats=", ".join(EXPORT_FORMATS))


# Every option by name, and the option behind each accepted name.
OPTIONS = {option.name: option for option in fields(Options)}
NAMES = {
    name: option.name
    for option in OPTIONS.values()
    for name in (option.name, *option.metadata["aliases"])
}
