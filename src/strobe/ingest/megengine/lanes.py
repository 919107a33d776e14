"""Which thread of a MegEngine timeline is what: interpreter, worker, or a stream of a device."""

import re
from dataclasses import dataclass

import numpy as np

from strobe.ingest.codes import Array
from strobe.ingest.megengine import names as names_of
from strobe.ingest.megengine.events import Columns
from strobe.ingest.spans import Track, Vocabulary

_LOCATOR = re.compile(r"[a-z]+(?:\d+|x)?:\w+\Z")
_MAIN_NAMES = ("interpreter", "channel")


@dataclass
class Lanes:
    """One entry for each thread of the file."""

    is_device: Array
    is_main: Array
    streams: Array
    tracks: Array  # numbers of the rank's tracks


def lanes(columns: Columns, words: Vocabulary) -> Lanes:
    count = max(1, len(columns.threads))
    has_work = _has_device_work(columns, count)
    dispatches = _has_named(columns, ("OpDispatch",), count)
    physical = _physical(columns)
    is_device, is_main = has_work.copy(), dispatches.copy()
    streams, tracks = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int32)
    for number, (pid, tid) in enumerate(columns.threads):
        name = columns.thread_names.get((pid, tid), "")
        is_device[number] |= bool(_LOCATOR.match(name))
        is_main[number] |= name in _MAIN_NAMES and not is_device[number]
        if is_device[number]:
            # CUPTI's streams have no name, and do not say whose they are.
            place = (
                names_of.place(physical.get(name, name)) if name else names_of.Place("cuda:0", tid)
            )
            track = Track(place.device, _small(pid), place.stream)
            shown = name or f"stream {tid}"
            streams[number] = place.stream
        else:
            track = Track("cpu", _small(pid), _small(tid))
            shown = name if name not in ("", "@") else f"thread {tid}"
        tracks[number] = words.tracks[track]
        words.track_names.setdefault(track, shown)
    return Lanes(is_device, is_main, streams, tracks)


def _has_device_work(columns: Columns, count: int) -> Array:
    """Threads with kernels or copies, by their category or by what CUPTI says of them."""
    spans = columns.spans
    is_work = spans["is_kernel"].astype(np.bool_) | (spans["has_run"] > 0) | (spans["ways"] > 0)
    found = np.bincount(spans["thread"][is_work], minlength=count) > 0
    return found | _has_named(columns, ("HostToDevice", "Memset"), count)


def _has_named(columns: Columns, wanted: tuple[str, ...], count: int) -> Array:
    codes = [number for number, name in enumerate(columns.names) if name in wanted]
    rows = np.isin(columns.spans["name"], codes)
    return np.bincount(columns.spans["thread"][rows], minlength=count) > 0


def _physical(columns: Columns) -> dict[str, str]:
    """The comp node behind each logical one (xpux:0), as the tensors on it tell."""
    used = np.unique(columns.spans["device"]).tolist()
    nodes = [columns.texts[code] for code in used]
    return {names_of.logical(node): node for node in nodes if node.startswith("CompNode(")}


def _small(number: int) -> int | None:
    return number if abs(number) < 2**62 else None
