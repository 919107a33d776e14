"""PyTorch's snapshots of device memory: `torch.cuda.memory._snapshot()`, pickled.

Its history becomes allocations, counters of allocated and reserved bytes, and an instant for each
allocation whose name is where in the code it was made, innermost first. Blocks that were allocated
before the history begins count from its first moment. Where memory ran out there is a mark. The
pickle is read as plain data only (ingest/plain_pickle.py): nothing in it is run. Left out are
annotations, the pools that segments belong to, and frees asked for that were not completed.
"""

import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from strobe.errors import UnreadableTrace
from strobe.ingest.building.levels import levels
from strobe.ingest.formats import compressed
from strobe.ingest.formats.kinds import KIND
from strobe.ingest.formats.torch_memory import plain_pickle
from strobe.ingest.importing.sources import Found, Peek, Source
from strobe.ingest.trace import spans as spans_of
from strobe.ingest.trace.codes import Array
from strobe.ingest.trace.spans import Track, Vocabulary
from strobe.ingest.trace.trace import Memory, Trace
from strobe.units import size as size_text

NAME = "PyTorch memory snapshot"

_PICKLE = re.compile(rb"\x80[\x02-\x05]")
_KEYS = (b"device_traces", b"segments", b"segment_type", b"active_allocated")
_LARGEST_BYTES = 1 << 30
_MOST_ENTRIES = 20_000_000
_SINCE_1970_US = 10**15
_FRAMES_SHOWN, _FRAMES_SEEN = 6, 1000
_TEXT_SHOWN = 200
_ACTIVE = ("active_allocated", "active_awaiting_free", "active_pending_free")
# What each action does to the bytes that are allocated, and to those that are reserved.
_ALLOCATED = {"alloc": 1, "free_completed": -1, "free": -1}
_RESERVED = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}
_RANK_IN_NAME = re.compile(r"(?<![a-z])rank[-_ ]?(\d{1,9})(?!\d)", re.IGNORECASE)


class _History(NamedTuple):
    """The entries of one device that can be used, as columns, in order of time."""

    ts_ns: Array
    action: list[str]
    address: Array
    bytes: Array
    frames: list[Any]
    free: Array  # bytes free when memory ran out


def claim(folder: Path) -> list[Found]:
    return []


def recognise(peek: Peek) -> Found | None:
    if not _PICKLE.match(peek.head) or not any(key in peek.head for key in _KEYS):
        return None
    rank = _RANK_IN_NAME.search(peek.path.name)
    return Found((peek.path,), rank=int(rank.group(1)) if rank else None)


def read(source: Source, words: Vocabulary) -> Trace:
    trace = Trace(words)
    snapshot = _loaded(source.path, trace)
    traces = _listed(snapshot.get("device_traces"))
    blocks = _blocks(_listed(snapshot.get("segments")))
    histories = {number: _history(entries, trace, source) for number, entries in enumerate(traces)}
    starts = [int(h.ts_ns[0]) for h in histories.values() if len(h.ts_ns)]
    trace.is_unix = bool(starts) and min(starts) > _SINCE_1970_US * 1000
    if not starts:
        trace.said.add(source.path.name, "it has no history: its blocks count from one moment")
    start = min(starts, default=0)
    for device in sorted({*histories, *(number for number, _, _ in blocks)}):
        history = histories.get(device) or _history([], trace, source)
        if len(history.ts_ns) or any(number == device for number, _, _ in blocks):
            _add_device(trace, device, history, blocks, _reserved(snapshot, device), start, source)
    return trace


