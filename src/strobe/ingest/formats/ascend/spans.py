"""The timeline and the kernels of an NPU as spans: kinds, tracks, who launched what."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from strobe.ingest.building.event_matching import paired
from strobe.ingest.formats.ascend.kernels import Kernels
from strobe.ingest.formats.ascend.trace import Timeline
from strobe.ingest.formats.kinds import KIND
from strobe.ingest.formats.mindspore.names import is_full_name, meaning
from strobe.ingest.formats.mindspore.phases import PARTS
from strobe.ingest.trace.codes import Array, distinct, narrow
from strobe.ingest.trace.spans import Spans, Track, Vocabulary
from strobe.ingest.trace.trace import Samples

HARDWARE, COMMUNICATION, CANN, HOST, LEFT_OUT = range(5)  # what a process of the timeline is
_ROLES = (
    (re.compile(r"Ascend Hardware"), HARDWARE),
    (re.compile(r"HCCL$|LCCL$|Communication$|CCU"), COMMUNICATION),
    (re.compile(r"CANN$"), CANN),
    # Both repeat, as bars of their own, what the events themselves tell.
    (re.compile(r"Overlap Analysis|Scope Layer"), LEFT_OUT),
)
_PROCESS_SHIFT = 10  # CANN numbers its own processes by the real one, shifted
_COMPUTES = re.compile(r"AI_?CORE|AI_?VECTOR|AI_?CPU|\bMIX_|\bAI[VC]\b|DSA|DVPP|KERNEL|FUSION")
_WAITS_OR_TELLS = re.compile(
    r"EVENT|NOTIFY|PROFIL|PLACE_HOLDER|WRITE.?VALUE|SDMA|RDMA|CMO|STREAM|LABEL|MODEL|COND|CAPTURE",
    re.IGNORECASE,
)
_SYNC = re.compile(r"Synchronize")
_PLANE = re.compile(r"Plane", re.IGNORECASE)
_ANNOTATION = re.compile(r"ProfilerStep#|Optimizer\.")
_DATA = re.compile(r"enumerate\(DataLoader\)|.*dataloader.*__next__", re.IGNORECASE)
_KIND_OF_CATEGORY = {
    "cpu_op": "op", "python_function": "python", "user_annotation": "annotation",
    "enqueue": "runtime", "dequeue": "runtime", "gc": "gc", "GC": "gc", "mstx": "annotation",
}  # fmt: skip


# HCCL's names of types, as torch calls them.
_DTYPES = {
    "FP32": "float", "FP16": "half", "BFP16": "bfloat16", "BF16": "bfloat16", "FP64": "double",
    "INT8": "char", "INT16": "short", "INT32": "int", "INT64": "long", "UINT8": "byte",
    "HCCL_DATA_TYPE_FP32": "float", "HCCL_DATA_TYPE_BFP16": "bfloat16",
}  # fmt: skip


class Placed(NamedTuple):
    spans: Spans
    step: Array  # the recorder's own number of the step each belongs to; -1 where it is not told


@dataclass
class Place:
    """Where spans go to."""

    words: Vocabulary
    number: int  # of the source
    device: str  # npu:0


def spans(line: Timeline, kernels: Kernels, place: Place) -> Placed:
    """All of both; what both tell of a kernel is one span. The timeline's events are used up."""
    roles = _roles(line)
    thread_role = np.array([roles.get(pid, HOST) for pid, _ in line.threads] or [HOST], np.int8)
    keep = np.flatnonzero(thread_role[line.events["thread"]] != LEFT_OUT)
    events = {name: line.events.pop(name)[keep] for name in list(line.events)}
    role = thread_role[events["thread"]]
    computed = np.flatnonzero(~kernels.is_collective)
    match = _matched(events, role, line, kernels, computed)
    base = _base(line, events, role, match >= 0, place)
    _link(line, base, events, place.words)
    _overwrite(base, match, kernels, place)
    alone = np.setdiff1d(computed, match)
    spans = appended(base, _kernel_spans(kernels, alone, place))
    step = np.append(kernels.step_numbers(), -1)[np.append(match, alone)]
    return Placed(spans, step)


