"""torch.profiler's `export_memory_timeline("….raw.json.gz")`: bytes of tensors by what they are.

A JSON list of [time in ns or -1, action, bytes, category], for one device that it does not name.
Each category becomes a counter, and so does their sum. Bytes are signed, but for what was there
before (time -1), so a counter is their running sum.
"""

import re
from pathlib import Path

import msgspec
import numpy as np

from strobe.errors import UnreadableTrace
from strobe.ingest.building.levels import levels
from strobe.ingest.formats import compressed
from strobe.ingest.importing.sources import Found, Peek, Source
from strobe.ingest.trace.codes import Array
from strobe.ingest.trace.spans import Vocabulary
from strobe.ingest.trace.trace import Trace

NAME = "torch.profiler memory timeline"

_EVENT = rb"\[\s*-?\d{1,19}\s*,\s*[1-4]\s*,\s*-?\d{1,19}\s*,\s*[0-7]\s*\]"
_HEAD = re.compile(rb"\s*\[\s*" + _EVENT + rb"\s*(?:,\s*" + _EVENT + rb"|\])")
_LARGEST_BYTES = 1 << 30
# In the order of torch's own numbers for them.
_CATEGORIES = (
    "parameter", "optimizer_state", "input", "temporary", "activation", "gradient",
    "autograd_detail", "other",
)  # fmt: skip


def claim(folder: Path) -> list[Found]:
    return []


def recognise(peek: Peek) -> Found | None:
    return Found((peek.path,)) if _HEAD.match(peek.head) else None


def read(source: Source, words: Vocabulary) -> Trace:
    trace = Trace(words, is_unix=True)
    events = _events(source.path, trace)
    ts, changed, category = events[:, 0], events[:, 2], events[:, 3]
    known = (ts >= 0) & (ts < 2**62)
    ts = np.where(known, ts, ts[known].min(initial=2**62) if known.any() else 0)
    order = np.argsort(ts, kind="stable")
    ts, changed, category = ts[order], changed[order], category[order]
    for number, name in enumerate(_CATEGORIES):
        mine = category == number
        trace.counters.append(
            levels(words, f"device {name}_bytes", ts[mine], np.cumsum(changed[mine]))
        )
    trace.counters.append(levels(words, "device memory_bytes", ts, np.cumsum(changed)))
    return trace


def _events(path: Path, trace: Trace) -> Array:
    parts, size = [], 0
    for block in compressed.blocks(path, lambda what: trace.said.add(path.name, what)):
        parts.append(block)
        size += len(block)
        if size > _LARGEST_BYTES:
            raise UnreadableTrace.of("errors/traces.large-memory-timeline", where=str(path))
    text = b"".join(parts)
    try:
        found = msgspec.json.decode(text, type=list[tuple[int, int, int, int]])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        found = _whole_events(text)
        trace.said.add(path.name, "it is cut short or damaged: what is whole before that was read")
    small = [event for event in found if all(abs(number) < 2**62 for number in event)]
    trace.said.add(path.name, "an event has numbers out of range", len(found) - len(small))
    return np.array(small, dtype=np.int64).reshape(-1, 4)


def _whole_events(text: bytes) -> list[tuple[int, int, int, int]]:
    events = []
    place = text.find(b"[") + 1
    pattern = re.compile(rb"\s*,?\s*(" + _EVENT + rb")")
    while found := pattern.match(text, place):
        try:
            events.append(msgspec.json.decode(found.group(1), type=tuple[int, int, int, int]))
        except msgspec.DecodeError:  # 007 is no number
            break
        place = found.end()
    return events
