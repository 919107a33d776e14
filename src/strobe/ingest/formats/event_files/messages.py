"""The fields of many protobuf messages as columns."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from strobe.ingest.formats.xplane.wire import BYTES, Block, Broken, header, step
from strobe.ingest.trace.codes import Array

_FEW = 6  # messages that are faster to go through one by one


@dataclass(frozen=True)
class Fields:
    """One row per field: the message that it is in, its number and wire type, its value.

    Rows of one message are in the order of its fields, but rows of several are mixed.
    """

    owner: Array
    number: Array
    wire: Array
    value: Array  # of a varint
    start: Array  # of its bytes
    end: Array

    def __len__(self) -> int:
        return len(self.owner)

    def of(self, number: int, wire: int) -> "Fields":
        """The fields with this number; those of another wire type are not what they should be."""
        return self.rows((self.number == number) & (self.wire == wire))

    def rows(self, rows: Array) -> "Fields":
        return Fields(*(column[rows] for column in self.columns))

    @property
    def columns(self) -> tuple[Array, ...]:
        return self.owner, self.number, self.wire, self.value, self.start, self.end

    def in_order(self) -> "Fields":
        """As they are in the block."""
        return self.rows(np.argsort(self.start, kind="stable"))


class Messages(NamedTuple):
    fields: Fields
    broken: int  # messages of which only the fields before the damage are there


def scan(block: Block, starts: Array, ends: Array) -> Messages:
    """All fields of the messages between these places."""
    active = np.flatnonzero(starts < ends)
    at, end = starts[active], ends[active]
    parts: list[Fields] = []
    broken = 0
    while len(active) > _FEW:
        found = step(block, at, end)
        if not found.ok.all():
            broken += int((~found.ok).sum())
            active, end = active[found.ok], end[found.ok]
            found = type(found)(*(column[found.ok] for column in found))
        parts.append(_part(active, found.number, found.wire, found.value, found.start, found.after))
        going = found.after < end
        active, at, end = active[going], found.after[going], end[going]
    for owner, begin, until in zip(active.tolist(), at.tolist(), end.tolist(), strict=True):
        rest, is_whole = _one(block, owner, begin, until)
        broken += not is_whole
        parts.append(rest)
    if not parts:
        parts = [_part(*(np.zeros(0, dtype=np.int64),) * 6)]
    whole = parts[0] if len(parts) == 1 else _joined(parts)
    return Messages(whole, broken)


def _joined(parts: list[Fields]) -> Fields:
    columns = zip(*(part.columns for part in parts), strict=True)
    return Fields(*map(np.concatenate, columns))


def _part(
    owner: Array, number: Array, wire: Array, value: Array, start: Array, end: Array
) -> Fields:
    return Fields(
        owner, np.asarray(number, np.int64), np.asarray(wire, np.int64),
        np.asarray(value, np.uint64), start, end,
    )  # fmt: skip


def _one(block: Block, owner: int, start: int, end: int) -> tuple[Fields, bool]:
    data, at = block.text(start, end), 0
    rows: list[tuple[int, int, int, int, int]] = []
    is_whole = True
    try:
        while at < len(data):
            row = header(data, at)
            if row[4] > len(data):
                raise Broken
            rows.append(row)
            at = row[4]
    except Broken:
        is_whole = False
    number, wire, value, begin, after = (
        np.array([row[k] for row in rows], dtype=np.uint64) for k in range(5)
    )
    places = (begin.astype(np.int64) + start, after.astype(np.int64) + start)
    return _part(np.full(len(rows), owner), number, wire, value, *places), is_whole


def doubles(block: Block, at: Array) -> Array:
    """The float64 at each of these places."""
    return block.words[at].view(np.float64)


def floats(block: Block, at: Array) -> Array:
    """The float32 at each of these places."""
    return block.words[at].astype(np.uint32).view(np.float32)


def submessages(block: Block, fields: Fields, number: int) -> Fields:
    """The messages in a field of these messages, in the order of the file."""
    return fields.of(number, BYTES).in_order()
