"""The spans of a MegEngine timeline, each with what its end, its tensors and its arrows tell.

Edges pass by in slices of time. An operator is whole once it ends: its tensors, which lie in it,
have been told by then.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from strobe.ingest.building.event_matching import paired
from strobe.ingest.formats.chrome.pairs import Joiner
from strobe.ingest.formats.kinds import KIND
from strobe.ingest.formats.megengine import arguments
from strobe.ingest.formats.megengine import names as names_of
from strobe.ingest.formats.megengine.arguments import Tensors, Texts
from strobe.ingest.formats.megengine.events import BEGIN, COMES_IN, LEAVES, NUMBERS, TEXTS, Events
from strobe.ingest.formats.megengine.lanes import Lanes
from strobe.ingest.trace import spans as spans_of
from strobe.ingest.trace.codes import Array, distinct, mapped
from strobe.ingest.trace.problems import Problems
from strobe.ingest.trace.span_spool import Slice
from strobe.ingest.trace.spans import Spans, Vocabulary

DISPATCH = "OpDispatch"
_WAITS = frozenset(("TensorWaitProp", "GetValue"))
_COMMANDS = frozenset(
    ("Put", "Del", "Drop", "ReGen", "RecFree", "AutoEvict", "StartProfile", "StopProfile",
     "UnknownCommand", "Memcpy")
)  # fmt: skip
_TENSORS = frozenset(("Input", "Output"))
_OF_TENSORS = ("shape", "dtype", "tensor", "elements", "parent")
_CALL_OF_CUDA = re.compile(r"cu(?:da)?[A-Z]\w+")


@dataclass
class Calls:
    events: Events
    lanes: Lanes
    words: Vocabulary

    def __post_init__(self) -> None:
        self._texts = Texts(self.events, self.words)
        names = self._texts.names
        self._is_tensor = np.array([name in _TENSORS for name in names] or [False])
        self._joiner = Joiner((BEGIN,), self.events.last_ns().__getitem__, at_end=NUMBERS + TEXTS)
        self._waiting: list[Spans] = []  # tensors whose operator has not ended
        self._since_ns = np.iinfo(np.int64).min

    def spans(self) -> Iterator[Spans]:
        """By name and thread of the file, with their `place`, and that of their `parent`."""
        for part in self.events.edges.slices():
            yield self._told(self._joined(part))
            self._since_ns = part.until_ns

    def tell(self, file: str, said: Problems) -> None:
        said.add(file, "a span has no end: it was taken to end with the last event of its thread",
                 self._joiner.endless)  # fmt: skip
        said.add(file, "a span has no begin and was left out", self._joiner.alone)

    def _joined(self, part: Slice) -> Spans:
        """With CUPTI's number of each span that it joins to another: a call, what it started."""
        is_arrow = part.spans.arg("phase") >= LEAVES
        arrows = part.spans.take(np.flatnonzero(is_arrow))
        edges = part.spans.take(np.flatnonzero(~is_arrow)) if len(arrows) else part.spans
        edges.args |= {name: np.full(len(edges), -1) for name in ("arrow", "arrow_place")}
        # An arrow leaves where a call begins, and comes in where a kernel ends or a copy begins.
        begins = np.flatnonzero(edges.arg("phase") == BEGIN)
        where = (arrows.ts_ns, arrows.track)
        row = paired(where, (edges.ts_ns[begins], edges.track[begins]))
        _put(arrows, np.append(begins, -1)[row], edges)
        found = self._joiner.take(Slice(edges, part.until_ns))
        comes_in = (row < 0) & (arrows.arg("phase") == COMES_IN)
        row = paired(where, (found.ts_ns + found.dur_ns, found.track))
        _put(arrows, np.where(comes_in, row, -1), found)
        return found

    def _told(self, spans: Spans) -> Spans:
        is_device = self.lanes.is_device[spans.track]
        spans.kind = self._kinds(spans, is_device)
        is_op = spans.kind == KIND["op"]
        args = arguments.of_operators(spans, is_op, self._tensors(spans, is_op), self._texts)
        args |= self._of_device(spans, is_device, args["bytes"])
        args |= {
            "external": np.where((is_op | is_device) & (spans.arg("op") >= 0), spans.arg("op"), -1),
            "correlation": spans.arg("arrow"),
            **{name: spans.arg(name) for name in ("op", "place", "parent", "depth")},
        }
        told = Spans(spans.ts_ns, spans.dur_ns, spans.kind, spans.name, spans.track, args)
        # Tensors are told with their operators. One that began before may have something in it.
        keep = (spans.kind >= 0) | (spans.ts_ns < self._since_ns)
        keep |= np.isin(spans.arg("place"), spans.arg("parent"))
        return told.take(np.flatnonzero(keep))

    def _tensors(self, spans: Spans, is_op: Array) -> Tensors:
        """Of the operators among these spans; others wait for theirs to end."""
        new = spans.take(np.flatnonzero(self._is_tensor[spans.name] & (spans.arg("parent") >= 0)))
        new.args = {name: new.arg(name) for name in _OF_TENSORS}
        tensors = spans_of.appended([*self._waiting, new])
        order = np.argsort(spans.arg("place"))
        place = np.append(spans.arg("place")[order], -1)
        at = np.minimum(np.searchsorted(place[:-1], tensors.arg("parent")), len(place) - 1)
        has_ended = place[at] == tensors.arg("parent")
        self._waiting = [tensors.take(np.flatnonzero(~has_ended))]
        owner = np.append(order, -1)[at]
        rows = np.flatnonzero(has_ended & np.append(is_op, False)[owner])
        rows = rows[np.argsort(owner[rows], kind="stable")]
        return Tensors(tensors.take(rows), owner[rows])

    def _of_device(self, spans: Spans, is_device: Array, bytes_of_op: Array) -> dict[str, Array]:
        texts, words = self._texts.codes, self.words
        ways, mode, size = spans.arg("ways"), spans.arg("mode"), spans.arg("bytes")
        is_copy = is_device & (spans.kind == KIND["memcpy"])
        way = np.where(ways > 0, mapped(ways, texts), words.texts["host to device"])
        given = np.where(size >= 0, size, arguments.tensor_bytes(spans, self._texts))
        given = np.where(spans.kind == KIND["kernel"], -1, given)
        is_collective = (spans.kind == KIND["collective"]) & (mode > 0)
        return {
            "on_device": np.where(is_device, 1, -1),
            "stream": np.where(is_device, self.lanes.streams[spans.track], -1),
            "direction": np.where(is_copy, way, -1),
            "host_memory": np.where(is_copy & (ways > 0), way, -1),
            "operation": np.where(is_collective, mapped(mode, texts), -1),
            "bytes": np.where(is_device, given, bytes_of_op),
        }

    def _kinds(self, spans: Spans, is_device: Array) -> Array:
        """A number of KIND; -1 for what is told otherwise."""
        has_op = spans.arg("op") >= 0
        has_run = (spans.arg("has_run") > 0) | (spans.arg("is_kernel") > 0)
        is_main = self.lanes.is_main[spans.track]
        keys, back = distinct([
            spans.name, *(flag.astype(np.int8) for flag in (is_device, has_op, has_run, is_main))
        ])  # fmt: skip
        kinds = [_kind(self._texts.names[n], *map(bool, rest)) for n, *rest in keys]
        found = np.array(kinds or [0], dtype=np.int32)[back]
        # CUPTI calls a launch as it calls the kernel.
        is_launch = (spans.arg("arrow") >= 0) & ~is_device & ~has_op
        return np.where(is_launch, np.int32(KIND["runtime"]), found)


