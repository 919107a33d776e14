"""In which module the spans of a MegEngine timeline lie, and what else is told by what encloses.

Spans pass by in the order of their starts, so that what lies around one comes before it.
"""

from dataclasses import dataclass, field

import numpy as np

from strobe.ingest.formats.kinds import KIND
from strobe.ingest.formats.megengine.calls import DISPATCH
from strobe.ingest.formats.megengine.events import Events
from strobe.ingest.formats.megengine.lanes import Lanes
from strobe.ingest.formats.megengine.steps import TRAINS, Blocks
from strobe.ingest.trace import spans as spans_of
from strobe.ingest.trace.codes import Array, Codes, mapped
from strobe.ingest.trace.column_spool import SHARE_ROWS, Columns, Pile
from strobe.ingest.trace.span_spool import Slice
from strobe.ingest.trace.spans import Spans, Vocabulary
from strobe.ingest.trace.trace import FlowParts

_NOT_YET, _NONE, _OUTSIDE, _BACKWARD = -1, -2, -3, -4  # instead of the number of a path
# Blocks of the framework itself; what lies in them works for no module.
_NO_MODULE = {
    "backward": _BACKWARD, "step": _OUTSIDE, "clear_grad": _OUTSIDE, "clip_grad_norm": _OUTSIDE,
    "clip_grad_value": _OUTSIDE,
}  # fmt: skip
_ON_THE_WAY = ("op", "place", "parent", "depth", "path")  # arguments that end here
# Kernels follow their operators within moments, and operators their dispatch: of those that came
# by the last ones are kept.
_KEPT = 100_000


@dataclass
class _Numbered:
    """What the last ones with a number had, by that number; of several the first counts."""

    number: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    value: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def add(self, number: Array, value: Array) -> None:
        known = number >= 0
        self.number = np.append(self.number, number[known])[-_KEPT:]
        self.value = np.append(self.value, value[known])[-_KEPT:]

    def of(self, number: Array) -> Array:
        """-1 where there is none."""
        keys, first = np.unique(self.number, return_index=True)
        place = np.searchsorted(keys, number)
        found = np.append(keys, -1)[place] == number
        return np.where(found & (number >= 0), np.append(self.value[first], -1)[place], -1)


