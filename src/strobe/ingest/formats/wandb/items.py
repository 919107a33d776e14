"""Keys and values of W&B's records as columns: of history, summary, config and system metrics.

An item has a key, or the keys of objects within objects, and a value: as JSON, or in a field of its
own type.
"""

import json
from typing import Any, NamedTuple

import numpy as np

from strobe.ingest.formats.event_files.messages import Fields, doubles, scan
from strobe.ingest.formats.event_files.names import Names
from strobe.ingest.formats.xplane.wire import BYTES, FIXED64, VARINT, Block, fields
from strobe.ingest.trace.codes import Array, Codes

SEPARATOR = "\0"  # between the keys of a path
_KEY, _NESTED_KEY = 1, 2
_BOOLEAN, _INTEGER, _NUMBER, _TEXT, _JSON, _VALUE_JSON = 4, 5, 6, 7, 8, 16
_WIDEST = 32  # characters of a number that is read as one of many
_QUOTED = {b'"NaN"': np.nan, b'"Infinity"': np.inf, b'"-Infinity"': -np.inf}
_QUOTED_SIZES = [len(text) for text in _QUOTED]
_STARTS = np.zeros(256, dtype=np.bool_)  # how a number may begin
_STARTS[list(b"-0123456789NI")] = True


class Items(NamedTuple):
    block: Block
    owner: Array  # the record, by its position among those asked for
    path: Array  # its number among the paths; -1 if it has none
    number: Array  # its value, if it is one
    is_number: Array
    start: Array  # of its JSON or text; empty if it has none
    end: Array
    is_text: Array  # plain text, not JSON
    broken: int  # messages that are damaged

    def value(self, row: int) -> Any:
        """The value of one item. Raises ValueError or RecursionError."""
        data = self.block.text(int(self.start[row]), int(self.end[row]))
        if self.is_text[row]:
            return data.decode("utf-8", "replace")
        if data:
            return json.loads(data)
        return float(self.number[row]) if self.is_number[row] else None


class Paths:
    """The key paths of a run by their numbers; of nested keys, the separator is between them."""

    def __init__(self) -> None:
        self.codes = Codes[str]()
        self._names = Names(self.codes, decode=_decoded)

    def of(self, block: Block, keys: Fields, count: int) -> Array:
        """The path of each item from its fields of keys, which are beside each other."""
        path = np.full(count, -1, dtype=np.int64)
        if len(keys):
            keys = keys.in_order()
            is_first = np.append(True, keys.owner[1:] != keys.owner[:-1])
            first = np.flatnonzero(is_first)
            last = np.append(first[1:], len(keys)) - 1
            sizes = (keys.end - keys.start)[first]
            widths = 1 + (sizes >= 1 << 7) + (sizes >= 1 << 14) + (sizes >= 1 << 21)
            # From the tag of the first field on.
            begin = np.maximum(keys.start[first] - widths - 1, 0)
            path[keys.owner[first]] = self._names.of(block, begin, keys.end[last])
        return path

    def table(self) -> list[str]:
        """The path of each number."""
        return list(self.codes)


def read(block: Block, items: Fields, paths: Paths) -> Items:
    """The items in these messages, whose owners are the records."""
    count = len(items)
    parts, broken = scan(block, items.start, items.end)
    is_key = ((parts.number == _KEY) | (parts.number == _NESTED_KEY)) & (parts.wire == BYTES)
    path = paths.of(block, parts.rows(is_key), count)
    start, end = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    is_text = np.zeros(count, dtype=np.bool_)
    for field in (_VALUE_JSON, _JSON, _TEXT):
        found = parts.of(field, BYTES)
        start[found.owner], end[found.owner] = found.start, found.end
        is_text[found.owner] = field == _TEXT
    number, is_number = _json_numbers(block, start, end, ~is_text)
    typed = parts.of(_NUMBER, FIXED64)
    number[typed.owner] = doubles(block, typed.start)
    integer, boolean = parts.of(_INTEGER, VARINT), parts.of(_BOOLEAN, VARINT)
    zigzag = (integer.value >> np.uint64(1)) ^ (np.uint64(0) - (integer.value & np.uint64(1)))
    number[integer.owner] = zigzag.view(np.int64).astype(np.float64)
    number[boolean.owner] = boolean.value != 0
    for found in (typed, integer, boolean):
        is_number[found.owner] = True
    return Items(block, items.owner, path, number, is_number, start, end, is_text, broken)


def _json_numbers(block: Block, start: Array, end: Array, is_json: Array) -> tuple[Array, Array]:
    """The values that are numbers or booleans, and which of them are."""
    size = np.where(is_json, end - start, 0)
    first = np.where(size > 0, block.raw[start], 0)
    number = np.full(len(start), np.nan)
    is_number = (first == ord("t")) | (first == ord("f"))
    number[is_number] = first[is_number] == ord("t")
    plain = np.flatnonzero(_STARTS[first])
    if len(plain):
        number[plain], is_number[plain] = _parsed(block, start[plain], end[plain])
    for row in np.flatnonzero((first == ord('"')) & np.isin(size, _QUOTED_SIZES)).tolist():
        value = _QUOTED.get(block.text(int(start[row]), int(end[row])))
        if value is not None:
            number[row], is_number[row] = value, True
    return number, is_number


def _parsed(block: Block, start: Array, end: Array) -> tuple[Array, Array]:
    """Numbers from their digits, all at once if nothing is wrong with any."""
    if (end - start).max() <= _WIDEST:
        offset = np.arange(_WIDEST)
        place = np.minimum(start[:, None] + offset, len(block.raw) - 1)
        digits = np.where(offset < (end - start)[:, None], block.raw[place], 0).astype(np.uint8)
        try:
            texts = np.ascontiguousarray(digits).view(f"S{_WIDEST}").ravel()
            return texts.astype(np.float64), np.ones(len(start), dtype=np.bool_)
        except ValueError:
            pass  # one by one, then
    number = np.full(len(start), np.nan)
    is_number = np.zeros(len(start), dtype=np.bool_)
    for row, (begin, until) in enumerate(zip(start.tolist(), end.tolist(), strict=True)):
        try:
            number[row] = float(block.text(begin, until))
            is_number[row] = True
        except ValueError:
            continue
    return number, is_number


def _decoded(data: bytes) -> str:
    parts = [v for n, v in fields(data, _ignored) if n in (_KEY, _NESTED_KEY)]
    return SEPARATOR.join(p.decode("utf-8", "replace") for p in parts if isinstance(p, bytes))


def _ignored() -> None:
    """A damaged item is counted where its fields are read."""
