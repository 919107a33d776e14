"""A Kineto file's events as spans of a rank: kinds, tracks and arguments in the rank's words."""

from typing import NamedTuple

import numpy as np

from strobe.ingest import classify, kineto
from strobe.ingest.classify import KIND
from strobe.ingest.codes import Array, mapped
from strobe.ingest.kineto_json import TEXTS
from strobe.ingest.spans import Spans, Track, Vocabulary
from strobe.ingest.trace import Memory

_DEVICES = {0: "cpu", 1: "cuda", 6: "hip", 12: "xpu", 13: "mps", 20: "privateuseone"}


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
    track = mapped(events.thread, _track_table(trace, words))
    track = np.where(device, _device_tracks(trace, device, words), track)
    texts = [words.texts[text] for text in trace.texts]
    args = {
        name: mapped(column, texts) if name in TEXTS else column
        for name, column in events.args.items()
    }
    args["module"] = np.where(kinds == KIND["module"], mapped(events.name, renamed.scopes), -1)
    args["window"] = np.full(len(kinds), number, dtype=np.int64)
    args["on_device"] = np.where(device, 1, -1)
    shown = [words.names[name] for name in renamed.names]
    return Spans(events.ts_ns, events.dur_ns, kinds, mapped(events.name, shown), track, args)


def memory(trace: kineto.Trace, words: Vocabulary) -> Memory:
    found = trace.memory
    devices = found.device_type * 2**16 + found.device_id
    distinct, back = np.unique(devices, return_inverse=True)
    codes = [
        words.texts[_device_name(d + 1 >> 16, (d + 1 & 0xFFFF) - 1)] for d in distinct.tolist()
    ]
    return Memory(
        found.ts_ns, mapped(found.thread, _track_table(trace, words)),
        found.address, found.bytes, mapped(back, codes),
    )  # fmt: skip


def _device_name(kind: int, number: int) -> str:
    name = _DEVICES.get(kind, f"device{kind}")
    return name if number < 0 or name == "cpu" else f"{name}:{number}"


def _track_table(trace: kineto.Trace, words: Vocabulary) -> list[int]:
    table = []
    for pid, tid in trace.threads:
        track = Track("cpu", _whole(pid), _whole(tid))
        table.append(words.tracks[track])
        name = trace.thread_names.get((pid, tid)) or f"thread {tid}"
        words.track_names.setdefault(track, name)
    return table


def _device_tracks(trace: kineto.Trace, device: Array, words: Vocabulary) -> Array:
    """Streams by the device and stream arguments; what lacks them, by its pid and tid."""
    pids = np.array([_whole(pid) or 0 for pid, _ in trace.threads] or [0])
    tids = np.array([_whole(tid) or 0 for _, tid in trace.threads] or [0])
    thread = trace.events.thread
    args = trace.events.args
    number = np.where(args["device"] >= 0, args["device"], pids[thread])
    stream = np.where(args["stream"] >= 0, args["stream"], tids[thread])
    result = np.full(len(thread), -1, dtype=np.int64)
    for where, which in {
        (int(n), int(s)) for n, s in zip(number[device], stream[device], strict=True)
    }:
        track = Track(f"cuda:{where}", None, which)
        result[device & (number == where) & (stream == which)] = words.tracks[track]
        words.track_names.setdefault(track, f"stream {which}")
    return result


def _whole(value: int | str) -> int | None:
    try:
        number = int(value)
    except ValueError:
        return None
    return number if abs(number) < 2**62 else None