class Modules:
    def __init__(self, events: Events, lanes: Lanes, words: Vocabulary, window: int) -> None:
        self._lanes, self._words, self._window = lanes, words, window
        self._names = list(events.names)
        self._shown = [words.names[name] for name in self._names]
        self._outside = np.array([_NO_MODULE.get(name, 0) for name in self._names] or [0])
        self._is_told = np.array([name in TRAINS for name in self._names] or [False])
        self._dispatch = events.code(DISPATCH)
        self._paths: Codes[tuple[int, int]] = Codes()  # the path around, and a name
        self._texts: list[str] = []
        self._scopes: list[int] = []
        self._open: list[Spans] = []
        self._scope_of, self._asked = _Numbered(), _Numbered()  # by numbers of operators
        self._flows = Pile(SHARE_ROWS)
        self._numbers = 0  # given to what flows join
        self._blocks: list[Spans] = []

    def take(self, part: Slice) -> Spans:
        """The spans that begin in this slice, ready for the tables."""
        spans = spans_of.joined([*self._open, part.spans])
        parent = _rows_of(spans.arg("parent"), spans.arg("place"))
        spans.args["path"] = spans.arg("path")
        new = np.flatnonzero(spans.args["path"] == _NOT_YET)
        self._find_paths(spans, parent, new)
        self._open = [spans.take(np.flatnonzero(spans.ts_ns + spans.dur_ns >= part.until_ns))]
        self._keep_blocks(spans, parent, new)
        return self._placed(spans.take(new[spans.kind[new] >= 0]))

    def flows(self) -> list[FlowParts]:
        """From where Python asked for an operator to where it was executed."""
        found = FlowParts(self._flows, self._window, self._numbers - 1)
        return [found] if self._flows.rows else []

    def blocks(self, stops_ns: Array) -> Blocks:
        """What the steps are found from: outermost blocks of the interpreter, ends of steps."""
        found = spans_of.appended(self._blocks)
        names = [self._names[code] for code in found.name.tolist()]
        is_module = found.kind == KIND["module"]
        return Blocks(found.ts_ns, found.dur_ns, names, is_module, stops_ns)

    def _find_paths(self, spans: Spans, parent: Array, new: Array) -> None:
        """A path is made of the names of the blocks around a span, from the outermost in."""
        path, name, kind = spans.args["path"], spans.name, spans.kind
        is_block = (kind == KIND["module"]) | (kind == KIND["annotation"])
        is_block &= ~self._lanes.is_device[spans.track]
        for rows in _by_depth(spans.arg("depth"), new):
            around = np.where(parent[rows] >= 0, path[parent[rows]], _NONE)
            path[rows] = around
            blocks = is_block[rows] & (around >= _NONE)
            ends = blocks & (self._outside[name[rows]] < 0)
            path[rows[ends]] = self._outside[name[rows[ends]]]
            opens = blocks & ~ends
            keys = zip(around[opens].tolist(), name[rows[opens]].tolist(), strict=True)
            path[rows[opens]] = [self._paths[key] for key in keys]
        for above, code in list(self._paths)[len(self._texts) :]:
            own = self._names[code]
            self._texts.append(f"{self._texts[above]}.{own}" if above >= 0 else own)
            self._scopes.append(self._words.scopes[self._texts[-1]])
        # Inside of backward and optimizer a block is no call of a module.
        spans.kind[(kind == KIND["module"]) & (path < 0)] = KIND["annotation"]

    def _keep_blocks(self, spans: Spans, parent: Array, new: Array) -> None:
        is_module, above = spans.kind == KIND["module"], parent[new]
        is_outer = (above < 0) | is_module[new]
        is_outer &= ~((above >= 0) & is_module[above]) & self._lanes.is_main[spans.track[new]]
        is_outer &= self._is_told[spans.name[new]] | is_module[new]
        blocks = spans.take(new[is_outer])
        blocks.args = {}
        self._blocks.append(blocks)

    def _placed(self, spans: Spans) -> Spans:
        is_op, is_device = spans.kind == KIND["op"], self._lanes.is_device[spans.track]
        path, op = spans.arg("path"), spans.arg("op")
        scopes = mapped(np.maximum(path, -1), self._scopes)
        self._scope_of.add(op[is_op], scopes[is_op])
        scope = np.where(is_device, self._scope_of.of(op), np.where(is_op, scopes, -1))
        spans.args |= {
            "scope": scope,
            "module": np.where(spans.kind == KIND["module"], scopes, -1),
            "backward": np.where(is_op & (path == _BACKWARD), 1, -1),
            "window": np.full(len(spans), self._window, dtype=np.int64),
            "number": self._joined_dispatches(spans, op, is_op, is_device),
        }
        for name in _ON_THE_WAY:
            spans.args.pop(name, None)
        spans.name = mapped(spans.name, self._shown)
        spans.track = self._lanes.tracks[spans.track]
        return spans

    def _joined_dispatches(self, spans: Spans, op: Array, is_op: Array, is_device: Array) -> Array:
        """Numbers for both sides, -1 for others."""
        asked = (spans.name == self._dispatch) & ~is_device
        number = np.where(asked | is_op, self._numbers + np.cumsum(asked | is_op) - 1, -1)
        self._numbers += int((asked | is_op).sum())
        self._asked.add(op[asked], number[asked])
        cause = np.where(is_op, self._asked.of(op), -1)
        rows = np.flatnonzero(cause >= 0)
        kind = np.full(len(rows), self._words.texts["dispatch"], dtype=np.int64)
        found: Columns = {"cause": cause[rows], "effect": number[rows], "kind": kind}
        self._flows.append(found)
        return number


def _by_depth(depth: Array, rows: Array) -> list[Array]:
    """From the outermost inwards."""
    order = rows[np.argsort(depth[rows], kind="stable")]
    return np.split(order, np.flatnonzero(np.diff(depth[order])) + 1)


def _rows_of(wanted: Array, place: Array) -> Array:
    """The row with each of these places; -1 where there is none."""
    order = np.argsort(place)
    at = np.searchsorted(place[order], wanted)
    found = np.append(place[order], -1)[at] == wanted
    return np.where(found & (wanted >= 0), np.append(order, -1)[at], -1)
