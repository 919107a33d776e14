"""Protobuf's wire format: one message at a time, or thousands of them as columns.

A message is a run of fields: a tag (number and wire type), then a varint, 4 or 8 bytes, or a length
and as many bytes. Where a message is broken (a length beyond its end, a wire type that does not
exist), everything before that place is given and the place is told.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from strobe.ingest.trace.codes import Array

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_WIDTH = np.array([0, 8, 0, -1, -1, 4, -1, -1], dtype=np.int64)  # -1: no such wire type
_LONGEST_FIELD = np.uint64(1 << 40)
_LARGEST_TAG = (1 << 32) - 1
_PADDING = 16

_HIGH_BITS = np.uint64(0x8080808080808080)
_ONES = np.uint64(0x0101010101010101)
_LANE_BYTES = 1024
_FEWEST_BYTES = 8 * _LANE_BYTES


class Broken(Exception):
    """A message that ends in the middle of a field, or a field that cannot be."""


def varint(data: bytes, at: int) -> tuple[int, int]:
    """The number that begins at a byte, and where it ends."""
    value = shift = 0
    try:
        while (byte := data[at]) >= 0x80:
            value |= (byte & 0x7F) << shift
            shift += 7
            at += 1
            if shift > 63:
                raise Broken
    except IndexError:
        raise Broken from None
    return (value | byte << shift) & 0xFFFFFFFFFFFFFFFF, at + 1


def header(data: bytes, at: int) -> tuple[int, int, int, int, int]:
    """A field's number, wire type, value, and where its bytes begin and end."""
    tag, at = varint(data, at)
    number, wire = tag >> 3, tag & 7
    if not number or tag > _LARGEST_TAG or _WIDTH[wire] < 0:
        raise Broken
    if wire == VARINT:
        value, end = varint(data, at)
        return number, wire, value, at, end
    if wire == BYTES:
        size, at = varint(data, at)
        return number, wire, size, at, at + size
    return number, wire, 0, at, at + int(_WIDTH[wire])


def fields(data: bytes, broken: Callable[[], None]) -> Iterator[tuple[int, int | bytes]]:
    """Number and value of every field of a message.

    `broken` is called where it cannot go on; bytes that go beyond its end are given cut.
    """
    at, size = 0, len(data)
    try:
        while at < size:
            number, wire, value, start, at = header(data, at)
            yield number, value if wire == VARINT else data[start:at]
    except Broken:
        broken()
    if at > size:
        broken()


def signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


class Block:
    """Bytes that many messages lie in."""

    def __init__(self, data: bytes) -> None:
        self.size = len(data)
        self.raw = np.frombuffer(data + bytes(_PADDING), dtype=np.uint8)
        # The eight bytes from each position on, as one number.
        self.words: Array = np.ndarray(
            (len(self.raw) - 7,), dtype="<u8", buffer=self.raw.data, strides=(1,)
        )

    def text(self, start: int, end: int) -> bytes:
        return self.raw[start:end].tobytes()


class Step(NamedTuple):
    """One field of each of many messages. `ok` is False where it is broken."""

    number: Array
    wire: Array
    value: Array  # of a varint; the length of bytes
    start: Array
    after: Array  # where the next field begins
    ok: Array


def varints(block: Block, at: Array) -> tuple[Array, Array]:
    """The numbers that begin at these positions, and how many bytes each takes; 0 if too many."""
    word = block.words[at]
    stop = ~word & _HIGH_BITS  # the high bit of the last byte of a number is clear
    mask = stop ^ (stop - np.uint64(1))  # all bits up to the end of that byte
    size = (((mask & _ONES) * _ONES) >> np.uint64(56)).astype(np.int64)
    word &= mask
    # Seven bits of each byte, pushed together in three rounds.
    word = (word & np.uint64(0x007F007F007F007F)) | (
        (word & np.uint64(0x7F007F007F007F00)) >> np.uint64(1)
    )
    word = (word & np.uint64(0x00003FFF00003FFF)) | (
        (word & np.uint64(0x3FFF00003FFF0000)) >> np.uint64(2)
    )
    word = (word & np.uint64(0x000000000FFFFFFF)) | (
        (word & np.uint64(0x0FFFFFFF00000000)) >> np.uint64(4)
    )
    long = np.flatnonzero(stop == 0)
    if len(long):
        ninth, tenth = (block.raw[at[long] + k].astype(np.uint64) for k in (8, 9))
        word[long] |= (ninth & np.uint64(0x7F)) << np.uint64(56)
        is_ten = ninth >= 0x80
        word[long] |= np.where(is_ten, tenth & np.uint64(1), np.uint64(0)) << np.uint64(63)
        size[long] = np.where(is_ten, np.where(tenth < 0x80, 10, 0), 9)
    return word, size


