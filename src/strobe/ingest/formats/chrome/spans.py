"""The events of any Chrome trace as spans of a rank: tracks, kinds, and beginnings with ends."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from strobe.ingest.formats import kinds
from strobe.ingest.formats.chrome.events import PHASE, Events, Thread
from strobe.ingest.formats.chrome.pairs import Joiner
from strobe.ingest.formats.kinds import KIND
from strobe.ingest.trace import spans as spans_of
from strobe.ingest.trace.codes import Array, distinct, mapped
from strobe.ingest.trace.problems import Problems
from strobe.ingest.trace.spans import Spans, Track, Vocabulary

# How writers of traces name the process that stands for a device: "/device:GPU:0", "TPU 3".
_DEVICE = re.compile(r"(?:^|[\s/:(])(gpu|cuda|tpu|npu|xpu)[ :_-]?(\d{1,4})\b", re.IGNORECASE)
_OLD_TORCH_DEVICE = "CUDA functions"  # before Kineto; its threads are numbers of devices
_HOST_KINDS = {
    "op": "op", "operator": "op", "node": "op", "cpu functions": "op", "kernel": "kernel",
    "fee": "python", "python": "python", "gpu_op": "kernel",
}  # fmt: skip
_COPY, _FILL = re.compile("memcpy|copy", re.IGNORECASE), re.compile("memset", re.IGNORECASE)
_LARGEST = 2**62


@dataclass
class Places:
    """Where the threads of a file went: their tracks, and whether these are of a device."""

    track: Array
    on_device: Array
    process: list[int | None]
    family: Array  # a number for each process


def places(events: Events, words: Vocabulary) -> Places:
    threads = list(events.threads)
    found = [_track(thread, number, events) for number, thread in enumerate(threads)]
    for number in sorted(range(len(threads)), key=lambda n: (*_order(threads[n], events), n)):
        words.track_names.setdefault(found[number], _name(threads[number], events))
        words.tracks[found[number]]
    pids = list(dict.fromkeys(pid for pid, _ in threads))
    return Places(
        np.array([words.tracks[track] for track in found], dtype=np.int64),
        np.array([track.device != "cpu" for track in found], dtype=bool),
        [track.process for track in found],
        np.array([pids.index(pid) for pid, _ in threads], dtype=np.int64),
    )


def _track(thread: Thread, number: int, events: Events) -> Track:
    pid, tid = thread
    process, own = whole(pid), whole(tid)
    name = events.named.processes.get(pid) or str(pid)
    device = _DEVICE.search(name)
    if pid == _OLD_TORCH_DEVICE:
        return Track(f"cuda:{own or 0}", None, 0)
    if process is None or own is None:  # names instead of numbers: a number of our own
        own = -1000 - number
    if device is None:
        return Track("cpu", process, own)
    kind = device.group(1).lower()
    return Track(f"{kind}:{device.group(2)}", process, own)


def _name(thread: Thread, events: Events) -> str:
    pid, tid = thread
    own = events.named.threads.get(thread) or (
        tid if tid and isinstance(tid, str) else f"thread {tid}"
    )
    process = events.named.processes.get(pid) or (pid if isinstance(pid, str) else "")
    several = len({pid for pid, _ in events.threads}) > 1
    return f"{process}: {own}" if process and several else str(own)


def _order(thread: Thread, events: Events) -> tuple[float, float]:
    named = events.named
    return named.process_order.get(thread[0], 0.0), named.thread_order.get(thread, 0.0)


def whole(label: Any) -> int | None:
    try:
        number = int(label)
    except (ValueError, TypeError, OverflowError):
        return None
    return number if abs(number) < _LARGEST else None


def complete(events: Events, where: Places, words: Vocabulary, window: int) -> Iterator[Spans]:
    """Events that came with their length, part by part."""
    for part in events.complete:
        spans = Spans(part.ts_ns, part.dur_ns, part.kind, part.name, part.track, dict(part.args))
        yield _placed(spans, events, where, words, window)
    events.complete.clear()


def paired(
    events: Events, where: Places, words: Vocabulary, window: int, file: str, said: Problems
) -> Iterator[Spans]:
    """Phases B and E: nested on each thread. What was never ended lasts as long as its thread."""
    last = np.full(len(where.track), np.iinfo(np.int64).min)
    for part in events.edges:
        np.maximum.at(last, part.track, part.ts_ns)
    joiner = Joiner((PHASE["B"],), last.__getitem__, words.names.get("", -1))
    for slice_ in events.edges.slices():
        found = joiner.take(slice_)
        found.args.clear()
        yield _placed(found, events, where, words, window)
    joiner.tell(file, said)


def instants(events: Events, where: Places, window: int) -> Iterator[Spans]:
    for part in events.instants:
        found = spans_of.make(
            part.ts_ns, part.dur_ns, KIND["mark"], part.name, mapped(part.track, where.track)
        )
        found.args["window"] = np.full(len(part), window, dtype=np.int64)
        yield found
    events.instants.clear()


def _placed(spans: Spans, events: Events, where: Places, words: Vocabulary, window: int) -> Spans:
    """From numbers of categories and threads to kinds and tracks."""
    thread = np.asarray(spans.track, dtype=np.int64)
    on_device = where.on_device[thread] if len(thread) else np.zeros(0, dtype=bool)
    pairs, back = distinct([np.asarray(spans.kind), np.asarray(spans.name), on_device * 1])
    names, categories = list(words.names), list(events.categories)
    judged = [KIND[kind_of(categories[c], names[n], bool(d))] for c, n, d in pairs]
    spans.kind = np.array(judged, dtype=np.int32)[back] if judged else back.astype(np.int32)
    spans.track = mapped(thread, where.track)
    spans.args["window"] = np.full(len(spans), window, dtype=np.int64)
    spans.args["on_device"] = np.where(on_device, 1, -1)
    return spans


def kind_of(category: str, name: str, on_device: bool) -> str:
    """What a span of a tool that we do not know by name is."""
    known = kinds.kind_of(category, name)
    if known != "mark":
        return known
    if not on_device:
        return _HOST_KINDS.get(category.lower(), "annotation")
    if _FILL.search(name):
        return "memset"
    return "memcpy" if _COPY.search(name) else kinds.kind_of("kernel", name)
