"""A column of text in memory."""

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np


class Strings(NamedTuple):
    """A column of text as numbers into a list of distinct values; -1 is null."""

    codes: "np.ndarray[Any, np.dtype[np.int32]]"
    values: list[str]
