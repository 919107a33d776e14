"""Numbers as the profilers of Ascend and MindSpore write them, as nanoseconds.

Moments are text such as `1736408883704643.212\\t`: microseconds since 1970 with their nanoseconds,
which a double would round. Cells may be empty or say N/A.
"""

import re
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation

import numpy as np

from strobe.ingest.trace.codes import Array

NEVER = -(2**63)  # where no moment is told
_LIMIT = 2**62
# Each number can be matched in one way only: with two, a list that ends in something else would be
# tried in as many ways as 2 to the power of its length.
_FIXED = re.compile(r"(?:(?:[0-3]\d{15}|\d{1,15})\.\d{3}\n)+")
_LENGTHS = re.compile(r"(?:\d{1,18}(?:\.\d{0,18})?\n)+")
_MOST_DIGITS = 24
_NS = {"s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}
_UNIT = re.compile(r"\((s|ms|us|ns)\)")


def unit_ns(header: str, otherwise: int = 1000) -> int:
    """How many nanoseconds the unit in a column's name is: `Start Time(us)`."""
    found = _UNIT.search(header)
    return _NS[found.group(1)] if found else otherwise


def moments(texts: Sequence[str], unit: int = 1000) -> Array:
    """Exact to the nanosecond; NEVER where there is no number."""
    joined = "\n".join(map(str.strip, texts)) + "\n"
    if unit == 1000 and _FIXED.fullmatch(joined):
        return np.fromstring(joined.replace(".", ""), dtype=np.int64, sep="\n")
    return np.array([_moment(text, unit) for text in texts], dtype=np.int64)


def lengths(texts: Sequence[str], unit: int = 1000) -> Array:
    """Rounded to the nanosecond; -1 where there is no number, or a negative one."""
    return scaled(texts, unit)


def scaled(texts: Sequence[str], factor: float) -> Array:
    """Numbers times a factor, as whole numbers; -1 where there is none, or a negative one."""
    values = numbers(texts) * factor
    known = (values >= 0) & (values < _LIMIT)
    return np.where(known, np.rint(np.where(known, values, 0)), -1).astype(np.int64)


def numbers(texts: Sequence[str]) -> Array:
    """As doubles; not a number where there is none."""
    joined = "\n".join(map(str.strip, texts)) + "\n"
    if _LENGTHS.fullmatch(joined):
        return np.fromstring(joined, dtype=np.float64, sep="\n")
    return np.array([_number(text) for text in texts], dtype=np.float64)


def integers(texts: Sequence[str]) -> Array:
    """-1 where there is no whole number."""
    return np.array([_integer(text) for text in texts], dtype=np.int64)


def _moment(text: str, unit: int) -> int:
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        return NEVER
    if not number.is_finite() or number.adjusted() > _MOST_DIGITS:
        return NEVER
    whole = int(number * unit)
    return whole if abs(whole) < _LIMIT else NEVER


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def _integer(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        return -1
    return number if 0 <= number < _LIMIT else -1
