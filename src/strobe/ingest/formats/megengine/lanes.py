"""Which thread of a MegEngine timeline is what: interpreter, worker, or a stream of a device."""

import re
from dataclasses import dataclass

import numpy as np

from strobe.ingest.formats.megengine import names as names_of
from strobe.ingest.formats.megengine.events import Events
from strobe.ingest.trace.codes import Array
from strobe.ingest.trace.spans import Track, Vocabulary

_LOCATOR = re.compile(r"[a-z]+(?:\d+|x)?:\w+\Z")
_MAIN_NAMES = ("interpreter", "channel")


@dataclass
class Lanes:
    """One entry for each thread of the file."""

    is_device: Array
    is_main: Array
    streams: Array
    tracks: Array  # numbers of the rank's tracks


def lanes(events: Events, words: Vocabulary) -> Lanes:
    count = max(1, len(events.threads))
    physical = _physical(events)
    is_device, is_main = (
        np.isin(np.arange(count), list(seen))
        for seen in (events.seen.works, events.seen.dispatches)
    )
    streams, tracks = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int32)
    for number, (pid, tid) in enumerate(events.threads):
        name = events.thread_names.get((pid, tid), "")
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


def _physical(events: Events) -> dict[str, str]:
    """The comp node behind each logical one (xpux:0), as the tensors on it tell."""
    texts = list(events.texts)
    nodes = [texts[code] for code in sorted(events.seen.devices)]
    return {names_of.logical(node): node for node in nodes if node.startswith("CompNode(")}


def _small(number: int) -> int | None:
    return number if abs(number) < 2**62 else None
