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
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from strobe.ingest.formats import compressed
from strobe.ingest.formats.kinds import KIND
from strobe.ingest.formats.megengine import names as names_of
from strobe.ingest.formats.megengine import steps as megengine_steps
from strobe.ingest.formats.megengine.calls import Calls
from strobe.ingest.formats.megengine.events import INSTANT, Events, Reader, wide_spool
from strobe.ingest.formats.megengine.lanes import Lanes, lanes
from strobe.ingest.formats.megengine.modules import Modules
from strobe.ingest.importing.sources import Source
from strobe.ingest.trace import spans as spans_of
from strobe.ingest.trace.codes import Array, mapped
from strobe.ingest.trace.problems import Problems
from strobe.ingest.trace.spans import Spans, Vocabulary
from strobe.ingest.trace.trace import Samples, Trace

_TAIL_BYTES = 4096
_MOST_PACKED_BYTES, _MOST_TEXT_BYTES = 64 << 20, 2 << 30
_BEGAN = re.compile(rb'"metadata"\s*:\s*\{[^{}]*"localTime"\s*:\s*"?(\d{1,19})"?')
_OLD_BEGAN = re.compile(rb'"name"\s*:\s*"Metadata"[^{}]*\{\s*"localTime"\s*:\s*"?([\d.]{1,24})"?')
_PID = re.compile(rb'"pid"\s*:\s*(\d{1,15})(?=\s*[,}])')
_LONGEST_PID, _MOST_RANKS = 40, 4096
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
    old = _OLD_BEGAN.search(compressed.beginning(path, _TAIL_BYTES))
    if old and old.group(1).count(b".") < 2 and old.group(1) != b".":
        return int(float(old.group(1)) * 1000)
    found = _BEGAN.findall(_tail(path))
    return int(found[-1]) if found else None


def _tail(path: Path) -> bytes:
    if not compressed.is_packed(path):
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
            return file.read(_TAIL_BYTES)
    tail, size = b"", 0
    if path.stat().st_size < _MOST_PACKED_BYTES:
        for block in compressed.blocks(path, lambda _: None):
            tail, size = (tail + block)[-_TAIL_BYTES:], size + len(block)
            if size > _MOST_TEXT_BYTES:
                return b""
    return tail


def read(source: Source, words: Vocabulary) -> Trace:
    pids = merged_pids(source.path) if source.part is not None else []
    reader = Reader(source.path, pids[source.part] if source.part is not None else None)
    events = reader.read()
    trace, file = Trace(words, reader.file.problems), source.path.name
    # Merging leaves one zero for all ranks, though not when it was.
    began = 0 if pids else began_unix_ns(source.path)
    where = lanes(events, words)
    calls = Calls(events, where, words)
    in_order = wide_spool()
    in_order += calls.spans()
    calls.tell(file, trace.said)
    modules = Modules(events, where, words, source.number)
    trace.spans += map(modules.take, in_order.slices())
    trace.flows += modules.flows()
    trace.steps = megengine_steps.steps(modules.blocks(_stops_ns(events, where)))
    trace.spans += _instants(events, where, words, source.number)
    trace.counters += _counters(events, words, trace.said, file)
    for problem in trace.steps.problems if trace.steps else []:
        trace.said.add(file, problem)
    _describe(trace, events, bool(pids), file)
    trace.is_unix = began is not None
    if began is not None:
        trace.shift(began)
    return trace


def merged_pids(path: Path) -> list[int]:
    """The processes whose files were merged into this one, in the order of their ranks."""
    found: set[int] = set()
    rest = b""
    for block in compressed.blocks(path, lambda _: None):
        text = rest + block
        found.update(map(int, _PID.findall(text)))
        rest = text[-_LONGEST_PID:]
        if len(found) > _MOST_RANKS:
            break
    return sorted(found)[:_MOST_RANKS]


def _describe(trace: Trace, events: Events, is_merged: bool, file: str) -> None:
    processes = dict.fromkeys(pid for pid, _ in events.threads)
    trace.about.pid = next(iter(processes), 0) if len(processes) == 1 else 0
    trace.about.frameworks = {"megengine": ""}
    if is_merged:
        trace.said.add(file, "merging cut its times to whole microseconds: import the files that"
                       " were merged into it, if they are still there")  # fmt: skip


def _stops_ns(events: Events, where: Lanes) -> Array:
    """When the interpreter said that a step was over."""
    code, found = events.code("StopStep"), [np.zeros(0, dtype=np.int64)]
    for part in events.instants:
        is_stop = (part.kind == INSTANT) & where.is_main[part.track] & (part.name == code)
        found.append(part.ts_ns[is_stop])
    return np.concatenate(found)


def _instants(events: Events, where: Lanes, words: Vocabulary, window: int) -> Iterator[Spans]:
    """Reads of a tensor's properties, ends of steps: moments on their threads."""
    names = [words.names[name] for name in events.names]
    for part in events.instants:
        shown = part.take(np.flatnonzero(part.name != events.code("Metadata")))
        found = spans_of.make(
            shown.ts_ns, shown.dur_ns, KIND["mark"], mapped(shown.name, names),
            where.tracks[shown.track],
        )  # fmt: skip
        found.args["window"] = np.full(len(found), window, dtype=np.int64)
        yield found
    events.instants.clear()


def _counters(events: Events, words: Vocabulary, said: Problems, file: str) -> Iterator[Samples]:
    told = [_counter(name) for name in events.names]
    codes = [words.names[name] for name, _ in told]
    factor = np.array([factor for _, factor in told] or [1.0])
    is_wrong = np.array([name in _WRONG_COUNTERS for name in events.names] or [False])
    tells_wrong = False
    for part in events.counters:
        known = np.isfinite(part.value)
        wrong = known & is_wrong[part.name]
        tells_wrong |= bool((part.value[wrong] != 0).any())
        ts_ns, name, value = (column[known & ~wrong] for column in part[:3])
        yield Samples(ts_ns, mapped(name, codes), value * factor[name])
    events.counters.clear()
    if tells_wrong:
        said.add(file, "gpu_usgae_ratio and train_time_ratio were left out: they do not agree with"
                 " the kernels of the same file, which the table device-time counts")  # fmt: skip


def _counter(name: str) -> tuple[str, float]:
    if name.endswith(_MEMORY):
        return f"{names_of.place(name.removesuffix(_MEMORY)).device}_used_bytes", 1
    return _COUNTERS.get(name, (name, 1))
