"""The events of a piece: when each was, at which step, and the values in it."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from strobe.ingest.formats.event_files.messages import Fields, doubles, scan, submessages
from strobe.ingest.formats.event_files.records import Piece
from strobe.ingest.formats.xplane.wire import BYTES, FIXED64, VARINT, Block
from strobe.ingest.trace.codes import Array
from strobe.ingest.trace.metric_rows import UNKNOWN

_WALL_TIME, _STEP, _SUMMARY = 1, 2, 5
_VALUE, _TAG = 1, 1
_LATEST_S = 1 << 33  # a time beyond is not one: the year 2242
_NS_PER_S = 10**9


class Events(NamedTuple):
    block: Block
    ts_ns: Array  # since 1970; UNKNOWN where the event has no time
    step: Array
    other: Fields  # of events: everything but time, step and values
    values: Fields  # the messages of values; the owner is the event
    parts: Fields  # the fields of those; the owner is the value
    broken: int  # messages that are damaged


def events(piece: Piece) -> Events:
    block = piece.block
    fields, broken = scan(block, piece.starts, piece.ends)
    count = len(piece.starts)
    wall_time, step = fields.of(_WALL_TIME, FIXED64), fields.of(_STEP, VARINT)
    seconds = np.full(count, np.nan)
    seconds[wall_time.owner] = doubles(block, wall_time.start)
    steps = np.zeros(count, dtype=np.int64)
    steps[step.owner] = step.value.view(np.int64)
    summaries = submessages(block, fields, _SUMMARY)
    inside = scan(block, summaries.start, summaries.end)
    values = submessages(block, inside.fields, _VALUE)
    values = replace(values, owner=summaries.owner[values.owner])
    parts = scan(block, values.start, values.end)
    other = fields.rows((fields.number > _STEP) & (fields.number != _SUMMARY)).in_order()
    broken += inside.broken + parts.broken
    return Events(block, nanoseconds(seconds), steps, other, values, parts.fields, broken)


def nanoseconds(seconds: Array) -> Array:
    """Times as integers; UNKNOWN for what cannot be a time."""
    is_time = (seconds > 0) & (seconds < _LATEST_S)  # false for NaN, too
    ns = np.rint(np.where(is_time, seconds, 0) * _NS_PER_S).astype(np.int64)
    known: Array = np.where(is_time, ns, UNKNOWN)
    return known


def tags(found: Events) -> Fields:
    """The tag of each value that has one; the owner is the value."""
    return found.parts.of(_TAG, BYTES)
