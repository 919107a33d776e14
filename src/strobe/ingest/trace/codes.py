"""Distinct values numbered in order of first appearance, so that text becomes small integers."""

from collections.abc import Hashable, Iterable
from typing import Any, TypeVar

import numpy as np

from strobe.store.strings import Strings

K = TypeVar("K", bound=Hashable)
Array = np.ndarray[Any, np.dtype[Any]]

# Maximum number of table entries per row: initialising a larger table takes longer than sorting the
# rows.
_WORTH_A_TABLE = 4
_DENSE = 1 << 16


class Codes(dict[K, int]):
    """`codes[value]` is the number of a value, assigned when it is first seen."""

    def __missing__(self, value: K) -> int:
        self[value] = number = len(self)
        return number

    def of(self, values: Iterable[K], count: int = -1) -> Array:
        return np.fromiter(map(self.__getitem__, values), dtype=np.int32, count=count)

    def values_list(self) -> list[K]:
        return list(self)


def mapped(codes: Array, table: "list[int] | Array") -> Array:
    """Each code looked up in a table; -1 stays -1."""
    lookup = np.append(np.asarray(table, dtype=np.int32), np.int32(-1))
    return lookup[codes]


def narrow(values: Array) -> Array:
    """In half the memory, if the values fit."""
    fits = not len(values) or (values.max() < 2**31 and values.min() >= -(2**31))
    return values.astype(np.int32) if fits else values


def in_order_once(values: Array) -> Array:
    """The distinct values; np.unique would import masked arrays, a tenth of all of numpy."""
    values = np.sort(values)
    is_first = np.ones(len(values), dtype=np.bool_)
    is_first[1:] = values[1:] != values[:-1]
    return values[is_first]


def occurring(values: Array) -> tuple[Array, Array]:
    """The distinct integers, in order, and the index of each value among them.

    The values are close together: a table of the whole range takes linear time, unlike sorting.
    """
    if not len(values):
        return values, np.zeros(0, dtype=np.int64)
    low, high = int(values.min()), int(values.max())
    if high - low >= _widest_table(len(values)):
        found, back = np.unique(values, return_inverse=True)
        return found, back
    offset = values - low
    occurs = np.zeros(high - low + 1, dtype=np.bool_)
    occurs[offset] = True
    number = np.cumsum(occurs, dtype=np.int64) - 1
    return np.flatnonzero(occurs) + low, number[offset]


def _widest_table(rows: int) -> int:
    return max(_DENSE, _WORTH_A_TABLE * rows)


def first_of_each(columns: list[Array]) -> tuple[Array, Array]:
    """For columns of integers, the first position of each distinct row, and the index of each row
    among the distinct ones.

    Row by row it would take twenty times as long. The columns are packed into one, pair by pair,
    with only the pairs that occur if there would be too many for a table.
    """
    count = len(columns[0]) if columns else 0
    key, pairs = np.zeros(count, dtype=np.int64), 1
    for column in columns if count else ():
        low, high = int(column.min()), int(column.max())
        number, numbers = column - low, high - low + 1
        if pairs * numbers > _widest_table(count):
            (found, number), (known, key) = occurring(column), occurring(key)
            numbers, pairs = len(found), len(known)
        key, pairs = key * numbers + number, pairs * numbers
    _, key = occurring(key)
    first = np.zeros(int(key.max(initial=-1)) + 1, dtype=np.int64)
    first[key[::-1]] = np.arange(count - 1, -1, -1)  # of equal ones, the last assignment wins
    return first, key


def distinct(columns: list[Array]) -> tuple[list[list[int]], Array]:
    """The distinct rows of columns of integers, in order, and the index of each row among them."""
    first, back = first_of_each(columns)
    return np.stack([column[first] for column in columns], axis=1).tolist() if columns else [], back


def strings(codes: Array, values: Iterable[str]) -> Strings:
    return Strings(np.asarray(codes, dtype=np.int32), list(values))
