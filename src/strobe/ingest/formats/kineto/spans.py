"""A Kineto file's events as spans of a rank: kinds, tracks and arguments in the rank's words."""

from typing import NamedTuple

import numpy as np

from strobe.ingest.building.levels import levels
from strobe.ingest.formats import kinds as classify
from strobe.ingest.formats import kineto
from strobe.ingest.formats.kinds import KIND
from strobe.ingest.formats.kineto.json_objects import TEXTS
from strobe.ingest.trace.codes import Array, Codes, distinct, mapped, occurring
from strobe.ingest.trace.spans import Spans, Track, Vocabulary
from strobe.ingest.trace.trace import Memory, Samples

# As c10::DeviceType numbers them. Builds for ROCm number their devices as CUDA's.
_DEVICES = {
    0: "cpu", 9: "xla", 12: "xpu", 13: "mps", 15: "hpu", 18: "ipu",
    19: "mtia", 20: "privateuseone",
}  # fmt: skip
_GPUS = (1, 6)
# A wait for all streams of a device has this number of no stream.
_NO_STREAM = 2**32 - 1
# Their stream argument is the queue that asked; work and copies of one queue overlap.
_TID_IS_STREAM = ("mtia_ccp_events",)
_COPIED_RATIO = 0.9
# Sorts of devices, by how the categories begin that show them.
_FAMILIES = {"xpu": "xpu_", "privateuseone": "privateuse1_", "mtia": "mtia_", "cuda": ""}
_WAITS_PROCESS = 0  # tells the waits for a stream from its work


class Renamed(NamedTuple):
    """What each name of a file is called, and the number of the module path it stands for."""

    names: list[str]
    scopes: list[int]


def spans(
    trace: kineto.Trace, words: Vocabulary, number: int, renamed: Renamed | None = None
) -> Spans:
    """Times since 1970. `number` tells one file's correlation numbers from those of another."""
    renamed = renamed or Renamed(trace.names, [-1] * len(trace.names))
    kinds = classify.kinds(trace)
    device = classify.on_device(trace)
    events = trace.events
    track = mapped(events.thread, _track_table(trace, events.thread[~device], words))
    rows = np.flatnonzero(device)
    track[rows] = _device_tracks(trace, rows, words)
    texts = [words.texts[text] for text in trace.texts]
    args = {
        name: mapped(column, texts) if name in TEXTS else column
        for name, column in events.args.items()
    }
    _forget_copied_numbers(args, device)
    is_module = kinds == KIND["module"]
    if is_module.any():
        args["module"] = np.where(is_module, mapped(events.name, renamed.scopes), -1)
    if device.any():
        args["on_device"] = np.where(device, 1, -1)
    args["window"] = np.full(len(kinds), number, dtype=np.int64)
    shown = [words.names[name] for name in renamed.names]
    return Spans(events.ts_ns, events.dur_ns, kinds, mapped(events.name, shown), track, args)


def memory(trace: kineto.Trace, words: Vocabulary) -> Memory:
    """Blocks taken and given back, where the file says which; of 2021 it does not."""
    found = trace.memory
    known = np.flatnonzero(found.address != 0)
    names, back = _devices(trace)
    codes = [words.texts[name] for name in names]
    track = mapped(found.thread, _track_table(trace, found.thread, words))
    return Memory(
        found.ts_ns[known], track[known], found.address[known], found.bytes[known],
        mapped(back, codes)[known],
    )  # fmt: skip


def memory_counters(trace: kineto.Trace, words: Vocabulary) -> list[Samples]:
    """How much of each device was allocated and reserved after each memory event.

    Files of 2021 say only what was taken or given back: the sum of that, from the least that
    makes it never negative.
    """
    found = trace.memory
    names, back = _devices(trace)
    parts = []
    for number, device in enumerate(names):
        rows = np.flatnonzero(back == number)
        rows = rows[np.argsort(found.ts_ns[rows], kind="stable")]
        for what, value in _levels(found, rows).items():
            parts.append(levels(words, f"{device} {what}_bytes", found.ts_ns[rows], value))
    return parts


def _levels(found: kineto.Memory, rows: Array) -> dict[str, Array]:
    allocated, reserved = found.allocated[rows], found.reserved[rows]
    found_levels = {"memory": allocated}
    if not (allocated >= 0).all():
        total = np.cumsum(found.bytes[rows])
        found_levels["memory"] = total - min(0, int(total.min(initial=0)))
    if (reserved > 0).any():
        found_levels["reserved"] = reserved
    return found_levels


def _devices(trace: kineto.Trace) -> tuple[list[str], Array]:
    """The names of the devices, and for each memory event the number of its own."""
    found, gpu = trace.memory, _gpu(trace)
    devices = found.device_type * 2**16 + found.device_id
    seen, back = np.unique(devices, return_inverse=True)
    names = Codes[str]()
    codes = [names[_device_name(gpu, d + 1 >> 16, (d + 1 & 0xFFFF) - 1)] for d in seen.tolist()]
    return list(names), mapped(back, codes)


