"""Memory of an NPU: memory_record.csv and npu_module_mem.csv as counters, operator_memory.csv as
blocks. Addresses are not told: blocks are numbered instead."""

from pathlib import Path

import numpy as np

from strobe.ingest.formats.ascend import csv_table as ascend_csv
from strobe.ingest.formats.ascend.numbers import NEVER, moments, scaled
from strobe.ingest.formats.kinds import KIND
from strobe.ingest.trace.codes import Array, in_order_once
from strobe.ingest.trace.problems import Problems
from strobe.ingest.trace.spans import Spans, Vocabulary
from strobe.ingest.trace.trace import Memory, Samples

_MB, _KB = 1 << 20, 1 << 10
_AMOUNTS = {
    "allocated": ("Total Allocated",), "reserved": ("Total Reserved",), "active": ("Total Active",),
}  # fmt: skip
_RECORD: ascend_csv.Names = {
    "ts_ns": ("Timestamp",), "component": ("Component",),
    "device": ("Device Type", "Device"), **_AMOUNTS,
}  # fmt: skip
_BLOCKS: ascend_csv.Names = {
    "name": ("Name",), "size": ("Size",), "ts_ns": ("Allocation Time",),
    "freed_ns": ("Release Time",), "lasted_ns": ("Duration",), "device": ("Device Type", "Device"),
}  # fmt: skip


def record(path: Path, words: Vocabulary, said: Problems, of: str = "") -> list[Samples]:
    """What the allocators held: a counter for each of them, in bytes. `of` goes before its name."""
    found = []
    for part in ascend_csv.parts(path, _RECORD, ("ts_ns",), said):
        ts_ns = moments(part.text("ts_ns"), part.unit("ts_ns"))
        said.add(path.name, "a line has no time and was left out", int((ts_ns == NEVER).sum()))
        places = list(zip(part.text("device"), part.text("component"), strict=True))
        for amount in _AMOUNTS:
            value = scaled(part.text(amount), _MB)
            known = (ts_ns != NEVER) & (value >= 0)
            names = words.names.of(
                (f"{device_name(d)} {of}{c.strip()} {amount} (bytes)" for d, c in places),
                part.count,
            )
            found.append(Samples(ts_ns[known], names[known], value[known]))
    return [samples for samples in found if len(samples.ts_ns)]


def blocks(path: Path, hosts: Spans, words: Vocabulary, said: Problems) -> list[Memory]:
    """Blocks, each under the thread of the operator of its name around its allocation."""
    found, first = [], 1
    for part in ascend_csv.parts(path, _BLOCKS, ("size", "ts_ns"), said):
        size = scaled(part.text("size"), _KB)
        ts_ns = moments(part.text("ts_ns"), part.unit("ts_ns"))
        known = (ts_ns != NEVER) & (size > 0)
        said.add(path.name, "a block does not say when it was allocated, or its size: left out",
                 int((~known).sum()))  # fmt: skip
        freed = _freed(part, ts_ns)
        device = words.texts.of(map(device_name, part.text("device")), part.count)
        names = [words.names.get(name, -1) for name in part.text("name")]
        track = _threads(np.array(names, dtype=np.int64), ts_ns, hosts)
        address = np.arange(first, first + part.count)
        first += part.count
        found.append(Memory(*(c[known] for c in (ts_ns, track, address, size, device))))
        gone = known & (freed != NEVER)
        found.append(Memory(*(c[gone] for c in (freed, track, address, -size, device))))
    return found


def device_name(text: str) -> str:
    """npu:0, from NPU:0 and the like."""
    return text.strip().lower() or "npu"


def _freed(part: ascend_csv.Part, ts_ns: Array) -> Array:
    """By the moment of the release, or how long it was until then."""
    if "freed_ns" in part.columns:
        freed = moments(part.text("freed_ns"), part.unit("freed_ns"))
    else:
        lasted = scaled(part.text("lasted_ns"), part.unit("lasted_ns"))
        freed = np.where((lasted >= 0) & (ts_ns != NEVER), ts_ns + lasted, NEVER)
    return np.where(freed >= ts_ns, freed, NEVER)


def _threads(name: Array, ts_ns: Array, hosts: Spans) -> Array:
    """The track of the last operator of this name that began before a moment and lasts; or -1."""
    result = np.full(len(name), -1, dtype=np.int64)
    operators = np.flatnonzero(hosts.kind == KIND["op"])
    operators = operators[np.argsort(hosts.ts_ns[operators], kind="stable")]
    for number in in_order_once(name[name >= 0]).tolist():
        mine = operators[hosts.name[operators] == number]
        rows = np.flatnonzero(name == number)
        if not len(mine):
            continue
        at = np.searchsorted(hosts.ts_ns[mine], ts_ns[rows], side="right") - 1
        around = mine[np.maximum(at, 0)]
        inside = (at >= 0) & (hosts.ts_ns[around] + hosts.dur_ns[around] >= ts_ns[rows])
        result[rows] = np.where(inside, hosts.track[around], -1)
    return result
