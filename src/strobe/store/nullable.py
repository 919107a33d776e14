"""A column of numbers in memory, of which some are null."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


# A null in an array of integers that has no mask.
UNKNOWN = -(2**63)


class Nullable:
    """Null where the mask is true; the words are those of numpy's masked arrays.

    Which do as well, and take as long to load as all else that a table needs.
    """

    __slots__ = ("data", "mask")

    def __init__(
        self, data: "np.ndarray[Any, Any]", mask: "np.ndarray[Any, np.dtype[np.bool_]]"
    ) -> None:
        self.data, self.mask = data, mask

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, rows: Any) -> "Nullable":
        return Nullable(self.data[rows], self.mask[rows])

    def __add__(self, number: Any) -> "Nullable":
        return Nullable(self.data + number, self.mask)

    def tolist(self) -> list[Any]:
        pairs = zip(self.data.tolist(), self.mask.tolist(), strict=True)
        return [None if is_null else value for value, is_null in pairs]

    def masked(self) -> "np.ma.MaskedArray[Any, Any]":
        import numpy as np

        return np.ma.masked_array(self.data, mask=self.mask)