def counters(line: Timeline, words: Vocabulary) -> Iterator[Samples]:
    """With the name of their process: `NPU MEM: APP/DDR (KB)`."""
    names = []
    for pid, name in line.counter_names:
        process = line.process_names.get(pid, "")
        names.append(name if name.startswith(process) else f"{process}: {name}")
    table = _table([words.names[name] for name in names])
    for part in line.counters:
        yield part._replace(name=table[part.name])
    line.counters.clear()


def _roles(line: Timeline) -> dict[Any, int]:
    return {
        pid: next((role for pattern, role in _ROLES if pattern.search(name)), HOST)
        for pid, name in line.process_names.items()
    }


def _matched(
    events: dict[str, Array], role: Array, line: Timeline, kernels: Kernels, computed: Array
) -> Array:
    """For each event the row of the kernel that it is, by its start and stream; or -1."""
    result = np.full(len(role), -1, dtype=np.int64)
    streams = _streams(line)[events["thread"]]
    rows = np.flatnonzero(role == HARDWARE)
    if len(rows) and len(computed):
        found = paired(
            (events["ts_ns"][rows], streams[rows]),
            (kernels.columns["ts_ns"][computed], kernels.columns["stream"][computed]),
        )
        result[rows] = np.where(found >= 0, computed[found], -1)
    return result


def _base(
    line: Timeline, events: dict[str, Array], role: Array, is_kernel: Array, place: Place
) -> Spans:
    """What is read of the events for the last time is taken out of them."""
    words, kinds = place.words, _kinds(line, events, role, is_kernel)
    events.pop("category"), events.pop("task_type")
    device = (role == HARDWARE) | (role == COMMUNICATION)
    copies = kinds == KIND["memcpy"]
    tables = {
        "dims": [words.texts[_dims(text)] for text in line.texts],
        "dtypes": [words.texts[_dtypes(text)] for text in line.texts],
        "operation": [*map(words.texts.__getitem__, line.texts)],
        "data_type": [words.texts[json.dumps(_dtype(text))] for text in line.texts],
        "algorithm": [words.texts[json.dumps(text.lower())] for text in line.texts],
    }
    told = {name: _table(table)[events.pop(name)] for name, table in tables.items()}
    args = {
        "dims": told["dims"],
        "dtypes": told["dtypes"],
        "dtype": told["data_type"],
        "algorithm": told["algorithm"],
        "bytes": np.where(copies, events.pop("size"), -1),
        "elements": events.pop("count"),
        "sequence": events.pop("sequence"),
        "forward_thread": events.pop("forward_thread"),
        "stream": np.where(role == HARDWARE, _streams(line)[events["thread"]], -1),
        **_meant(line, events, words),
    }
    args = {name: column for name, column in args.items() if (column >= 0).any()}
    args |= {
        "direction": np.where(copies, told["operation"], -1),
        "correlation": events.pop("connection"),
        "window": np.full(len(role), place.number, dtype=np.int32),
        "on_device": np.where(device, 1, -1).astype(np.int8),
        "external": np.full(len(role), -1, dtype=np.int32),
        "grid": np.full(len(role), -1, dtype=np.int32),
    }
    names = _table([words.names[_shown(name)[0]] for name in line.names])
    name, tracks = names[events.pop("name")], _table(_tracks(line, place))[events["thread"]]
    return Spans(events["ts_ns"], events["dur_ns"], kinds, name, tracks, args)


def _streams(line: Timeline) -> Array:
    """Of each thread, where it is one of the device."""
    return narrow(np.array([whole(tid) for _, tid in line.threads] or [-1], dtype=np.int64))


def _meant(line: Timeline, events: dict[str, Array], words: Vocabulary) -> dict[str, Array]:
    """What the full names of MindSpore's operators tell, where there are any."""
    full = [meaning(name) if is_full_name(name) else None for name in line.names]
    if not any(full):
        return {}
    scope = [words.scopes[m.scope] if m and m.scope else -1 for m in full]
    node = [words.texts[name] if m else -1 for m, name in zip(full, line.names, strict=True)]
    backward = [-1 if m is None else int(m.part == "backward") for m in full]
    part = [PARTS.index(m.part) if m else 0 for m in full]
    tables = {"scope": scope, "node": node, "backward": backward, "part": part}
    return {name: _table(values)[events["name"]] for name, values in tables.items()}