def _loaded(path: Path, trace: Trace) -> dict[str, Any]:
    parts, size = [], 0
    for block in compressed.blocks(path, lambda what: trace.said.add(path.name, what)):
        parts.append(block)
        size += len(block)
        if size > _LARGEST_BYTES:
            raise UnreadableTrace.of("errors/traces.large-snapshot", where=str(path))
    try:
        found = plain_pickle.loads(b"".join(parts))
    except plain_pickle.Refused as reason:
        raise UnreadableTrace.of(
            "errors/traces.unsafe-pickle", where=str(path), reason=reason
        ) from reason
    if isinstance(found, list):  # torch.cuda.memory_snapshot() gives the segments alone
        return {"segments": found}
    if not isinstance(found, dict):
        raise UnreadableTrace.of("errors/traces.no-snapshot", where=str(path))
    return found


def _listed(found: Any) -> list[Any]:
    return found if isinstance(found, list) else []


def _whole(found: Any, otherwise: int = 0, limit: int = 2**63) -> int:
    return found if type(found) is int and 0 <= found < limit else otherwise


def _size(found: Any) -> int:
    return _whole(found, limit=2**48)


def _history(entries: Any, trace: Trace, source: Source) -> _History:
    file = source.path.name
    given = _listed(entries)[:_MOST_ENTRIES]
    good = [e for e in given if isinstance(e, dict) and isinstance(e.get("action"), str)]
    trace.said.add(file, "an entry of the history is none and was left out", len(given) - len(good))
    timed = [e for e in good if _whole(e.get("time_us"), -1) >= 0]
    if len(timed) < len(good):
        what = "the history has no times: its entries are placed one microsecond apart"
        trace.said.add(file, what, len(good) - len(timed))
        times = np.arange(len(good), dtype=np.int64)
    else:
        times = np.array([e["time_us"] for e in good], dtype=np.int64)
        times = np.where(times < 2**53, times, 0)
    order = np.argsort(times, kind="stable")
    good = [good[i] for i in order.tolist()]
    return _History(
        _apart(times[order]),
        [e["action"] for e in good],
        np.array([_whole(e.get("addr")) for e in good], dtype=np.int64),
        np.array([_size(e.get("size")) for e in good], dtype=np.int64),
        [e.get("frames") for e in good],
        np.array([_size(e.get("device_free")) for e in good], dtype=np.int64),
    )


def _apart(times_us: Array) -> Array:
    """In nanoseconds; what happened in one microsecond is told apart by its order."""
    if not len(times_us):
        return times_us
    first = np.searchsorted(times_us, times_us, side="left")
    apart: Array = times_us * 1000 + np.minimum(np.arange(len(times_us)) - first, 999)
    return apart


def _blocks(segments: list[Any]) -> list[tuple[int, int, int]]:
    """Device, address and size of every block in use at the moment of the snapshot."""
    found: list[tuple[int, int, int]] = []
    for segment in segments[:_MOST_ENTRIES]:
        if not isinstance(segment, dict):
            continue
        device, address = _whole(segment.get("device")), _whole(segment.get("address"))
        for block in _listed(segment.get("blocks")):
            if not isinstance(block, dict) or len(found) >= _MOST_ENTRIES:
                break
            size = _size(block.get("size"))
            if block.get("state") in _ACTIVE:
                found.append((device, _whole(block.get("address"), _whole(address)), size))
            address += size  # before 2.1 a block did not say where it lies
    return found


def _reserved(snapshot: dict[str, Any], device: int) -> int:
    segments = [s for s in _listed(snapshot.get("segments")) if isinstance(s, dict)]
    mine = [s for s in segments if _whole(s.get("device")) == device]
    return min(sum(_size(segment.get("total_size")) for segment in mine), 2**62)