def step(block: Block, at: Array, end: Array) -> Step:
    """The fields that begin at these positions, in messages that end where `end` says."""
    return _short_step(block, at, end) or _any_step(block, at, end)


def _short_step(block: Block, at: Array, end: Array) -> Step | None:
    """The same for the usual case: one number or bytes in all messages, in two bytes at most."""
    tag = int(block.raw[at[0]])
    if tag >= 0x80 or tag & 7 not in (VARINT, BYTES) or (block.raw[at] != tag).any():
        return None
    low = block.raw[at + 1].astype(np.int64)
    start = at + 2
    if low.max() >= 0x80:
        high = block.raw[start].astype(np.int64)
        is_long = low >= 0x80
        if (high[is_long] >= 0x80).any():
            return None
        low = np.where(is_long, (low & 0x7F) | (high << 7), low)
        start = start + is_long
    after = start + low if tag & 7 == BYTES else start
    number, wire = np.int64(tag >> 3), np.int64(tag & 7)
    whole = np.broadcast_to(number, at.shape), np.broadcast_to(wire, at.shape)
    return Step(*whole, low.view(np.uint64), start, after, (after <= end) & (number > 0))


def _any_step(block: Block, at: Array, end: Array) -> Step:
    tag = block.raw[at].astype(np.int64)
    value_at = at + 1
    if tag.max() >= 0x80:
        tags, sizes = varints(block, at)
        tag = np.where((sizes > 0) & (tags <= _LARGEST_TAG), tags, 0).astype(np.int64)
        value_at = np.minimum(at + np.maximum(sizes, 1), block.size)
    number, wire = tag >> 3, tag & 7
    value, size = varints(block, value_at)
    ok = (size > 0) & (number > 0)
    start = value_at + size
    after = start + np.where(wire == BYTES, np.minimum(value, _LONGEST_FIELD).astype(np.int64), 0)
    if (wire & ~BYTES).any():
        odd = (wire != VARINT) & (wire != BYTES)
        width = _WIDTH[wire]
        start = np.where(odd, value_at, start)
        after = np.where(odd, value_at + width, after)
        ok = np.where(odd, (width > 0) & (number > 0), ok)
    ok &= after <= end
    return Step(number, wire, value, start, after, ok)


def records(block: Block, tag: int, begin: int) -> tuple[Array, Array, int]:
    """The run of fields with this tag that begins at a position: where their bytes begin and end.

    Also where the run stops: at another tag, at a field that does not end within the block, or at
    the end of the block. One field's place follows from the one before it, so many stretches of
    the block are walked side by side, each from a guessed place; a guess soon falls into step
    with the true run, and what the true run does not pass through is dropped.
    """
    if block.size - begin < _FEWEST_BYTES:
        walked, stop = _walked(block, tag, begin, block.size, set())
        found = np.array(walked, dtype=np.int64)
    else:
        found, stop = _stitched(block, tag, begin, block.size)
    sizes, widths = varints(block, found + 1)
    starts = found + 1 + widths
    return starts, starts + sizes.astype(np.int64), stop


def _walked(block: Block, tag: int, at: int, limit: int, known: set[int]) -> tuple[list[int], int]:
    """One after the other, up to a limit or to a place that is known already."""
    first, found = at, []
    data = block.raw[first : min(limit + _PADDING, len(block.raw))].tobytes()
    while at < limit and at not in known and data[at - first] == tag:
        try:
            size, start = varint(data, at - first + 1)
        except Broken:
            break
        if first + start + size > block.size:
            break
        found.append(at)
        at = first + start + size
    return found, at


