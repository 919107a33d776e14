"""Numbers with units as text, and back; no other place turns ns, bytes and ratios into words."""

import re

_TIMES = (("ns", 1), ("µs", 1_000), ("ms", 1_000_000))
_SECOND, _MINUTE, _HOUR = 1_000_000_000, 60_000_000_000, 3_600_000_000_000
_BYTES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_COUNTS = ("", "k", "M", "G", "T", "P")

_NS_OF_UNIT = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": _SECOND,
    "min": _MINUTE,
    "h": _HOUR,
}

# A unit gives way to the next where three digits would round up to a fourth.
_ROUNDS_UP = 999.5


def duration(ns: float) -> str:
    """12 ns, 1.23 ms, 45.6 s, 12.3 min."""
    size = abs(ns)
    for unit, factor in _TIMES:
        if size / factor < _ROUNDS_UP:
            return f"{_three_digits(ns / factor, whole=factor == 1)} {unit}"
    # From two minutes and two hours on: "1.5 min" reads worse than "90 s".
    if size < 2 * _MINUTE:
        return f"{_three_digits(ns / _SECOND)} s"
    unit, factor = ("min", _MINUTE) if size < 2 * _HOUR else ("h", _HOUR)
    return f"{_three_digits(ns / factor)} {unit}"


def moment(ns: int) -> str:
    """A point in time, in seconds to the microsecond: 12.345678 s."""
    return f"{ns / _SECOND:,.6f} s"


def size(count: float) -> str:
    """1.2 GiB."""
    value = float(count)
    for unit in _BYTES:
        if abs(value) < _ROUNDS_UP or unit == _BYTES[-1]:
            return f"{_three_digits(value, whole=unit == 'B')} {unit}"
        value /= 1024
    raise AssertionError("every size has a unit")


def count(number: float) -> str:
    """12,345 up to a million, then 1.23 M."""
    if abs(number) < 1_000_000:
        if number == int(number):
            return f"{int(number):,}"
        return _three_digits(number) if abs(number) < 1000 else f"{number:,.0f}"
    return rate(number)


def quantity(number: float) -> str:
    """A measured number without a unit, to four digits: 0.3127, 1.5e-05, 12,345, NaN."""
    if number != number:
        return "NaN"
    if abs(number) == float("inf"):
        return "+Inf" if number > 0 else "-Inf"
    if 1000 <= abs(number) < 1_000_000:
        return f"{number:,.0f}"
    return f"{number:.4g}"


def rate(number: float, unit: str = "") -> str:
    """1.23 GFLOP/s: a decimal prefix before the unit."""
    value = float(number)
    for prefix in _COUNTS:
        if abs(value) < _ROUNDS_UP or prefix == _COUNTS[-1]:
            return f"{_three_digits(value)} {prefix}{unit}".rstrip()
        value /= 1000
    raise AssertionError("every rate has a prefix")


def percent(ratio: float) -> str:
    """62%; below ten one digit more: 6.2%."""
    value = ratio * 100
    return f"{value:.0f}%" if abs(value) >= 9.95 or value == 0 else f"{value:.1f}%"


def times(ratio: float) -> str:
    """2.2×: so many times."""
    return f"{ratio:.1f}×" if ratio < 9.95 else f"{ratio:.0f}×"


def parse_duration(text: str) -> int:
    """Nanoseconds of "10us", "1.5 ms", "2s"; a bare number is nanoseconds."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-zµμ]*)\s*", text)
    unit = (match[2] or "ns") if match else ""
    if match is None or unit not in _NS_OF_UNIT:
        raise ValueError(
            f"{text!r} is not a length of time; write a number and a unit: 500ns, 10us, 1.5ms, 2s"
        )
    whole, _, fraction = match[1].partition(".")
    factor = _NS_OF_UNIT[unit]
    # Integers all the way: 0.1 of a unit is exact.
    return int(whole or "0") * factor + int(fraction or "0") * factor // int(
        "1" + "0" * len(fraction)
    )


def _three_digits(value: float, whole: bool = False) -> str:
    if whole and value == int(value):
        return str(int(value))
    size = abs(value)
    if size >= 99.95 or value == 0:
        return f"{value:.0f}"
    return f"{value:.1f}" if size >= 9.995 else f"{value:.2f}"
