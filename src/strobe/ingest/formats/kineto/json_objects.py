"""The JSON objects in a Kineto file: what of them is decoded, and into which numbers."""

import json
import re
from decimal import Decimal
from typing import Any

import msgspec
import numpy as np
from msgspec import Raw, field

from strobe.ingest.trace.codes import Array

_NS_PER_US = 1000
# Up to here a double holds microseconds with their nanoseconds; since 1970 it would not.
_LARGEST_EXACT_US = 2**53 / _NS_PER_US
# Digits of whole microseconds that a double has room for, beside those of nanoseconds.
_SHORT_DIGITS = 9
_LONG_TIME = re.compile(rb'"ts": (\d{%d,9})\d{%d}\.' % (4, _SHORT_DIGITS))
# Later than any trace, and yet small enough that sums and doubles of nanoseconds fit 64 bits.
END_OF_TIME_US = 4e15
LONGEST_US = 3e14
_NOTHING = Raw(b"")
DEVICE_CATEGORIES = (
    "kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation", "Kernel", "Memcpy", "Memset",
    "cuda_sync", "collective_comm", "mtia_ccp_events",
)  # fmt: skip
# The operator that says what a collective communicates, whichever library does it.
COLLECTIVE_OPERATOR = "record_param_comms"
UNKNOWN = -1

Number = int | float | str


class HostArgs(msgspec.Struct, gc=False, frozen=True):
    """Arguments of operators on the host, of which long stretches of a file consist: an object of
    these alone is made in two thirds of the time. In the order in which files have them: a key that
    comes where it is expected is found at once."""

    external: int = field(name="External id", default=UNKNOWN)
    sequence: int = field(name="Sequence number", default=UNKNOWN)
    forward_thread: int = field(name="Fwd thread id", default=UNKNOWN)
    concrete: Raw = field(name="Concrete Inputs", default=_NOTHING)
    dtypes: Raw = field(name="Input type", default=_NOTHING)
    dims: Raw = field(name="Input Dims", default=_NOTHING)
    name: str = ""  # of metadata


class Args(HostArgs, gc=False, frozen=True):
    """Every argument that is used, of any event."""

    # of what runs on a device
    device: Number = UNKNOWN
    stream: Number = UNKNOWN
    correlation: int = UNKNOWN
    bytes: Number = UNKNOWN
    registers: Number = field(name="registers per thread", default=UNKNOWN)
    shared_memory: Number = field(name="shared memory", default=UNKNOWN)
    grid: Raw = _NOTHING
    block: Raw = _NOTHING
    occupancy: Number = field(name="est. achieved occupancy %", default=UNKNOWN)
    size: Number = UNKNOWN  # MTIA's word for bytes
    direction: Raw = _NOTHING
    old_external: int = field(name="external id", default=UNKNOWN)  # 2021
    # of collectives
    operation: Raw = field(name="Collective name", default=_NOTHING)
    dtype: Raw = _NOTHING
    elements: Number = field(name="In msg nelems", default=UNKNOWN)
    out_elements: Number = field(name="Out msg nelems", default=UNKNOWN)
    group_size: Number = field(name="Group size", default=UNKNOWN)
    group: Raw = field(name="Process Group Name", default=_NOTHING)
    group_ranks: Raw = field(name="Process Group Ranks", default=_NOTHING)
    # of memory events
    reserved: Number = field(name="Total Reserved", default=UNKNOWN)
    allocated: Number = field(name="Total Allocated", default=UNKNOWN)
    taken: Number = field(name="Bytes", default=0)
    address: Number = field(name="Addr", default=0)
    device_id: Number = field(name="Device Id", default=-1)
    device_type: Number = field(name="Device Type", default=0)


NO_ARGS = Args()


# What stands in a text whose events have other arguments, nearly always.
NOT_OF_HOST = b'"correlation"'


class Event(msgspec.Struct, gc=False):
    ph: str = ""
    cat: str = ""
    name: str = ""
    pid: int | str = 0
    tid: int | str = 0
    ts: float = 0.0
    dur: float | None = None
    args: Args = NO_ARGS


class HostEvent(Event, gc=False):
    args: HostArgs = HostArgs()  # type: ignore[assignment]


class ExactEvent(Event, gc=False):
    ts: Decimal = Decimal(0)  # type: ignore[assignment]


