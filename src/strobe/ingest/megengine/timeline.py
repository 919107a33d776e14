"""The timeline of MegEngine's Profiler: `<pid>.chrome_timeline.json`, of any version.

Three lanes: `interpreter` (`channel` before 1.6), the Python thread that dispatches operators;
`worker`, which executes them; and a thread for each device. An operator of ours is one that the
worker executes, with its shapes and types from the tensors it takes and gives; its kernels are
those with its number. A block of the interpreter outside of backward and optimizer is a module, as
far as can be told: MegEngine writes modules, functions (with_scopes) and scopes of a user alike.
Blocks of the worker repeat those of the interpreter, and are annotations.

Left out: arrows between tensors (what they join is in the shapes), Python backtraces, and two
counters that are wrong: train_time_ratio counts every step twice, and gpu_usgae_ratio (sic) was
12 % in a file in which kernels ran for 33 % of the time.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from strobe.ingest import packed
from strobe.ingest.classify import KIND
from strobe.ingest.codes import Array, mapped
from strobe.ingest.megengine import arguments
from strobe.ingest.megengine import names as names_of
from strobe.ingest.megengine import steps as megengine_steps
from strobe.ingest.megengine.events import BEGIN, END, INSTANT, Columns, Reader
from strobe.ingest.megengine.lanes import Lanes, lanes
from strobe.ingest.megengine.pairs import Pairs, paired
from strobe.ingest.problems import Problems
from strobe.ingest.sources import Source
from strobe.ingest.spans import Spans, Vocabulary
from strobe.ingest.trace import Flows, Samples, Trace

_TAIL_BYTES = 4096
_MOST_PACKED_BYTES, _MOST_TEXT_BYTES = 64 << 20, 2 << 30
_BEGAN = re.compile(rb'"metadata"\s*:\s*\{[^{}]*"localTime"\s*:\s*"?(\d{1,19})"?')
_OLD_BEGAN = re.compile(rb'"name"\s*:\s*"Metadata"[^{}]*\{\s*"localTime"\s*:\s*"?([\d.]{1,24})"?')
_PID = re.compile(rb'"pid"\s*:\s*(\d{1,15})(?=\s*[,}])')
_LONGEST_PID, _MOST_RANKS = 40, 4096
_WAITS = frozenset(("TensorWaitProp", "GetValue"))
_COMMANDS = frozenset(
    ("Put", "Del", "Drop", "ReGen", "RecFree", "AutoEvict", "StartProfile", "StopProfile",
     "UnknownCommand", "Memcpy")
)  # fmt: skip
_TENSORS = frozenset(("Input", "Output"))
_CALL_OF_CUDA = re.compile(r"cu(?:da)?[A-Z]\w+")
# What each counter becomes, and by how much it is multiplied; the unit ends the name.
_COUNTERS = {
    "nr_op_pending": ("pending_operators", 1),
    "nr_alive_tensor": ("alive_tensors", 1),
    "nr_redunant_tensor": ("redundant_tensors_total", 1),
    "nr_redundant_tensor": ("redundant_tensors_total", 1),
    "nr_shape_infer_failure": ("shape_infer_failures_total", 1),
    "nr_exception": ("exceptions_total", 1),
    "dtr_overhead_us": ("dtr_overhead_ns", 1e3),
    "device_ahead_ms": ("device_ahead_ns", 1e6),
}
# They agree neither with the kernels and steps of their file nor with each other.
_WRONG_COUNTERS = ("gpu_usgae_ratio", "gpu_usage_ratio", "train_time_ratio")
_MEMORY = "_alloc_mem"


def began_unix_ns(path: Path) -> int | None:
    """When the profiler began; None where the file does not say, or only at its distant end."""
    old = _OLD_BEGAN.search(packed.beginning(path, _TAIL_BYTES))
    if old and old.group(1).count(b".") < 2 and old.group(1) != b".":
        return int(float(old.group(1)) * 1000)
    found = _BEGAN.findall(_tail(path))
    return int(found[-1]) if found else None


def _tail(path: Path) -> bytes:
    if not packed.is_packed(path):
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
            return file.read(_TAIL_BYTES)
    tail, size = b"", 0
    if path.stat().st_size < _MOST_PACKED_BYTES:
        for block in packed.blocks(path, lambda _: None):
            tail, size = (tail + block)[-_TAIL_BYTES:], size + len(block)
            if size > _MOST_TEXT_BYTES:
                return b""
    return tail


def read(source: Source, words: Vocabulary) -> Trace:
    pids = merged_pids(source.path) if source.part is not None else []
    reader = Reader(source.path, pids[source.part] if source.part is not None else None)
    columns = reader.read()
    trace = Trace(words, reader.file.problems)
    # Merging leaves one zero for all ranks, though not when it was.
    began = 0 if pids else began_unix_ns(source.path)
    timeline = _Timeline(columns, words, source, trace.said)
    trace.spans += timeline.spans()
    trace.flows += timeline.dispatches()
    trace.counters += _counters(columns, words, trace.said, source.path.name)
    trace.steps = megengine_steps.steps(timeline.blocks())
    for problem in trace.steps.problems if trace.steps else []:
        trace.said.add(source.path.name, problem)
    _describe(trace, columns, bool(pids), source.path.name)
    trace.is_unix = began is not None
    if began is not None:
        trace.shift(began)
    return trace


def merged_pids(path: Path) -> list[int]:
    """The processes whose files were merged into this one, in the order of their ranks."""
    found: set[int] = set()
    rest = b""
    for block in packed.blocks(path, lambda _: None):
        text = rest + block
        found.update(map(int, _PID.findall(text)))
        rest = text[-_LONGEST_PID:]
        if len(found) > _MOST_RANKS:
            break
    return sorted(found)[:_MOST_RANKS]


def _describe(trace: Trace, columns: Columns, is_merged: bool, file: str) -> None:
    processes = dict.fromkeys(pid for pid, _ in columns.threads)
    trace.about.pid = next(iter(processes), 0) if len(processes) == 1 else 0
    trace.about.frameworks = {"megengine": ""}
    if is_merged:
        trace.said.add(file, "merging cut its times to whole microseconds: import the files that"
                       " were merged into it, if they are still there")  # fmt: skip


@dataclass
class _Timeline:
    columns: Columns
    words: Vocabulary
    source: Source
    said: Problems

    def __post_init__(self) -> None:
        spans = self.columns.spans
        is_edge = (spans["phase"] == BEGIN) | (spans["phase"] == END)
        rows = np.flatnonzero(is_edge)
        pairs = paired(spans["thread"][rows], spans["ts_ns"][rows], spans["phase"][rows] == BEGIN)
        self.pairs: Pairs = pairs
        self.begin = rows[pairs.begin] if len(rows) else rows
        end = rows[np.where(pairs.end >= 0, pairs.end, pairs.last)] if len(rows) else rows
        # Arguments stand on the end; those of a span without one on its begin.
        self.told = np.where(pairs.end >= 0, end, self.begin)
        self.ts_ns = spans["ts_ns"][self.begin]
        self.dur_ns = np.maximum(spans["ts_ns"][end] - self.ts_ns, 0)
        self.name = spans["name"][self.begin]
        self.thread = spans["thread"][self.begin]
        self._say_what_is_open(pairs)
        self.lanes: Lanes = lanes(self.columns, self.words)
        self.on_device = self.lanes.is_device[self.thread]
        self.launch = arguments.launches(self.columns, self.ts_ns, self.dur_ns, self.thread)
        self.kind = self._kinds()
        self.path = self._paths()

    def arg(self, name: str) -> Array:
        return self.columns.spans[name][self.told]

    def spans(self) -> list[Spans]:
        kept = np.flatnonzero(self.kind >= 0)
        names = mapped(self.name, [self.words.names[name] for name in self.columns.names])
        track = self.lanes.tracks[self.thread]
        whole = Spans(
            self.ts_ns, self.dur_ns, self.kind.astype(np.int32), names, track, self._arguments()
        )
        return [whole.take(kept), self._instants()]

    def blocks(self) -> megengine_steps.Blocks:
        """What the steps are found from: the outermost blocks of the interpreter, and its marks."""
        spans = self.columns.spans
        is_main = self.lanes.is_main[self.thread]
        is_outer = is_main & ((self.pairs.parent < 0) | (self.kind == KIND["module"]))
        above = self.pairs.parent
        is_outer &= ~((above >= 0) & (self.kind[above] == KIND["module"]))
        stops = (spans["phase"] == INSTANT) & self.lanes.is_main[spans["thread"]]
        stops &= spans["name"] == self._code("StopStep")
        return megengine_steps.Blocks(
            self.ts_ns[is_outer], self.dur_ns[is_outer],
            [self.columns.names[code] for code in self.name[is_outer].tolist()],
            self.kind[is_outer] == KIND["module"], spans["ts_ns"][stops],
        )  # fmt: skip

    def dispatches(self) -> list[Flows]:
        """From where Python asked for an operator to where it was executed."""
        asked = (self.name == self._code("OpDispatch")) & ~self.on_device
        cause, effect = arguments.joined_by(self.arg("op"), asked, self.kind == KIND["op"])
        kind = np.full(len(cause), self.words.texts["dispatch"], dtype=np.int64)
        return [Flows(cause, effect, kind, self.source.number)] if len(cause) else []

    def _code(self, name: str) -> int:
        names = self.columns.names
        return names.index(name) if name in names else -1

    def _say_what_is_open(self, pairs: Pairs) -> None:
        name = self.source.path.name
        open_count = int((pairs.end < 0).sum())
        self.said.add(name, "a span has no end: it was taken to end with the last event of its"
                      " thread", open_count)  # fmt: skip
        self.said.add(name, "a span has no begin and was left out", pairs.stray_ends)

    def _kinds(self) -> Array:
        """A number of KIND; -1 for what is told otherwise."""
        has_op, is_kernel = self.arg("op") >= 0, self.columns.spans["is_kernel"][self.begin]
        has_run, is_main = self.arg("has_run") > 0, self.lanes.is_main[self.thread]
        flags = np.stack([self.name, self.on_device, has_op, is_kernel | has_run, is_main], axis=1)
        distinct, back = np.unique(flags, axis=0, return_inverse=True)
        kinds = [_kind(self.columns.names[n], *map(bool, rest)) for n, *rest in distinct.tolist()]
        found = np.array(kinds or [0], dtype=np.int64)[back.reshape(-1)]
        # CUPTI calls a launch as it calls the kernel.
        is_launch = (self.launch >= 0) & ~self.on_device & ~has_op
        return np.where(is_launch, KIND["runtime"], found)

    def _paths(self) -> "arguments.Paths":
        is_block = (self.kind == KIND["module"]) | (self.kind == KIND["annotation"])
        found = arguments.paths(
            self.pairs, self.name, is_block & ~self.on_device, self.columns.names
        )
        # Inside of backward and optimizer a block is no call of a module.
        not_module = (self.kind == KIND["module"]) & (found.path < 0)
        self.kind = np.where(not_module, KIND["annotation"], self.kind)
        return found

    def _arguments(self) -> dict[str, Array]:
        words = self.words
        is_op = self.kind == KIND["op"]
        scopes = mapped(self.path.path, [words.scopes[text] for text in self.path.texts])
        args = arguments.of_operators(self.columns, self.pairs, self.told, is_op, words)
        device, op = self.on_device, self.arg("op")
        texts = [words.texts[text] for text in self.columns.texts]
        is_copy = device & (self.kind == KIND["memcpy"])
        way = np.where(self.arg("ways") > 0, mapped(self.arg("ways"), texts),
                       words.texts["host to device"])  # fmt: skip
        mode = self.arg("mode")
        moved = arguments.tensor_bytes(self.columns, self.told)
        given = np.where(self.arg("bytes") >= 0, self.arg("bytes"), moved)
        args.update(
            external=np.where((is_op | device) & (op >= 0), op, -1),
            correlation=self.launch,
            on_device=np.where(device, 1, -1),
            stream=np.where(device, self.lanes.streams[self.thread], -1),
            direction=np.where(is_copy, way, -1),
            host_memory=np.where(is_copy & (self.arg("ways") > 0), way, -1),
            operation=np.where(
                (self.kind == KIND["collective"]) & (mode > 0), mapped(mode, texts), -1
            ),
            bytes=np.where(device, np.where(self.kind == KIND["kernel"], -1, given), args["bytes"]),
            scope=arguments.shared(np.where(is_op, scopes, -1), op, is_op, device),
            module=np.where(self.kind == KIND["module"], scopes, -1),
            backward=np.where(is_op & self.path.is_backward, 1, -1),
            window=np.full(len(op), self.source.number, dtype=np.int64),
            number=np.arange(len(op)),
        )
        return args

    def _instants(self) -> Spans:
        """Reads of a tensor's properties, ends of steps: moments on their threads."""
        spans = self.columns.spans
        rows = np.flatnonzero((spans["phase"] >= 2) & (spans["name"] != self._code("Metadata")))
        shown = mapped(spans["name"][rows], [self.words.names[n] for n in self.columns.names])
        kind = np.full(len(rows), KIND["mark"], dtype=np.int32)
        track = self.lanes.tracks[spans["thread"][rows]]
        window = {"window": np.full(len(rows), self.source.number, dtype=np.int64)}
        return Spans(spans["ts_ns"][rows], spans["dur_ns"][rows], kind, shown, track, window)