def _device_name(gpu: str, kind: int, number: int) -> str:
    name = gpu if kind in _GPUS else _DEVICES.get(kind, f"device{kind}")
    return name if number < 0 or name == "cpu" else f"{name}:{number}"


def _track_table(trace: kineto.Trace, used: Array, words: Vocabulary) -> list[int]:
    """The tracks of the threads that are used; -1 for the others, which are streams."""
    table = [-1] * len(trace.threads)
    for number in occurring(used)[0].tolist():
        pid, tid = trace.threads[number]
        track = Track("cpu", _whole(pid), _whole(tid))
        table[number] = words.tracks[track]
        name = trace.thread_names.get((pid, tid)) or f"thread {tid}"
        words.track_names.setdefault(track, name)
    return table


def _device_tracks(trace: kineto.Trace, rows: Array, words: Vocabulary) -> Array:
    """Streams by the device and stream arguments; what lacks them, by its pid and tid.

    Waits have tracks of their own: they lie over the work they wait for.
    """
    events, thread = trace.events, trace.events.thread[rows]
    category = events.category[rows]
    pids = np.array([_whole(pid) or 0 for pid, _ in trace.threads] or [0])
    tids = np.array([_whole(tid) or 0 for _, tid in trace.threads] or [0])
    number, stream = events.arg("device")[rows], events.arg("stream")[rows]
    number = _as_torch_counts(np.where(number >= 0, number, pids[thread]), trace)
    own = mapped(category, [int(name in _TID_IS_STREAM) for name in trace.categories])
    stream = np.where((stream >= 0) & (stream < _NO_STREAM) & (own != 1), stream, tids[thread])
    numbers, number = np.unique(number, return_inverse=True)
    streams, stream = np.unique(stream, return_inverse=True)
    keys, back = distinct([category, thread, number, stream])
    table = []
    for kind, place, *at in keys:
        where, which = int(numbers[at[0]]), int(streams[at[1]])
        waits = trace.categories[kind] == "cuda_sync"
        family = _family(trace.categories[kind], trace)
        track = Track(f"{family}:{where}", _WAITS_PROCESS if waits else None, which)
        table.append(words.tracks[track])
        name = trace.thread_names.get(trace.threads[place]) or f"stream {which}"
        words.track_names.setdefault(track, f"{name}: waits" if waits else name)
    return mapped(back, table)


def _as_torch_counts(number: Array, trace: kineto.Trace) -> Array:
    """ROCm counts the processors of the host among its devices, so that its first one is 1 or 2.

    Where torch saw one device only, that is it.
    """
    if len(occurring(number)[0]) != 1 or "hip_runtime_version" not in trace.header:
        return number
    listed = trace.header.get("deviceProperties")
    return np.zeros_like(number) if isinstance(listed, list) and len(listed) == 1 else number


def _family(category: str, trace: kineto.Trace) -> str:
    """What the device is called, without its number."""
    if category.startswith(_FAMILIES["mtia"]):
        return "mtia"
    for name, prefix in _FAMILIES.items():
        if prefix and any(other.startswith(prefix) for other in trace.categories):
            return name
    return _gpu(trace)


def _gpu(trace: kineto.Trace) -> str:
    """torch names AMD's devices cuda as well; the trace says which runtime they run on."""
    is_rocm = "hip_runtime_version" in trace.header or "hipLaunchKernel" in trace.names
    return "hip" if is_rocm else "cuda"


def host_processes(trace: kineto.Trace) -> dict[int, int]:
    """How many events of the host belong to each process."""
    threads = trace.events.thread[~classify.on_device(trace)]
    found: dict[int, int] = {}
    for number, count in zip(*np.unique(threads, return_counts=True), strict=True):
        pid = _whole(trace.threads[number][0])
        if pid is not None:
            found[pid] = found.get(pid, 0) + int(count)
    return found


def name_tracks(trace: kineto.Trace, words: Vocabulary) -> None:
    """Give tracks the names of their threads, which a file may tell only at its end."""
    for (pid, tid), name in trace.thread_names.items():
        process, thread = _whole(pid), _whole(tid)
        for track in (Track("cpu", process, thread), Track(f"mtia:{process}", None, thread)):
            if track in words.tracks and name:
                words.track_names[track] = name


def _forget_copied_numbers(args: dict[str, Array], device: Array) -> None:
    """For some years the external id on the device was a copy of the correlation number."""
    external, correlation = args.get("external"), args.get("correlation")
    if external is None or correlation is None:
        return
    known = device & (external >= 0)
    if known.any() and (external[known] == correlation[known]).mean() > _COPIED_RATIO:
        args["external"] = np.where(device, -1, external)


def _whole(value: int | str) -> int | None:
    try:
        number = int(value)
    except ValueError:
        return None
    return number if abs(number) < 2**62 else None
