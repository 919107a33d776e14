"""A part of a timeline that fits into a file: for pages that have no server to ask."""

from typing import Any

import numpy as np

from strobe.timeline.colours import BY_NAME, COLOUR_BITS, FIXED
from strobe.timeline.index import Index
from strobe.timeline.packet import packed
from strobe.timeline.rows import Array

# Where an event has no parent that is held.
NONE = 2**32 - 1


def held(index: Index, most_events: int) -> bytes:
    """As a packet: all events, or, of more, those of the stretch in which they are densest, which
    is where operators were recorded."""
    begin_ns, end_ns = _stretch(index, most_events)
    kept = _touching(index, begin_ns, end_ns)
    codes, name = np.unique(index.arrays["name"][kept], return_inverse=True)
    curves, columns = _curves(index, begin_ns, end_ns)
    about: dict[str, Any] = {
        "begin_ns": begin_ns + index.origin_ns,
        "end_ns": end_ns + index.origin_ns,
        "events_in_run": len(index.arrays["id"]),
        "stretches": _stretches(index, begin_ns, end_ns),
        "tracks": index.about["tracks"],
        "names": [[index.name(code), index.kind(code)] for code in codes.tolist()],
        "kinds": index.about["kinds"],
        "curves": curves,
        "flow_kinds": index.about["flow_kinds"],
        "colours": {"by_name": BY_NAME, "fixed": FIXED},
    }
    return packed(about, {
        "row_at": np.searchsorted(kept, index.arrays["row_at"]).astype(np.uint32),
        # Since `begin_ns`. Times as floats are exact up to 104 days.
        "start_ns": (index.arrays["start_ns"][kept] - begin_ns).astype(np.float64),
        **{c: index.arrays[c][kept].astype(np.float64) for c in ("dur_ns", "self_ns")},
        "id": index.arrays["id"][kept].astype(np.float64),
        "name": name.astype(np.uint32),
        "parent": _moved(kept, index.arrays["parent"][kept]),
        "paint": _painted(index.arrays["paint"][codes]),
        **_flows(index, kept),
        **columns,
    })  # fmt: skip


def _stretch(index: Index, most: int) -> tuple[int, int]:
    """From the first moment of the run."""
    start = np.sort(index.arrays["start_ns"])
    if len(start) <= most:
        return 0, int(index.about["span_ns"])
    first = int(np.argmin(start[most:] - start[:-most]))
    return int(start[first]), int(start[first + most])


def _stretches(index: Index, begin_ns: int, end_ns: int) -> list[dict[str, Any]]:
    """The parts of the run that lie far apart, as far as they are held."""
    return [
        {
            **part,
            "begin_ns": max(part["begin_ns"], begin_ns) + index.origin_ns,
            "end_ns": min(part["end_ns"], end_ns) + index.origin_ns,
        }
        for part in index.about["stretches"]
        if part["begin_ns"] <= end_ns and part["end_ns"] >= begin_ns
    ]


def _touching(index: Index, begin_ns: int, end_ns: int) -> Array:
    start = index.arrays["start_ns"]
    is_inside = (start < end_ns) | (end_ns == index.about["span_ns"])
    kept: Array = np.flatnonzero(is_inside & (start + index.arrays["dur_ns"] >= begin_ns))
    return kept


def _moved(kept: Array, position: Array) -> Array:
    """Where events stand among those that are kept."""
    if not len(kept):
        return np.zeros(0, dtype=np.uint32)
    place = np.minimum(np.searchsorted(kept, position), len(kept) - 1)
    return np.where(kept[place] == position, place, NONE).astype(np.uint32)


def _painted(paint: Array) -> Array:
    """The colours of names that have other numbers now."""
    colour = paint & ((1 << COLOUR_BITS) - 1)
    return (np.arange(len(paint)) << COLOUR_BITS | colour).astype(np.uint32)


def _flows(index: Index, kept: Array) -> dict[str, Array]:
    """Those with both ends among what is kept, in order of their causes."""
    cause, effect = (_moved(kept, index.arrays[f"by_cause_{end}"]) for end in ("cause", "effect"))
    both = (cause != NONE) & (effect != NONE)
    kind = index.arrays["by_cause_kind"][both]
    return {"cause": cause[both], "effect": effect[both], "flow_kind": kind.astype(np.uint8)}


def _curves(
    index: Index, begin_ns: int, end_ns: int
) -> tuple[list[dict[str, Any]], dict[str, Array]]:
    """Curves that have values in the stretch, with one value before it; of the whole timeline also
    those before its first and after its last event."""
    about, moments, values = [], [], []
    first_ns, last_ns = begin_ns + index.origin_ns, end_ns + index.origin_ns
    at = index.arrays["curve_at"]
    for number, curve in enumerate(index.about["curves"]):
        of = slice(int(at[number]), int(at[number + 1]))
        moment = index.arrays["curve_ns"][of]
        low, high = np.searchsorted(moment, [first_ns, last_ns + 1])
        inside = slice(
            max(0, int(low) - 1) if begin_ns > 0 else 0,
            int(high) if end_ns < index.about["span_ns"] else len(moment),
        )
        if inside.start == inside.stop:
            continue
        moments.append(moment[inside].astype(np.float64))
        values.append(index.arrays["curve_value"][of][inside])
        about.append({**curve, "values": len(moments[-1])})
    none = [np.zeros(0)]
    return about, {
        "curve_at": np.cumsum([0, *map(len, moments)]).astype(np.uint32),
        "curve_ns": np.concatenate(moments or none),
        "curve_value": np.concatenate(values or none),
    }
