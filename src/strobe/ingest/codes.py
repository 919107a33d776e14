"""Distinct values numbered in the order they were first seen: text leaves as small integers."""

from collections.abc import Hashable, Iterable
from typing import Any, TypeVar

import numpy as np

from strobe.store.columns import Strings

K = TypeVar("K", bound=Hashable)
Array = np.ndarray[Any, np.dtype[Any]]


class Codes(dict[K, int]):
    """`codes[value]` is the number of a value, given out on first sight."""

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


def strings(codes: Array, values: Iterable[str]) -> Strings:
    return Strings(np.asarray(codes, dtype=np.int32), list(values))
