"""torch.profiler's Chrome JSON (Kineto), of the host and of any device.

Read are CPU, CUDA, ROCm, XPU and MTIA traces of any age: operators, Python functions and modules,
annotations, kernels, copies, fills, waits, calls of the runtime, collectives, memory events, and
what the header says of rank, world, host and devices. Steps and their phases follow from the spans
(ingest/trace_marks.py). Left out are flow arrows, whose links follow from numbers that events have
in common, and the bookkeeping of the profiler itself.
"""

import re
from collections import Counter
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from strobe.ingest.formats import compressed, kineto
from strobe.ingest.formats.kineto import collectives as kineto_collectives
from strobe.ingest.formats.kineto import marks as trace_marks
from strobe.ingest.formats.kineto import modules as trace_modules
from strobe.ingest.formats.kineto import spans as kineto_spans
from strobe.ingest.importing.sources import Found, Peek, Source
from strobe.ingest.trace.spans import Spans, Vocabulary
from strobe.ingest.trace.trace import About, Trace

NAME = "torch.profiler"

_MARKS = re.compile(
    rb'"(?:schemaVersion|deviceProperties|distributedInfo|baseTimeNanoseconds)"\s*:'
    rb'|"cat"\s*:\s*"(?:cpu_op|Operator|python_function|user_annotation|cuda_runtime|Runtime'
    rb'|kernel|Kernel|gpu_memcpy|mtia_ccp_events|xpu_runtime|cpu_instant_event)"'
)
_IS_JSON = re.compile(rb"\s*[\[{]")
_RANK = re.compile(rb'"distributedInfo"\s*:\s*\{[^{}]*?"rank"\s*:\s*(\d{1,9})\b')
_WORLD = re.compile(rb'"distributedInfo"\s*:\s*\{[^{}]*?"world_size"\s*:\s*(\d{1,9})\b')
_RANK_IN_NAME = re.compile(r"(?<![a-z])rank[-_ ]?(\d{1,9})(?!\d)", re.IGNORECASE)
_HEADER_FIRST = re.compile(rb'"(?:schemaVersion|deviceProperties)"\s*:.*"traceEvents"', re.DOTALL)
_BASE = re.compile(rb'"baseTimeNanoseconds"\s*:\s*(\d{1,19})\b')
_TIME = re.compile(rb'"ts"\s*:\s*"?(\d{1,16})(\.\d+)?')
_TAIL_BYTES = 1 << 20
_EVENTS_EACH = 200_000
# Spans kept to tell steps by. Of longer traces, runs of operators are kept as one from there on.
_MOST_TELLING = 500_000
# Times of this size are microseconds since 1970; smaller ones count from the file's own base.
_SINCE_1970_US = 10**15


def claim(folder: Path) -> list[Found]:
    return []


def recognise(peek: Peek) -> Found | None:
    if not _IS_JSON.match(peek.head) or not _MARKS.search(peek.head):
        return None
    world = _WORLD.search(peek.head)
    return Found(
        (peek.path,), rank=_rank(peek), first_unix_ns=_first_unix_ns(peek.head),
        world_size=int(world.group(1)) if world else None,
    )  # fmt: skip


