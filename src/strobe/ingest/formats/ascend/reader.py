"""Recordings of an Ascend NPU: by torch_npu, by MindSpore 2, by CANN's msprof, exported as text.

Read of ASCEND_PROFILER_OUTPUT: the timeline, kernel_details, communication and its matrix,
step_trace_time, memory_record, operator_memory, npu_module_mem; and what MindSpore's host left.
Not read: totals of the same (op_statistic, api_statistic, operator_details, l2_cache), hardware
metrics of kernels, databases (*.db), and raw recordings, which only CANN can decode.
"""

import re
from pathlib import Path

from strobe.errors import UnreadableTrace
from strobe.ingest.formats import compressed
from strobe.ingest.formats.ascend import collectives as ascend_collectives
from strobe.ingest.formats.ascend import communication as ascend_communication
from strobe.ingest.formats.ascend import kernels as ascend_kernels
from strobe.ingest.formats.ascend import memory as ascend_memory
from strobe.ingest.formats.ascend import spans as ascend_spans
from strobe.ingest.formats.ascend import steps as ascend_steps
from strobe.ingest.formats.ascend import trace as ascend_trace
from strobe.ingest.formats.ascend.communication import Collective
from strobe.ingest.formats.ascend.folder import (
    DEVICE_FILES,
    ROOT,
    Profile,
    first_unix_ns,
    loaded,
    plain_name,
    profiles,
    rank_of,
    started_ns,
)
from strobe.ingest.formats.ascend.kernels import Kernels
from strobe.ingest.formats.ascend.spans import Place
from strobe.ingest.formats.mindspore import host as mindspore_host
from strobe.ingest.formats.mindspore import steps as mindspore_steps
from strobe.ingest.formats.mindspore.files import ANCHORS, MINDDATA, NEEDLESS, kind_by_name
from strobe.ingest.importing.sources import Found, Peek, Source, files_below
from strobe.ingest.steps.detection import Steps
from strobe.ingest.trace.problems import Problems
from strobe.ingest.trace.spans import Spans, Vocabulary
from strobe.ingest.trace.trace import About, Samples, Trace
from strobe.messages import message

NAME = "Ascend profiler"

_IS_LIST = re.compile(rb"\s*[\[{]")
# Times as text are a habit of Ascend's exporters alone.
_MARKS = re.compile(
    rb'"ts"\s*:\s*"\d{10,16}\.\d+"'
    rb'|"name"\s*:\s*"(?:Ascend Hardware|CANN|HCCL|Overlap Analysis|CPU OP)"'
    rb'|"cat"\s*:\s*"(?:async_npu|async_task_queue|HostToDevice|enqueue|dequeue)"'
)
_DEVICE = re.compile(rb"\bNPU:(\d{1,4})\b")
_DEVICE_COLUMN = re.compile(rb"Device_?id,[^\n]*\n(\d{1,4}),", re.IGNORECASE)
_VERSIONS = {"torch_npu_version": "torch_npu", "cann_version": "CANN", "ms_version": "mindspore"}
_FRAMEWORKS = {"pt": "torch_npu", "ms": "mindspore"}
_PEEK_BYTES = 4 << 10
_HOST_AND_PID = re.compile(r"(.+)_(\d{1,9})_\d{14,20}_ascend_(?:pt|ms)$")


Files = dict[str, list[Path]]  # by what they are called, unpacked


def claim(folder: Path) -> list[Found]:
    found = [p for p in profiles(folder) if not p.is_of_host_only]
    readable = [profile for profile in found if profile.is_readable]
    if found and not readable:
        if any(kind_by_name(path) in ANCHORS for path in files_below(folder)):
            return []
        raise _raw(found[0])
    return [
        *(Found(p.paths, rank_of(p), first_unix_ns(p), _needless(p)) for p in readable),
        *(Found((p.root,), rank_of(p), ignored=_needless(p)) for p in found if p not in readable),
    ]


def recognise(peek: Peek) -> Found | None:
    if not _IS_LIST.match(peek.head) or not _MARKS.search(peek.head):
        return None
    alone = Profile(peek.path.parent, device=[peek.path])
    return Found((peek.path,), rank_of(alone), first_unix_ns(alone))


def read(source: Source, words: Vocabulary) -> Trace:
    paths = [Path(path) for path in source.paths]
    if paths[0].is_dir():
        raise _raw(profiles(paths[0])[0])
    files: Files = {}
    for path in paths:
        files.setdefault(plain_name(path), []).append(path)
    if not files.keys() & {*DEVICE_FILES}:
        files["trace_view.json"] = paths[:1]
    trace = Trace(words, is_unix=True, about=_about(paths))
    spans = _read_device(files, source.number, trace)
    has_operators = bool(mindspore_steps.named_on_host(spans).any())
    mindspore_host.read(paths, source.number, trace, has_operators=has_operators)
    return trace


