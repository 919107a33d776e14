"""Beginnings and ends that lie apart in a file, joined to spans."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from strobe.ingest.building import nesting
from strobe.ingest.trace import spans as spans_of
from strobe.ingest.trace.codes import Array
from strobe.ingest.trace.problems import Problems
from strobe.ingest.trace.span_spool import Slice
from strobe.ingest.trace.spans import Spans


class Pairs(NamedTuple):
    begin: Array  # rows, in the order of their group and time
    end: Array  # rows; -1 where a span was never ended
    depth: Array  # 1 for the outermost
    alone: Array  # rows of ends that nothing began


def nested(group: Array, ts_ns: Array, is_begin: Array) -> Pairs:
    """An end closes the innermost span of its group that is open.

    Rows of one moment are taken in the order in which they are given.
    """
    order = np.lexsort((np.arange(len(group)), ts_ns, group))
    group, begins = group[order], is_begin[order]
    step = np.where(begins, 1, -1)
    borders = np.flatnonzero(np.diff(group, prepend=group[:1] - 1)) if len(group) else order
    level = np.cumsum(step)
    before = np.repeat(level[borders] - step[borders], np.diff(np.append(borders, len(group))))
    # Groups are set apart by more than any depth, so that one running minimum serves them all.
    apart = np.repeat(np.arange(len(borders)), np.diff(np.append(borders, len(group))))
    base = -apart.astype(np.int64) * (len(group) + 1)
    level = level - before + base
    floor = np.minimum.accumulate(np.minimum(level, base)) if len(group) else level
    previous = np.append(np.int64(0), floor[:-1]) if len(group) else floor
    is_alone = ~begins & (floor < np.minimum(previous, base))
    depth = np.where(begins, level - floor, level - floor + 1)
    return _joined(order, apart, depth, begins, is_alone)


def _joined(order: Array, group: Array, depth: Array, begins: Array, is_alone: Array) -> Pairs:
    """At each depth of a group beginnings and ends take turns."""
    rows = np.flatnonzero(~is_alone)
    rows = rows[np.lexsort((rows, depth[rows], group[rows]))]
    following = np.append(rows[1:], -1) if len(rows) else rows
    closes = (following >= 0) & begins[rows] & ~begins[following]
    closes &= (group[rows] == group[following]) & (depth[rows] == depth[following])
    begin = np.flatnonzero(begins[rows])
    begin = begin[np.argsort(rows[begin], kind="stable")]
    end = np.where(closes[begin], order[following[begin]], -1)
    return Pairs(order[rows[begin]], end, depth[rows[begin]], order[is_alone])


@dataclass
class Joiner:
    """Goes through slices of time; what is open at the end of one is carried on to the next.

    Beginnings and ends belong together by their `track`. A span that is never ended lasts until
    `last_ns` of its track, the last moment of which anything is told.
    """

    begins: tuple[int, ...]  # the phases that do
    last_ns: Callable[[Array], Array]
    nameless: int = -1  # the name of ends that have none
    at_end: tuple[str, ...] = ()  # arguments that stand on the end of a span, if it has one
    alone: int = 0  # ends that nothing began
    endless: int = 0
    renamed: int = 0  # ends that are called otherwise than what they end
    _open: list[Spans] = field(default_factory=list)

    def take(self, part: Slice) -> Spans:
        """Spans that end in this slice, with their `depth`; those with a `place` also with that of
        the `parent` and of the `root` they lie in.

        These come by track and time: so those that begin and end at the same moments, which end
        in the same slice, come in the same order whatever the slices are.
        """
        edges = spans_of.joined([*self._open, part.spans])
        pairs = nested(edges.track, edges.ts_ns, np.isin(edges.arg("phase"), self.begins))
        begun, end = self._begun(edges, pairs), pairs.end
        is_open, last_ns = end < 0, self.last_ns(begun.track)
        end_ns = np.where(is_open, last_ns, edges.ts_ns[end]) if len(end) else end
        is_over = ~is_open | (last_ns < part.until_ns)
        self._count(pairs, edges.name, is_open & is_over)
        self._open = [begun.take(np.flatnonzero(~is_over))]
        begun.dur_ns = end_ns - begun.ts_ns
        return begun.take(np.flatnonzero(is_over))

    def _begun(self, edges: Spans, pairs: Pairs) -> Spans:
        begun, depth = edges.take(pairs.begin), pairs.depth
        begun.args["depth"] = depth
        if "place" in begun.args:
            place = np.append(begun.args["place"], -1)  # the last one is that of no row
            begun.args["parent"] = place[nesting.one_level_up(depth - 1)]
            outermost = np.maximum.accumulate(np.where(depth == 1, np.arange(len(depth)), 0))
            begun.args["root"] = place[outermost]
        closed = np.flatnonzero(pairs.end >= 0)
        for name in self.at_end if len(closed) else ():
            begun.args[name][closed] = edges.args[name][pairs.end[closed]]
        return begun

    def _count(self, pairs: Pairs, name: Array, is_endless: Array) -> None:
        self.alone += len(pairs.alone)
        self.endless += int(is_endless.sum())
        closed = pairs.end >= 0
        given = name[pairs.end[closed]]
        differs = (given != name[pairs.begin[closed]]) & (given != self.nameless)
        self.renamed += int(differs.sum())

    def tell(self, file: str, said: Problems) -> None:
        said.add(file, "an end without its beginning was left out", self.alone)
        what = "a span was begun and never ended: it is shown up to the last event of its thread"
        said.add(file, what, self.endless)
        said.add(file, "an end has another name than the beginning that it closes", self.renamed)
