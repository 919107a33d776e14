"""The events of a line as columns, a block at a time, with the stats that Strobe uses."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from strobe.ingest.formats.xplane.file import EVENTS_OF_LINE, Line, Plane, XFile, take_line_field
from strobe.ingest.formats.xplane.names import is_bookkeeping
from strobe.ingest.formats.xplane.wire import BYTES, FIXED64, VARINT, Block, Step, records, step
from strobe.ingest.trace import progress
from strobe.ingest.trace.codes import Array

_READ_BYTES = 4 << 20
_BLOCK_EVENTS = 1 << 14  # as many as keep their columns in the cache
_EVENT_TAG = EVENTS_OF_LINE << 3 | BYTES
_LARGEST_ID = 1 << 22  # stats and names of events are numbered from 1 on
_LATEST_PS = 1 << 61
UNKNOWN = -1

# Stats that are numbers of an event, and stats that are texts. Others are not looked at.
NUMBERS = (
    "correlation_id", "program_id", "run_id", "device_ordinal", "step_num", "flops",
    "bytes_accessed", "bytes_transferred", "addr", "allocation_bytes", "bytes_allocated",
    "counter_value", "group_id",
)  # fmt: skip
TEXTS = (
    "hlo_op", "hlo_module", "name", "tf_op", "kernel_details", "memcpy_details",
    "Memset_details", "allocator_name", "source", "hlo_category", "module_name", "tf_op_name",
)  # fmt: skip
_NAMES = NUMBERS + TEXTS
_DOUBLE, _UINT, _INT, _STR, _REF = 2, 3, 4, 5, 7


@dataclass
class Events:
    """Columns of one block of events of a line; -1 is unknown.

    A text is the number of an entry of the plane's `texts`.
    """

    metadata: Array
    offset_ps: Array
    dur_ps: Array
    stats: dict[str, Array] = field(default_factory=dict)
    doubles: dict[str, Array] = field(default_factory=dict)
    left_out: int = 0  # events of the profiler's own bookkeeping, besides

    def stat(self, name: str) -> Array:
        found = self.stats.get(name)
        return found if found is not None else np.full(len(self.metadata), UNKNOWN)


class Wanted:
    """Which of a plane's numbers of stats stand for a stat that is wanted."""

    def __init__(self, plane: Plane) -> None:
        self.plane = plane
        numbers = {name: number for number, name in enumerate(_NAMES)}
        ids = {
            id: numbers[text]
            for id, text in plane.texts.items()
            if text in numbers and 0 <= id < _LARGEST_ID
        }
        self.table = np.full(max(ids, default=0) + 2, UNKNOWN, dtype=np.int64)
        for id, number in ids.items():
            self.table[id] = number
        left_out = [
            id
            for id, metadata in plane.events.items()
            if is_bookkeeping(metadata.shown or metadata.name) and 0 <= id < _LARGEST_ID
        ]
        self.left_out = np.zeros(max(left_out, default=0) + 2, dtype=bool)
        self.left_out[left_out] = True
        # Texts that stand in an event itself get numbers that no reference has.
        self.inline: dict[bytes, int] = {}

    def slot(self, ids: Array) -> Array:
        return _looked_up(self.table, ids)

    def is_left_out(self, ids: Array) -> Array:
        """Whether events with these numbers are the profiler's own bookkeeping."""
        return _looked_up(self.left_out, ids)

    def number_of(self, text: bytes) -> int:
        number = self.inline.get(text)
        if number is None:
            number = self.inline[text] = -2 - len(self.inline)
            self.plane.texts[number] = text.decode("utf-8", "replace")
        return number


def _looked_up(table: Array, ids: Array) -> Array:
    """The last entry of a table answers for all that it does not have."""
    last = len(table) - 1
    return table[np.where((ids >= 0) & (ids < last), ids, last)]


def blocks(file: XFile, line: Line, wanted: Wanted) -> Iterator[Events]:
    """All events of a line, in order. Its name to show may stand behind them."""
    at, size = line.at, _READ_BYTES
    while at < line.end:
        block = Block(file.read(at, min(at + size, line.end)))
        starts, ends, stop = records(block, _EVENT_TAG, 0)
        for first in range(0, len(starts), _BLOCK_EVENTS):
            chosen = slice(first, first + _BLOCK_EVENTS)
            yield _events(file, block, starts[chosen], ends[chosen], wanted)
        progress.report(0 if file.is_packed else stop, len(starts))
        at, size = at + stop, _READ_BYTES
        if not stop:
            given = next(file.fields(at, line.end, "a line of events"), None)
            if given is None:
                return
            number, wire, _, _, after = given
            if number == EVENTS_OF_LINE and wire == BYTES:
                if after - at <= _READ_BYTES or after == line.end:
                    return  # its end is missing
                size = after - at
            else:
                take_line_field(file, line, given)
                at = after


