"""Blocks of memory from the instants at which they were allocated and freed."""

from typing import Any

import numpy as np

from strobe.ingest.trace.codes import Array, occurring, strings
from strobe.ingest.trace.problems import Problems
from strobe.ingest.trace.spans import Spans, Vocabulary
from strobe.ingest.trace.trace import Memory
from strobe.store.nullable import Nullable


def allocations(
    memory: Memory, inside: Array, *, words: Vocabulary, rank: int, said: Problems
) -> dict[str, Any]:
    """The stored table; `inside` is the id of the event around each instant, or -1.

    A free of a block that was allocated before the recording is left out.
    """
    unplaced = memory.address == 0
    said.add("memory", "a memory event has no address and was left out", int(unplaced.sum()))
    rows = np.flatnonzero(~unplaced)
    if not len(rows):
        return {}
    allocated, freed_by = pairs(memory, rows)
    order = np.lexsort((allocated, memory.ts_ns[allocated]))
    allocated, freed_by = allocated[order], freed_by[order]
    return {
        "rank": np.full(len(allocated), rank, dtype=np.int64),
        "address": memory.address[allocated],
        "bytes": memory.bytes[allocated],
        "ts_ns": memory.ts_ns[allocated],
        "freed_ns": Nullable(memory.ts_ns[freed_by], freed_by < 0),
        "device": strings(memory.device[allocated], words.texts),
        "event_id": Nullable(inside[allocated], inside[allocated] < 0),
    }


def pairs(memory: Memory, rows: Array) -> tuple[Array, Array]:
    """Rows of allocations, and for each the row of its free or -1.

    The next event at the same address is the free; if it is another allocation or of another size,
    the free was not recorded, as it happened between two windows.
    """
    device = memory.device
    order = rows[np.lexsort((rows, memory.ts_ns[rows], memory.address[rows], device[rows]))]
    this, following = order, np.append(order[1:], -1)
    same = (following >= 0) & (memory.address[this] == memory.address[following])
    same &= device[this] == device[following]
    same &= memory.bytes[this] == -memory.bytes[following]
    is_allocation = memory.bytes[this] > 0
    freed = np.where(same, following, -1)
    return this[is_allocation], freed[is_allocation]


def containing(track: Array, ts_ns: Array, spans: Spans, parent: Array) -> Array:
    """The innermost span of a track around each moment, or -1."""
    result = np.full(len(ts_ns), -1, dtype=np.int64)
    for number in occurring(track)[0].tolist():
        rows = np.flatnonzero(spans.track == number)
        moments = np.flatnonzero(track == number)
        if not len(rows):
            continue
        place = np.searchsorted(spans.ts_ns[rows], ts_ns[moments], side="right") - 1
        result[moments] = np.where(place >= 0, rows[place], -1)
    end_ns = spans.ts_ns + spans.dur_ns
    while True:
        over = np.flatnonzero(result >= 0)
        over = over[end_ns[result[over]] < ts_ns[over]]
        if not len(over):
            return result
        result[over] = parent[result[over]]


def joined(parts: list[Memory]) -> Memory:
    """All instants in order of time."""
    nothing = np.zeros(0, dtype=np.int64)
    columns = {
        name: np.concatenate([nothing, *(getattr(part, name) for part in parts)])
        for name in Memory._fields
    }
    order = np.argsort(columns["ts_ns"], kind="stable")
    return Memory(**{name: column[order] for name, column in columns.items()})