def _add_device(
    trace: Trace, device: int, history: _History, blocks: list[tuple[int, int, int]],
    reserved: int, start: int, source: Source,
) -> None:  # fmt: skip
    words = trace.words
    track = words.tracks[Track(f"cuda:{device}", None, None)]
    words.track_names[Track(f"cuda:{device}", None, None)] = "allocator"
    in_use = {address: size for number, address, size in blocks if number == device}
    change = np.array([_ALLOCATED.get(action, 0) for action in history.action], dtype=np.int64)
    earlier = _allocated_before(history, change, in_use)
    rows = np.flatnonzero(change)
    ts = np.concatenate([np.full(len(earlier), start), history.ts_ns[rows]])
    sizes = [size for _, size in earlier]
    taken = np.concatenate([np.array(sizes, dtype=np.int64), (change * history.bytes)[rows]])
    addresses = np.array([address for address, _ in earlier], dtype=np.int64)
    trace.memory.append(
        Memory(
            ts, np.full(len(ts), track), np.concatenate([addresses, history.address[rows]]), taken,
            np.full(len(ts), words.texts[f"cuda:{device}"]),
        )
    )  # fmt: skip
    trace.counters.append(levels(words, f"cuda:{device} memory_bytes", ts, np.cumsum(taken)))
    grows = np.array([_RESERVED.get(action, 0) for action in history.action], dtype=np.int64)
    grown = np.cumsum((grows * history.bytes)[grows != 0])
    at = np.concatenate([[start], history.ts_ns[grows != 0]]).astype(np.int64)
    before = reserved - (int(grown[-1]) if len(grown) else 0)
    level = before + np.concatenate([[0], grown])
    trace.counters.append(levels(words, f"cuda:{device} reserved_bytes", at, level))
    _add_events(trace, history, track, source)


def _allocated_before(
    history: _History, change: Array, in_use: dict[int, int]
) -> list[tuple[int, int]]:
    """Blocks that were there before the history began: freed in it, or there at its end."""
    found, seen = [], set[int]()
    rows = np.flatnonzero(change)
    columns = (history.address[rows], history.bytes[rows], change[rows])
    for address, size, sign in zip(*(c.tolist() for c in columns), strict=True):
        if address not in seen:
            seen.add(address)
            if sign < 0:
                found.append((address, size))
    return found + [(a, size) for a, size in in_use.items() if a not in seen and size]


def _add_events(trace: Trace, history: _History, track: int, source: Source) -> None:
    """An instant for each allocation, and a mark where memory ran out or a snapshot was taken."""
    words = trace.words
    known: dict[int, int] = {}  # stacks are shared between entries: each is written once
    rows, names, kinds = [], [], []
    for row, action in enumerate(history.action):
        if action == "alloc":
            frames = history.frames[row]
            if id(frames) not in known:
                known[id(frames)] = words.names[_place(frames)]
            names.append(known[id(frames)])
            kinds.append(KIND["python"])
        elif action == "oom":
            asked, free = (size_text(int(c[row])) for c in (history.bytes, history.free))
            names.append(words.names[f"out of memory: {asked} asked for, {free} free"])
            kinds.append(KIND["mark"])
        elif action == "snapshot":
            names.append(words.names["memory snapshot"])
            kinds.append(KIND["mark"])
        else:
            continue
        rows.append(row)
    at = np.array(rows, dtype=np.int64)
    made = spans_of.make(
        history.ts_ns[at], np.zeros(len(at), dtype=np.int64), 0, np.array(names, dtype=np.int64),
        np.full(len(at), track),
    )  # fmt: skip
    made.kind = np.array(kinds, dtype=np.int32)
    made.args["window"] = np.full(len(at), source.number, dtype=np.int64)
    trace.spans.append(made)


def _place(frames: Any) -> str:
    """The Python code that allocated, innermost first; torch's own only if there is no other."""
    own: list[str] = []
    torch: list[str] = []
    for frame in _listed(frames)[:_FRAMES_SEEN]:
        file = str(frame.get("filename", "")) if isinstance(frame, dict) else ""
        if file.endswith(".py"):
            name = str(frame.get("name", ""))[:_TEXT_SHOWN]
            text = f"{file[-_TEXT_SHOWN:]}({_whole(frame.get('line'))}): {name}"
            (torch if "/torch/" in file else own).append(text)
    return " < ".join((own or torch)[:_FRAMES_SHOWN]) or "allocation"