def _needless(profile: Profile) -> tuple[Path, ...]:
    """What else lies in a profile, and what MindSpore 2.3 and 2.4 wrote of the same beside it."""
    if profile.flavour != "ms" or not profile.device:
        return tuple(profile.others)
    beside = [path for path in profile.root.parent.iterdir() if path.is_file()]
    told = [p for p in beside if NEEDLESS.match(plain_name(p)) or kind_by_name(p)]
    return (*profile.others, *(path for path in told if kind_by_name(path) not in MINDDATA))


def _read_device(files: Files, number: int, trace: Trace) -> Spans:
    words, said = trace.words, trace.said
    kernels = ascend_kernels.read(files.get("kernel_details.csv", []), said)
    device = _device(kernels, files)
    trace.about.devices = [device]
    place = Place(words, number, device)
    line = ascend_trace.read(files.get("trace_view.json", []), said)
    told = [
        collective for path in files.get("communication.json", [])
        for collective in ascend_communication.read(path, said)
    ]  # fmt: skip
    metadata = {
        k: v for path in files.get("profiler_metadata.json", []) for k, v in loaded(path).items()
    }
    placed = ascend_spans.spans(line, kernels, place)
    placed = ascend_collectives.gathered(
        placed, kernels, told, ascend_collectives.groups(metadata), place, said
    )
    trace.steps = _steps(files, placed, trace)
    if trace.steps is None:
        trace.steps = mindspore_steps.steps_of_spans(placed.spans, words, "trace_view.json", said)
    trace.counters += ascend_spans.counters(line, words)
    trace.counters.append(_communication(files, told, words, said))
    _read_memory(files, placed.spans, trace)
    trace.spans.append(placed.spans)
    return placed.spans


def _steps(files: Files, placed: ascend_spans.Placed, trace: Trace) -> Steps | None:
    told: dict[int, ascend_steps.Told] = {}
    for path in files.get("step_trace_time.csv", []):
        told |= ascend_steps.read(path, trace.said)
    info = [path for name, paths in files.items() if name.startswith("profiler_") for path in paths]
    found = ascend_steps.steps(
        placed.spans, placed.step, told, started_ns(info), trace.words, trace.said
    )
    placed.spans.args.pop("part", None)
    return found


def _communication(
    files: Files, told: list[Collective], words: Vocabulary, said: Problems
) -> Samples:
    starts = {collective.name: collective.ts_ns for collective in told}
    rows = ascend_communication.counters(told, words)
    for path in files.get("communication_matrix.json", []):
        rows += ascend_communication.links(path, starts, words, said)
    return ascend_communication.samples(rows)


def _read_memory(files: Files, spans: Spans, trace: Trace) -> None:
    for name, of in (("memory_record.csv", ""), ("npu_module_mem.csv", "module ")):
        for path in files.get(name, []):
            trace.counters += ascend_memory.record(path, trace.words, trace.said, of)
    for path in files.get("operator_memory.csv", []):
        trace.memory += ascend_memory.blocks(path, spans, trace.words, trace.said)


def _device(kernels: Kernels, files: Files) -> str:
    """npu:0, by the first file that says so."""
    numbers = kernels.columns["device"]
    if (known := numbers[numbers >= 0]).size:
        return f"npu:{int(known[0])}"
    for name in ("memory_record.csv", "operator_memory.csv", "npu_module_mem.csv"):
        for path in files.get(name, []):
            if found := _DEVICE.search(_beginning(path)):
                return f"npu:{int(found.group(1))}"
    for path in files.get("step_trace_time.csv", []):
        if found := _DEVICE_COLUMN.search(_beginning(path)):
            return f"npu:{int(found.group(1))}"
    return "npu:0"


def _beginning(path: Path) -> bytes:
    try:
        return compressed.beginning(path, _PEEK_BYTES)
    except UnreadableTrace:
        return b""


def _about(paths: list[Path]) -> About:
    told = [path for path in paths if plain_name(path).startswith("profiler_")]
    said = {key: value for path in told for key, value in loaded(path).items()}
    args = said.get("distributed_args")
    world = args.get("world_size") if isinstance(args, dict) else said.get("rank_size")
    matches = [_HOST_AND_PID.match(part) for path in paths for part in path.parts]
    named = next(filter(None, matches), None)
    versions = {
        name: str(said[key]) for key, name in _VERSIONS.items() if isinstance(said.get(key), str)
    }
    # The folder is called after the profiler that wrote it, also where no file has its version.
    flavours = {found.group(1) for path in paths for part in path.parts
                if (found := ROOT.search(part))}  # fmt: skip
    for flavour in flavours:
        versions.setdefault(_FRAMEWORKS[flavour], "")
    return About(
        world_size=world if type(world) is int and 0 < world < 2**31 else None,
        host=named.group(1) if named else "", pid=int(named.group(2)) if named else 0,
        frameworks=versions,
    )  # fmt: skip


def _raw(profile: Profile) -> UnreadableTrace:
    kind, path = "database" if profile.databases else "raw", str(profile.root)
    flavour = profile.flavour or "cann"
    hint = message(
        f"errors/traces.export-{flavour}", path=path if flavour == "cann" else repr(path)
    )
    return UnreadableTrace.of(f"errors/traces.export-first-{kind}", where=path, hint=hint)