_HOST = ("external", "sequence", "forward_thread", "dims", "dtypes", "concrete")
_OTHER = ("external", "old_external", "correlation")
_COLLECTIVE = (
    *_OTHER, "group_size", "elements", "out_elements", "operation", "group", "group_ranks", "dtype",
)  # fmt: skip
_DEVICE = (
    *_COLLECTIVE, "device", "stream", "bytes", "size", "registers", "shared_memory", "occupancy",
    "grid", "block", "direction",
)  # fmt: skip
MEMORY = ("address", "taken", "device_type", "device_id", "allocated", "reserved")

TEXTS = (
    "dims", "dtypes", "concrete", "grid", "block", "operation", "group", "group_ranks", "dtype",
    "direction",
)  # fmt: skip
# The same under another name.
SPELLINGS = {"old_external": "external", "size": "bytes"}

# Which arguments the events of a category have, and of one operator; all others have _OTHER.
OTHER_ARGS = _OTHER
ARGS_OF_CATEGORY: dict[str, tuple[str, ...]] = {
    "python_function": (),
    **dict.fromkeys(("cpu_op", "user_annotation", "Operator"), _HOST),
    **dict.fromkeys(DEVICE_CATEGORIES, _DEVICE),
}
ARGS_OF_NAME = {COLLECTIVE_OPERATOR: _COLLECTIVE}
HOST_ARGS = frozenset(HostArgs.__struct_fields__)

HOST_DECODER = msgspec.json.Decoder(list[HostEvent])
DECODER = msgspec.json.Decoder(list[Event])
EXACT_DECODER = msgspec.json.Decoder(list[ExactEvent])


def needs_exact(chunk: bytes) -> bool:
    """Whether times are such that doubles round them; decimals are four times slower."""
    place = chunk.find(b'"ts"')
    number = chunk[place + 4 : place + 64].lstrip(b" :\t\r\n")
    digits = number.split(b",")[0].split(b"}")[0].strip()
    try:
        return b"." in digits and float(digits) >= _LARGEST_EXACT_US
    except ValueError:
        return False


def shortened(chunk: bytes) -> tuple[bytes, int] | None:
    """The same events with times that doubles hold, and the nanoseconds that these then lack.

    Times of one chunk share their first digits, for which a 1 is put: text is replaced far sooner
    than decimals are decoded. None where one does not share them.
    """
    first = _LONG_TIME.search(chunk)
    if first is None:
        return None
    shared = b'"ts": ' + first.group(1)
    if chunk.count(shared) != chunk.count(b'"ts"'):
        return None
    lacking_us = (int(first.group(1)) - 1) * 10**_SHORT_DIGITS
    return chunk.replace(shared, b'"ts": 1'), lacking_us * _NS_PER_US


def are_shortened(events: list[Event]) -> bool:
    """Whether every time had as many digits as the first."""
    times = np.array([event.ts for event in events])
    low = 10**_SHORT_DIGITS
    return bool(((times >= low) & (times < 2 * low)).all())


def lenient(text: bytes, kind: Any) -> Any:
    """One object despite raw control characters, broken UTF-8 or odd values; else None."""
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        loose = json.loads(text.decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        return None
    for odd in ((), ("args",), ("args", "pid", "tid")):
        try:
            kept = {key: value for key, value in loose.items() if key not in odd}
            return msgspec.json.decode(msgspec.json.encode(kept), type=kind, strict=False)
        except (ValueError, RecursionError, AttributeError):  # msgspec's errors are ValueErrors
            continue
    return None


def has_time(event: Event) -> bool:
    """Whether an event says when it was, in this millennium, and a complete one how long."""
    length = event.dur if event.ph == "X" else 0
    return length is not None and 0 <= length < LONGEST_US and abs(event.ts) < END_OF_TIME_US


def nanoseconds(values: list[Any] | Array) -> Array:
    if len(values) and isinstance(values[0], Decimal):
        return np.array([int(value * _NS_PER_US) for value in values], dtype=np.int64)
    microseconds = np.asarray(values, dtype=np.float64)
    whole = microseconds.astype(np.int64)
    # Whole microseconds since 1970 would lose digits in the product.
    return whole * _NS_PER_US + np.rint((microseconds - whole) * _NS_PER_US).astype(np.int64)


def integers(values: list[Any]) -> Array:
    try:
        return np.array(values, dtype=np.int64)
    except (ValueError, TypeError, OverflowError):
        return np.array([_integer(value) for value in values], dtype=np.int64)


def _integer(value: Number) -> int:
    try:
        number = int(value, 0) if isinstance(value, str) else int(value)
    except (ValueError, OverflowError):
        return UNKNOWN
    return number if -(2**63) <= number < 2**63 else UNKNOWN
