"""The JSON objects in a Kineto file: what of them is decoded, and into which numbers."""

import json
from decimal import Decimal
from typing import Any

import msgspec
import numpy as np

from strobe.ingest.codes import Array

_NS_PER_US = 1000
# Up to here a double holds microseconds with their nanoseconds; since 1970 it would not.
_LARGEST_EXACT_US = 2**53 / _NS_PER_US
_END_OF_TIME_US = 9e15
_NO_ARGS = msgspec.Raw(b"{}")
_NOTHING = msgspec.Raw(b"")
DEVICE_CATEGORIES = (
    "kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation", "Kernel", "Memcpy", "Memset",
)  # fmt: skip
UNKNOWN = -1


class Event(msgspec.Struct, gc=False):
    ph: str = ""
    name: str = ""
    cat: str = ""
    pid: int | str = 0
    tid: int | str = 0
    ts: float = 0.0
    dur: float | None = None
    args: msgspec.Raw = _NO_ARGS


class ExactEvent(Event, gc=False):
    ts: Decimal = Decimal(0)  # type: ignore[assignment]


class HostArgs(msgspec.Struct, gc=False):
    external: int = msgspec.field(name="External id", default=UNKNOWN)
    sequence: int = msgspec.field(name="Sequence number", default=UNKNOWN)
    forward_thread: int = msgspec.field(name="Fwd thread id", default=UNKNOWN)
    dims: msgspec.Raw = msgspec.field(name="Input Dims", default=_NOTHING)
    dtypes: msgspec.Raw = msgspec.field(name="Input type", default=_NOTHING)
    concrete: msgspec.Raw = msgspec.field(name="Concrete Inputs", default=_NOTHING)


class OtherArgs(msgspec.Struct, gc=False):
    external: int = msgspec.field(name="External id", default=UNKNOWN)
    old_external: int = msgspec.field(name="external id", default=UNKNOWN)  # 2021
    correlation: int = UNKNOWN


class DeviceArgs(OtherArgs, gc=False):
    device: int | str = UNKNOWN
    stream: int | str = UNKNOWN
    bytes: int | str = UNKNOWN
    group_size: int | str = msgspec.field(name="Group size", default=UNKNOWN)
    elements: int | str = msgspec.field(name="In msg nelems", default=UNKNOWN)
    grid: msgspec.Raw = _NOTHING
    block: msgspec.Raw = _NOTHING
    operation: msgspec.Raw = msgspec.field(name="Collective name", default=_NOTHING)
    group: msgspec.Raw = msgspec.field(name="Process Group Name", default=_NOTHING)
    dtype: msgspec.Raw = _NOTHING


class MemoryArgs(msgspec.Struct, gc=False):
    address: int = msgspec.field(name="Addr", default=0)
    bytes: int = msgspec.field(name="Bytes", default=0)
    device_type: int = msgspec.field(name="Device Type", default=0)
    device_id: int = msgspec.field(name="Device Id", default=-1)


class NameArgs(msgspec.Struct, gc=False):
    name: str = ""


NUMBERS = (
    "external", "sequence", "forward_thread", "correlation", "device", "stream", "bytes",
    "group_size", "elements",
)  # fmt: skip
TEXTS = ("dims", "dtypes", "concrete", "grid", "block", "operation", "group", "dtype")

# The arguments of Python functions, up to nine tenths of a file, hold nothing that we use.
ARGS_OF_CATEGORY: dict[str, type[msgspec.Struct] | None] = {
    "python_function": None,
    **dict.fromkeys(("cpu_op", "user_annotation", "Operator"), HostArgs),
    **dict.fromkeys(DEVICE_CATEGORIES, DeviceArgs),
}


DECODER = msgspec.json.Decoder(list[Event])
EXACT_DECODER = msgspec.json.Decoder(list[ExactEvent])


def decoder_for(chunk: bytes) -> Any:
    """Doubles where they are exact, decimals (four times slower) where they are not."""
    place = chunk.find(b'"ts"')
    number = chunk[place + 4 : place + 64].lstrip(b" :\t\r\n")
    digits = number.split(b",")[0].split(b"}")[0].strip()
    try:
        exact = b"." not in digits or float(digits) < _LARGEST_EXACT_US
    except ValueError:
        exact = True
    return DECODER if exact else EXACT_DECODER


def lenient(text: bytes, kind: Any) -> Any:
    """One object despite raw control characters, broken UTF-8 or numbers as text; else None."""
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        loose = json.loads(text.decode("utf-8", "replace"), strict=False)
        return msgspec.json.decode(msgspec.json.encode(loose), type=kind, strict=False)
    except (ValueError, RecursionError):  # msgspec's own errors are ValueErrors
        return None


def has_time(event: Event) -> bool:
    """Whether an event says when it was, in this millennium, and a complete one how long."""
    length = event.dur if event.ph == "X" else 0
    return length is not None and 0 <= length < _END_OF_TIME_US > abs(event.ts)


def nanoseconds(values: list[Any]) -> Array:
    if values and isinstance(values[0], Decimal):
        return np.array([int(value * _NS_PER_US) for value in values], dtype=np.int64)
    microseconds = np.array(values, dtype=np.float64)
    whole = microseconds.astype(np.int64)
    # Whole microseconds since 1970 would lose digits in the product.
    return whole * _NS_PER_US + np.rint((microseconds - whole) * _NS_PER_US).astype(np.int64)


def integers(values: list[int | str]) -> Array:
    try:
        return np.array(values, dtype=np.int64)
    except (ValueError, TypeError, OverflowError):
        return np.array([_integer(value) for value in values], dtype=np.int64)


def _integer(value: int | str) -> int:
    try:
        number = int(value, 0) if isinstance(value, str) else int(value)
    except ValueError:
        return UNKNOWN
    return number if -(2**63) <= number < 2**63 else UNKNOWN