def read(source: Source, words: Vocabulary) -> Trace:
    """In pieces, so that a large file does not have to lie in memory."""
    trace = Trace(words, is_unix=True)
    modules = trace_modules.Modules(words)
    telling: list[Spans] = []
    memories: list[kineto.Memory] = []
    processes: Counter[int] = Counter()
    for piece in kineto.pieces(source.path, _EVENTS_EACH):
        spans = kineto_spans.spans(piece, words, source.number)
        kineto_collectives.complete(spans, words, piece.header)
        spans = modules.taken_from(spans)
        told = trace_marks.telling(spans, words)
        if sum(map(len, telling)) > _MOST_TELLING:
            told = trace_marks.runs(told, words)
        telling.append(told)
        memories.append(piece.memory)
        processes.update(kineto_spans.host_processes(piece))
        trace.spans.append(spans)
    calls = modules.named()
    telling.append(trace_marks.telling(calls, words))
    trace.spans.append(calls)
    kineto_spans.name_tracks(piece, words)
    piece.memory = _joined(memories)
    trace.said.update(piece.problems)
    trace.memory.append(kineto_spans.memory(piece, words))
    trace.counters += kineto_spans.memory_counters(piece, words)
    trace.steps = trace_marks.steps_of(telling, words)
    for what in trace.steps.problems if trace.steps else ():
        trace.said.add(source.path.name, what)
    trace.about = _about(piece.header, max(processes, key=lambda pid: processes[pid], default=0))
    trace.shift(piece.late_base_ns)
    return trace


def _joined(parts: list[kineto.Memory]) -> kineto.Memory:
    columns = ([getattr(part, f.name) for part in parts] for f in fields(kineto.Memory))
    return kineto.Memory(*map(np.concatenate, columns))


def _rank(peek: Peek) -> int | None:
    """What the header says, at either end of the file; else its name, else its folder's."""
    said = _RANK.search(peek.head)
    if not said and not peek.is_whole and not _HEADER_FIRST.search(peek.head):
        said = _RANK.search(_tail(peek.path))
    if said:
        return int(said.group(1))
    for name in (peek.path.name, peek.path.resolve().parent.name):
        if found := _RANK_IN_NAME.search(name):
            return int(found.group(1))
    return None


def _tail(path: Path) -> bytes:
    """The end of a file, unpacked."""
    if not compressed.is_packed(path):
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
            return file.read(_TAIL_BYTES)
    last, before = b"", b""
    for block in compressed.blocks(path, lambda _: None):
        last += block
        if len(last) > _TAIL_BYTES:
            last, before = b"", last
    return (before + last)[-_TAIL_BYTES:]


def _first_unix_ns(head: bytes) -> int | None:
    """When the first events were, if that can be told without the rest of the file."""
    times = [int(found.group(1)) for found in _TIME.finditer(head)]
    first = min((time for time in times if time > 0), default=None)
    base = _BASE.search(head)
    if first is None or (base is None and first < _SINCE_1970_US):
        return None
    found_ns = (int(base.group(1)) if base else 0) + first * 1000
    return found_ns if found_ns < 2**62 else None


def _about(header: dict[str, Any], pid: int) -> About:
    info = header.get("distributedInfo")
    world = info.get("world_size") if isinstance(info, dict) else None
    host = header.get("host_name")
    return About(
        world_size=world if type(world) is int and world > 0 else None,
        host=host if isinstance(host, str) else "",
        pid=pid,
        frameworks=_frameworks(header),
        devices=_devices(header),
    )


def _frameworks(header: dict[str, Any]) -> dict[str, str]:
    """Versions, as far as the header has them; CUDA's is 12040 for 12.4, HIP's 60140091 for 6.1."""
    info = header.get("distributedInfo")
    found = {"torch": header.get("torch_version", "")}
    cuda, hip = header.get("cuda_runtime_version"), header.get("hip_runtime_version")
    if type(cuda) is int and cuda > 0:
        found["cuda"] = f"{cuda // 1000}.{cuda % 1000 // 10}"
    if type(hip) is int and hip > 0:
        found["hip"] = f"{hip // 10**7}.{hip // 10**5 % 100}"
    if isinstance(info, dict) and info.get("nccl_version"):
        found["nccl"] = info["nccl_version"]
    return {name: str(version) for name, version in found.items()}


def _devices(header: dict[str, Any]) -> list[str]:
    devices = header.get("deviceProperties")
    known = [d for d in devices if isinstance(d, dict)] if isinstance(devices, list) else []
    return [
        f"cuda:{device.get('id', number)} {device.get('name', '')}".strip()
        for number, device in enumerate(known)
    ]
