"""What to record: one declaration shared by Python, the environment, YAML, the CLI and the docs.

Each field of `Options` is an option, and its metadata says the rest. `option_values.py` derives
from it how values are read and checked.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

MEGABYTE = 1_000_000

# By default a window of full recording comes after the warm-up steps.
DEFAULT_WINDOW = (6, 11)

# Files for other tools that can be written after the run; their writers are in show.FORMATS.
EXPORT_FORMATS = ("chrome_timeline.json", "csv", "html", "json", "memory_flow.svg")

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
WITHOUT_EFFECT = {
    "hbm_ddr": "memory of Ascend devices is not measured",
    "pcie": "the traffic on PCIe is not measured",
    "sync_enable": "operators are never made to wait for each other",
    "num_tensor_watch": "no tensor is singled out; profile_memory records every block",
    "enable_cupti": "torch uses CUPTI by itself; profile_device=False turns it off",
    "activities": "the host is always recorded, devices by profile_device",
    "export_type": "every table has CSV and JSON, and formats names further files",
    "mstx": "marks of mstx are not recorded; strobe.scope() marks a stretch of time",
    "mstx_domain_include": "marks of mstx are not recorded",
    "mstx_domain_exclude": "marks of mstx are not recorded",
    "sys_io": "network cards of Ascend servers are not measured",
    "sys_interconnection": "links between Ascend devices are not measured",
    "host_sys": "the host is always sampled; profile_framework says what of it",
    "profile_pipeline": "name the ranks to record in full with profile_rank_ids",
    "on_trace_ready": "the run is written while training goes on; output_path says where",
}


def _option(
    default: Any, kind: str, doc: str, *, aliases: tuple[str, ...] = (),
    choices: tuple[Any, ...] = (), old_values: Mapping[Any, Any] | None = None,
    ways: tuple[str, ...] = EVERY_WAY, flag: str = "", metavar: str = "", needs_full: bool = False,
    least: int | None = None,
) -> Any:  # fmt: skip
    """`old_values`: values of older systems, and ours; `needs_full`: no effect without windows."""
    meta = {
        "kind": kind, "doc": doc, "aliases": aliases, "choices": choices, "ways": ways,
        "old_values": old_values or {}, "flag": flag, "metavar": metavar,
        "needs_full": needs_full, "least": least,
    }  # fmt: skip
    return field(default=default, metadata=meta)


@dataclass(frozen=True)
class Options:
    output_path: str | None = _option(
        None, "path", "Folder of the run; `rank_{id}` at its end is dropped, ranks have their own.",
        aliases=("path", "profile_output"), ways=(PYTHON, ENVIRONMENT, YAML))  # fmt: skip
    start_profile: bool = _option(
        True, "bool", "Given as true: record from when the profiler is made. False: `with` does "
        "not start it, `start()` does.",
        aliases=("start", "init_start_profile"), ways=(PYTHON, ENVIRONMENT, YAML))  # fmt: skip
    light: bool = _option(
        False, "bool", "Record steps and phases only; no window of full recording.")  # fmt: skip
    steps: tuple[int, int] | None = _option(
        None, "pair", "Record steps FIRST:END in full; FIRST is included, END is not, counted "
        "from 1.", metavar="FIRST:END")  # fmt: skip
    every: tuple[int, int] | None = _option(
        None, "pair", "Record COUNT steps in full out of every PERIOD steps: PERIOD:COUNT.",
        metavar="PERIOD:COUNT")  # fmt: skip
    whole: bool = _option(False, "bool", "Record every step in full.")
    schedule: tuple[int, int, int, int, int] | None = _option(
        None, "schedule", "Record ACTIVE steps in full after WAIT and WARMUP steps, REPEAT times "
        "(0: always), the first SKIP_FIRST steps left alone.",
        metavar="WAIT:WARMUP:ACTIVE[:REPEAT[:SKIP_FIRST]]")  # fmt: skip
    ranks: tuple[int, ...] = _option(
        (), "ranks", "Ranks whose steps are recorded in full, e.g. 0,8-15; of all others only "
        "steps and phases. Windows that are asked for while training runs are taken by every rank.",
        aliases=("profile_rank_ids",), metavar="RANK,…")  # fmt: skip
    profiler_level: int = _option(
        1, "choice", "How much a window holds, where no other option says it: 0 names and times of "
        "operators; 1 also shapes, FLOPs and modules; 2 also memory and hardware counters.",
        choices=(0, 1, 2), aliases=("profile_level",), metavar="LEVEL",
        old_values={"LevelNone": 0, "Level0": 0, "Level1": 1, "Level2": 2, -1: 1},
        ways=(*EVERY_WAY, DYNAMIC))  # fmt: skip
    op_time: bool = _option(
        True, "bool", "Record operators: without, no window of full recording is taken."
    )
    record_shapes: bool = _option(
        True, "bool", "Record shapes and types of operator inputs.", flag="--no-shapes",
        needs_full=True)  # fmt: skip
    with_flops: bool = _option(
        True, "bool", "Work out FLOPs of operators from their shapes.", needs_full=True
    )
    modules: bool = _option(
        True, "bool", "Record which module of the model each operator worked for: column `scope`.",
        aliases=("is_show_op_path", "with_modules", "with_scopes"), needs_full=True)  # fmt: skip
    is_detail: bool = _option(
        True, "bool", "Tell single operators apart; without, only their types: no shapes, no "
        "FLOPs, no modules.", needs_full=True)  # fmt: skip
    subgraph: str = _option(
        "all", "choice", "Operators of which pass become events: all, forward or backward.",
        choices=("all", "forward", "backward"), needs_full=True,
        old_values={"Default": "forward", "Gradients": "backward"})  # fmt: skip
    with_stack: bool = _option(
        False, "bool", "Record the Python call stack of operators (costly).",
        aliases=("host_stack", "with_backtrace"), needs_full=True,
        ways=(*EVERY_WAY, DYNAMIC))  # fmt: skip
    profile_memory: bool = _option(
        False, "bool", "Record every allocation with its address.", needs_full=True
    )
    sample_rate: int = _option(
        0, "int", "Measure allocated memory after every N operators (0: never): counter "
        "`cpu memory_bytes`.", least=0, metavar="N", needs_full=True)  # fmt: skip
    profile_communication: bool = _option(
        True, "bool", "Record collectives and the exchange of gradients between ranks.",
        ways=(*EVERY_WAY, DYNAMIC))  # fmt: skip
    parallel_strategy: bool = _option(
        True, "bool", "Record how the ranks share the work (backend, groups, DDP's settings): "
        "`parallel` of each rank in run.json.", ways=(*EVERY_WAY, DYNAMIC))  # fmt: skip
    data_process: bool = _option(
        True, "bool", "Record the input pipeline: waits for data, queues, batches of workers."
    )
    metrics: bool = _option(
        True, "bool", "Record loss, learning rate, gradient norm and samples per second of every "
        "step.")  # fmt: skip
    profile_framework: str | None = _option(
        "all", "choice", "What of the host to sample: all; time (no memory); null for nothing.",
        choices=("all", "time", None), old_values={0: "all", 1: "time", -1: "all"},
        metavar="WHAT", ways=(*EVERY_WAY, DYNAMIC))  # fmt: skip
    hardware_metrics: str | None = _option(
        None, "choice", "Count hardware events of the processor: pipeline (cycles, instructions), "
        "cache, branches, or all; on CUDA, of kernels.", choices=(None, *HARDWARE_METRICS),
        aliases=("aicore_metrics", "aic_metrics"), old_values=_AICORE_METRICS, metavar="GROUP",
        ways=(*EVERY_WAY, DYNAMIC))  # fmt: skip
    l2_cache: bool = _option(
        False, "bool", "Count hits and misses of caches, beside what `hardware_metrics` names."
    )
    profile_device: bool = _option(
        True, "bool", "Record what devices (CUDA, XPU, …) run: kernels, copies.", needs_full=True
    )
    timeline_limit: int = _option(
        500, "int", "End full recording early past so many MB of timeline.", least=1,
        metavar="MB")  # fmt: skip
    sample_stacks: bool = _option(
        True, "bool", "Look now and then at the line that training is at.", flag="--no-samples"
    )
    sample_ms: int = _option(
        500, "int", "Time between two samples of the host's counters.", least=10,
        metavar="MS")  # fmt: skip
    analyse_mode: str | None = _option(
        None, "choice", "When recording has ended, build the tables: sync waits for it, async "
        "does not; null: when the run is first opened.", choices=(None, "sync", "async"),
        old_values={0: "sync", 1: "async", -1: None}, metavar="MODE",
        ways=(*EVERY_WAY, DYNAMIC))  # fmt: skip
    formats: tuple[str, ...] = _option(
        (), "list", f"Files to write into the run after analysis: {', '.join(EXPORT_FORMATS)}.",
        choices=EXPORT_FORMATS, aliases=("format",), metavar="FORMAT,…")  # fmt: skip
    data_simplification: bool = _option(
        False, "bool", "Delete the raw traces of windows once the tables are built.",
        ways=(*EVERY_WAY, DYNAMIC))  # fmt: skip

    dynamic: str | None = _option(
        None, "path", "Folder of a `profiler_config.json`, by which windows can be asked for while "
        "training runs; none is taken by itself.", metavar="DIR")  # fmt: skip
    watch: bool = _option(
        False, "bool", "Take a window when steps get slower than their own noise explains, and "
        "none else.")  # fmt: skip

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
        is_told = self.steps or self.every or self.whole or self.schedule
        waits = (self.dynamic or self.watch) and not is_told
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


# Every option by name, and the option behind each accepted name.
OPTIONS = {option.name: option for option in fields(Options)}
NAMES = {
    name: option.name
    for option in OPTIONS.values()
    for name in (option.name, *option.metadata["aliases"])
}