def _events(file: XFile, block: Block, at: Array, end: Array, wanted: Wanted) -> Events:
    """Field after field of all events at once, as long as any has more of them."""
    count = len(at)
    columns = np.zeros((4, count), dtype=np.int64)  # by field number; 0 takes what is not known
    has_time = np.ones(count, dtype=bool)
    whole = np.ones(count, dtype=bool)
    left_out = np.zeros(count, dtype=bool)
    rows = np.arange(count)
    stats: list[tuple[Array, Array, Array]] = []
    at, end, rows = _open(at, end, rows)
    while len(rows):
        found = step(block, at, end)
        if not found.ok.all():
            whole[rows[~found.ok]] = False
        is_number = found.ok & (found.wire == VARINT)
        _take_numbers(columns, rows, found, is_number)
        has_time[rows[is_number & (found.number == 5)]] = False
        is_stat = found.ok & (found.number == 4) & (found.wire == BYTES)
        if is_stat.any():
            stats.append((rows[is_stat], found.start[is_stat], found.after[is_stat]))
        # The number of its name comes first: what is left out need not be read on.
        is_id = is_number & (found.number == 1)
        if is_id.any():
            left_out[rows] |= is_id & wanted.is_left_out(columns[1][rows])
        at, end, rows = _open(found.after, end, rows, found.ok & ~left_out[rows])
    events = Events(*columns[1:])
    _take_stats(file, block, events, stats, wanted)
    return _kept(file, events, left_out, whole, has_time)


def _open(
    at: Array, end: Array, rows: Array, ok: Array | None = None
) -> tuple[Array, Array, Array]:
    """What has more fields."""
    more = at < end if ok is None else (at < end) & ok
    return (at, end, rows) if more.all() else (at[more], end[more], rows[more])


def _take_numbers(columns: Array, rows: Array, found: Step, is_number: Array) -> None:
    value = found.value.view(np.int64)
    for number in (1, 2, 3):
        mine = is_number & (found.number == number)
        if mine.all() and len(rows) == columns.shape[1]:
            columns[number] = value
        elif mine.any():
            columns[number, rows[mine]] = value[mine]


def _kept(file: XFile, events: Events, left_out: Array, whole: Array, has_time: Array) -> Events:
    """Without events that are damaged, have no time of their own or a time that cannot be."""
    file.say("an event is damaged and was left out", int((~whole).sum()))
    file.say("a sum of events without their times was left out", int((~has_time).sum()))
    possible = (abs(events.offset_ps) < _LATEST_PS) & (abs(events.dur_ps) < _LATEST_PS)
    possible &= events.dur_ps >= 0
    impossible = whole & has_time & ~possible
    file.say("an event has an impossible time and was left out", int(impossible.sum()))
    keep = whole & has_time & possible & ~left_out
    if keep.all():
        return events
    return Events(
        events.metadata[keep], events.offset_ps[keep], events.dur_ps[keep],
        {name: column[keep] for name, column in events.stats.items()},
        {name: column[keep] for name, column in events.doubles.items()}, int(left_out.sum()),
    )  # fmt: skip


def _take_stats(
    file: XFile, block: Block, events: Events,
    parts: list[tuple[Array, Array, Array]], wanted: Wanted,
) -> None:  # fmt: skip
    if not parts:
        return
    owner, at, end = (np.concatenate(column) for column in zip(*parts, strict=True))
    slot = np.full(len(owner), UNKNOWN, dtype=np.int64)
    rows = np.arange(len(owner))
    found_rows, found_steps = [], []
    at, end, rows = _open(at, end, rows)
    while len(rows):
        found = step(block, at, end)
        if not found.ok.all():
            file.say("a stat is damaged", int((~found.ok).sum()))
        is_id = found.ok & (found.number == 1)
        slot[rows[is_id]] = wanted.slot(found.value.view(np.int64)[is_id])
        has_value = found.ok & (found.number > 1)
        if has_value.any():
            found_rows.append(rows[has_value])
            found_steps.append(Step(*(column[has_value] for column in found)))
        # The number of a stat comes first: what is not wanted need not be read on.
        going = found.ok & ~(is_id & (slot[rows] < 0))
        at, end, rows = _open(found.after, end, rows, going)
    if found_rows:
        rows = np.concatenate(found_rows)
        values = Step(*(np.concatenate(column) for column in zip(*found_steps, strict=True)))
        known = slot[rows] >= 0
        values = Step(*(column[known] for column in values))
        _fill(block, events, owner[rows[known]], slot[rows[known]], values, wanted)


def _fill(
    block: Block, events: Events, owner: Array, slot: Array, values: Step, wanted: Wanted
) -> None:
    count = len(events.metadata)
    for number in np.flatnonzero(np.bincount(slot, minlength=len(_NAMES))).tolist():
        mine = np.flatnonzero(slot == number)
        name, rows = _NAMES[number], owner[mine]
        form, wire = values.number[mine], values.wire[mine]
        column = events.stats.setdefault(name, np.full(count, UNKNOWN, dtype=np.int64))
        if name in TEXTS:
            refs = (form == _REF) & (wire == VARINT)
            column[rows[refs]] = values.value[mine][refs].view(np.int64)
            for place in np.flatnonzero((form == _STR) & (wire == BYTES)).tolist():
                text = block.text(int(values.start[mine[place]]), int(values.after[mine[place]]))
                column[rows[place]] = wanted.number_of(text)
            continue
        whole = ((form == _UINT) | (form == _INT)) & (wire == VARINT)
        column[rows[whole]] = values.value[mine][whole].view(np.int64)
        parts = (form == _DOUBLE) & (wire == FIXED64)
        if parts.any():
            exact = block.words[values.start[mine][parts]].view(np.float64)
            doubles = events.doubles.setdefault(name, np.full(count, np.nan))
            doubles[rows[parts]] = exact
            column[rows[parts]] = np.nan_to_num(exact.clip(-(2.0**62), 2.0**62)).astype(np.int64)