def _stitched(block: Block, tag: int, begin: int, end: int) -> tuple[Array, int]:
    borders = np.arange(begin, end - _LANE_BYTES, _LANE_BYTES)
    limits = np.append(borders[1:], end)
    candidates = np.flatnonzero(block.raw[begin:end] == tag) + begin
    guess = np.append(candidates, end)[np.searchsorted(candidates, borders)]
    lanes = _walked_side_by_side(block, tag, guess, limits)
    is_true, next_bad = _in_step(lanes)
    found: list[Array] = []
    at, lane = begin, 0
    while lane < len(limits) and at >= (borders[lane] if lane else begin):
        if at >= limits[lane]:
            lane += 1
            continue
        first, last = lanes.bounds[lane : lane + 2].tolist()
        mine = lanes.places[first:last]
        if at not in mine:
            walked, at = _walked(block, tag, at, int(limits[lane]), set(mine.tolist()))
            found.append(np.array(walked, dtype=np.int64))
        if at in mine:
            # From here on the lanes are in step with each other, up to the next that is not.
            beyond = int(next_bad[lane + 1])
            found.append(mine[mine >= at])
            rest = slice(last, lanes.bounds[beyond])
            found.append(lanes.places[rest][is_true[rest]])
            at, lane = int(lanes.stops[beyond - 1]), beyond
        elif at < limits[lane]:
            break
    return np.concatenate([np.zeros(0, dtype=np.int64), *found]), at


class _Lanes(NamedTuple):
    """Stretches of a block that were walked side by side."""

    places: Array  # that they passed through, lane after lane
    bounds: Array  # where the places of each lane begin, and the end
    stops: Array  # where each goes on beyond its limit, or broke off before it


def _in_step(lanes: _Lanes) -> tuple[Array, Array]:
    """Which places the lane before leads to, and from each lane on the next it does not lead to."""
    count = len(lanes.stops)
    entry = np.append(-1, lanes.stops[:-1])
    place = np.searchsorted(lanes.places, entry)
    is_led_to = np.append(lanes.places, -2)[place] == entry
    is_led_to &= (place >= lanes.bounds[:-1]) & (place < lanes.bounds[1:])
    is_led_to = np.append(is_led_to, False)
    lane = np.arange(count + 1)
    next_bad = np.minimum.accumulate(np.where(is_led_to, count, lane)[::-1])[::-1]
    is_true = lanes.places >= np.repeat(entry, np.diff(lanes.bounds))
    return is_true, next_bad


def _walked_side_by_side(block: Block, tag: int, at: Array, limits: Array) -> _Lanes:
    stops = at.copy()
    active = np.flatnonzero(at < limits)
    at = at[active]
    seen_at, seen_by = [at[:0]], [active[:0]]
    while len(active):
        after, good = _after(block, tag, at)
        if not good.all():
            active, at, after = active[good], at[good], after[good]
        seen_at.append(at)
        seen_by.append(active)
        stops[active] = after
        going = after < limits[active]
        active, at = active[going], after[going]
    places, owners = np.concatenate(seen_at), np.concatenate(seen_by)
    counts = np.bincount(owners, minlength=len(limits))
    return _Lanes(np.sort(places), np.append(0, np.cumsum(counts)), stops)


def _after(block: Block, tag: int, at: Array) -> tuple[Array, Array]:
    """Where the fields with this tag that begin here end, and which of them are whole."""
    low = block.raw[at + 1]
    after = at + 2 + low
    if low.max() >= 0x80:
        long = np.flatnonzero(low >= 0x80)
        size, width = varints(block, at[long] + 1)
        end = at[long] + 1 + width + np.minimum(size, _LONGEST_FIELD).astype(np.int64)
        after[long] = np.where(width > 0, end, block.size + 1)
    return after, (block.raw[at] == tag) & (after <= block.size)