def _shown(name: str) -> tuple[str, bool]:
    return (meaning(name).type, True) if is_full_name(name) else (name, False)


def _kinds(line: Timeline, events: dict[str, Array], role: Array, is_kernel: Array) -> Array:
    """Each distinct (process, category, task type, name) is judged once."""
    planes = [bool(_PLANE.search(line.thread_names.get(thread, ""))) for thread in line.threads]
    is_plane = np.array(planes or [False])[events["thread"]]
    judged_by = [
        role, events["category"], events["task_type"], events["name"], is_plane * 1, is_kernel * 1,
    ]  # fmt: skip
    keys, back = distinct(judged_by)
    judged = [
        KIND[_kind(line, key[0], key[1], key[2], key[3], is_plane=bool(key[4]))]
        if not key[5] else KIND["kernel"]
        for key in keys
    ]  # fmt: skip
    return np.array(judged, dtype=np.int32)[back]


def _kind(line: Timeline, role: int, category: int, task: int, name: int, *, is_plane: bool) -> str:
    text = line.names[name]
    if role == HARDWARE:
        return _device_kind(text, line.texts[task] if task >= 0 else "")
    if role == COMMUNICATION:
        return "mark" if is_plane else "collective"
    if role == CANN:
        return "sync" if _SYNC.search(text) else "runtime"
    return _host_kind(text, line.categories[category])


def _device_kind(name: str, task: str) -> str:
    """Waits, records and the single sends of a collective are no work of their own."""
    if "MEMCPY" in name.upper():
        return "memcpy"
    if "MEMSET" in name.upper() and not _COMPUTES.search(task):
        return "memset"
    computes = _COMPUTES.search(task) if task else not _WAITS_OR_TELLS.search(name)
    return "kernel" if computes else "mark"


def _host_kind(name: str, category: str) -> str:
    if is_full_name(name):
        return "collective" if meaning(name).is_collective else "op"
    kind = _KIND_OF_CATEGORY.get(category, "op" if not category else "annotation")
    if kind == "op" and _DATA.match(name):
        return "data"
    return "annotation" if kind == "op" and _ANNOTATION.match(name) else kind


def _tracks(line: Timeline, place: Place) -> list[int]:
    """Threads of the host under their real process, streams under the device."""
    roles, found = _roles(line), []
    for pid, tid in line.threads:
        role, name = roles.get(pid, HOST), line.thread_names.get((pid, tid), "")
        if role == HARDWARE:
            track = Track(place.device, None, whole(tid))
            name = f"stream {tid}"
        elif role == COMMUNICATION:
            track = Track(place.device, None, -1 - max(0, whole(tid)))
            name = name or f"communication {tid}"
        else:
            process = whole(pid) >> _PROCESS_SHIFT if role == CANN else whole(pid)
            track, name = Track("cpu", process, whole(tid)), name or f"thread {tid}"
        place.words.track_names.setdefault(track, name)
        found.append(place.words.tracks[track])
    return found


def _link(line: Timeline, base: Spans, events: dict[str, Array], words: Vocabulary) -> None:
    """Arrows join an operator, by its thread and start, with its work on the device."""
    arrows, rows = line.arrows, np.arange(len(base))
    starts, ends = np.flatnonzero(arrows.is_start), np.flatnonzero(~arrows.is_start.astype(bool))
    if not len(starts) or not len(ends):
        return
    known = (events["ts_ns"], events["thread"])
    source = paired((arrows.ts_ns[starts], arrows.thread[starts]), known)
    target = paired((arrows.ts_ns[ends], arrows.thread[ends]), known)
    of_number = np.full(int(arrows.number.max()) + 1, -1, dtype=np.int64)
    of_number[arrows.number[starts]] = source
    cause = of_number[arrows.number[ends]]
    joined = (cause >= 0) & (target >= 0)
    joined[joined] &= base.kind[cause[joined]] == KIND["op"]
    external = base.args["external"]
    external[cause[joined]] = rows[cause[joined]] + 1
    external[target[joined]] = rows[cause[joined]] + 1
    _put_directions(base, target[joined], cause[joined], words)
    # The operator says more than the call that CANN made for it on another thread.
    base.args["correlation"] = base.args["correlation"].copy()
    base.args["correlation"][target[joined]] = -1