def _put(arrows: Spans, row: Array, spans: Spans) -> None:
    """The numbers of arrows at the spans of these rows; of several the last in the file counts."""
    order = np.argsort(arrows.arg("place"), kind="stable")
    order = order[row[order] >= 0]
    order = order[arrows.arg("place")[order] > spans.args["arrow_place"][row[order]]]
    spans.args["arrow"][row[order]] = arrows.arg("arrow")[order]
    spans.args["arrow_place"][row[order]] = arrows.arg("place")[order]


def _kind(name: str, on_device: bool, has_op: bool, has_run: bool, is_main: bool) -> int:
    if on_device:
        return KIND[_device_kind(name, has_run)]
    if name in _TENSORS:
        return -1
    if name == DISPATCH:
        return KIND["mark"]
    if has_op:
        return KIND["op"]
    if name in _WAITS or "Synchronize" in name:
        return KIND["sync"]
    if name in _COMMANDS or _CALL_OF_CUDA.fullmatch(name):
        return KIND["runtime"]
    if name.startswith("tensor."):
        return KIND["python"]
    return KIND["module"] if is_main else KIND["annotation"]


def _device_kind(name: str, has_run: bool) -> str:
    if name in ("Memcpy", "Memset"):
        return name.lower()
    if has_run or name in names_of.COPIES:
        return names_of.device_kind(name)
    return "annotation"