def _kind(name: str, on_device: bool, has_op: bool, has_run: bool, is_main: bool) -> int:
    if on_device:
        return KIND[_device_kind(name, has_run)]
    if name in _TENSORS:
        return -1
    if name == "OpDispatch":
        return KIND["mark"]
    if has_op:
        return KIND["op"]
    if name in _WAITS or "Synchronize" in name:
        return KIND["sync"]
    if name in _COMMANDS or _CALL_OF_CUDA.fullmatch(name):
        return KIND["runtime"]
    if name.startswith("tensor."):
        return KIND["python"]
    return KIND["module"] if is_main else KIND["annotation"]


def _device_kind(name: str, has_run: bool) -> str:
    if name in ("Memcpy", "Memset"):
        return name.lower()
    if has_run or name in names_of.COPIES:
        return names_of.device_kind(name)
    return "annotation"


def _counters(columns: Columns, words: Vocabulary, said: Problems, file: str) -> list[Samples]:
    found, names = columns.counters, columns.names
    known = np.isfinite(found["value"]) if len(found["value"]) else np.zeros(0, dtype=np.bool_)
    told = [_counter(name) for name in names]
    wrong = known & np.isin(found["name"], [names.index(n) for n in _WRONG_COUNTERS if n in names])
    if (found["value"][wrong] != 0).any():
        said.add(file, "gpu_usgae_ratio and train_time_ratio were left out: they do not agree with"
                 " the kernels of the same file, which the table device-time counts")  # fmt: skip
    known &= ~wrong
    code = mapped(found["name"], [words.names[name] for name, _ in told])[known]
    factor = np.array([factor for _, factor in told] or [1.0])[found["name"][known]]
    return [Samples(found["ts_ns"][known], code, found["value"][known] * factor)]


def _counter(name: str) -> tuple[str, float]:
    if name.endswith(_MEMORY):
        return f"{names_of.place(name.removesuffix(_MEMORY)).device}_used_bytes", 1
    return _COUNTERS.get(name, (name, 1))