def _put_directions(base: Spans, copies: Array, causes: Array, words: Vocabulary) -> None:
    """The operator behind a copy has its way in its name: acl_memcpy_host_to_device."""
    rows = (base.kind[copies] == KIND["memcpy"]) & (base.args["direction"][copies] < 0)
    names = list(words.names)
    ways = [words.texts[names[code]] for code in base.name[causes[rows]].tolist()]
    base.args["direction"][copies[rows]] = ways


def _overwrite(base: Spans, match: Array, kernels: Kernels, place: Place) -> None:
    """kernel_details.csv is what op_statistic.csv adds up: its lengths and types count."""
    rows = np.flatnonzero(match >= 0)
    told = _kernel_spans(kernels, match[rows], place)
    base.dur_ns[rows] = told.dur_ns
    base.name = base.name.copy()
    base.name[rows] = told.name
    base.args["grid"][rows] = told.args["grid"]


def _kernel_spans(kernels: Kernels, rows: Array, place: Place) -> Spans:
    words, columns = place.words, kernels.columns
    names = _table([words.names[text] for text in kernels.shown()])
    texts, back = kernels.grids()
    grids = _table([words.texts[text] if text else -1 for text in texts])
    streams, which = np.unique(columns["stream"][rows], return_inverse=True)
    tracks = []
    for stream in streams.tolist():
        track = Track(place.device, None, stream if stream >= 0 else None)
        words.track_names.setdefault(track, f"stream {stream}" if stream >= 0 else "kernels")
        tracks.append(words.tracks[track])
    full = [meaning(name) if is_full_name(name) else None for name in kernels.names]
    scopes = _table([words.scopes[m.scope] if m and m.scope else -1 for m in full])
    backward = _table([-1 if m is None else int(m.part == "backward") for m in full])
    parts = _table([PARTS.index(m.part) if m else 0 for m in full])
    name = columns["name"][rows]
    args = {
        "window": np.full(len(rows), place.number, dtype=np.int64),
        "on_device": np.ones(len(rows), dtype=np.int64),
        "stream": columns["stream"][rows],
        "grid": grids[back[rows]].astype(np.int64),
        "scope": scopes[name].astype(np.int64),
        "backward": backward[name].astype(np.int64),
        "part": parts[name].astype(np.int64),
    }
    kind = np.full(len(rows), KIND["kernel"], dtype=np.int32)
    return Spans(
        columns["ts_ns"][rows], columns["dur_ns"][rows], kind,
        names[kernels.shown_code[rows]] if len(rows) else np.zeros(0, dtype=np.int32),
        _table(tracks)[which], args,
    )  # fmt: skip


def appended(first: Spans, second: Spans) -> Spans:
    if not len(second):
        return first  # all of a long timeline would be copied
    names = dict.fromkeys([*first.args, *second.args])
    both = {
        column: np.concatenate([getattr(first, column), getattr(second, column)])
        for column in ("ts_ns", "dur_ns", "kind", "name", "track")
    }
    args = {name: np.concatenate([first.arg(name), second.arg(name)]) for name in names}
    return Spans(**both, args=args)


def whole(value: Any) -> int:
    try:
        number = int(value)
    except (ValueError, TypeError, OverflowError):
        return -1
    return number if 0 <= number < 2**62 else -1


def _table(values: list[int]) -> Array:
    """To look numbers up in; the last entry answers for -1."""
    return np.array([*values, -1], dtype=np.int32)


def _dims(text: str) -> str:
    """`32,3,224;\\r\\n64;\\r\\n` as JSON [[32, 3, 224], [64], []]."""
    cells = [cell.strip() for cell in text.split(";")]
    try:
        return json.dumps([[int(n) for n in cell.split(",")] if cell else [] for cell in cells])
    except ValueError:
        return "[]"


def _dtypes(text: str) -> str:
    return json.dumps([cell.strip() for cell in text.split(";")])


def _dtype(text: str) -> str:
    return _DTYPES.get(text.upper(), text.lower())
