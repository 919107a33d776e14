"""Write an XSpace by hand: the same wire format that the profiler of XLA writes."""

import struct
from collections.abc import Iterable

Value = int | float | str | bytes


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    result = bytearray()
    while number >= 0x80:
        result.append(number & 0x7F | 0x80)
        number >>= 7
    result.append(number)
    return bytes(result)


def put(number: int, value: Value) -> bytes:
    """One field: whole numbers as varints, others as 8 bytes, text and bytes with their length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def message(*fields: tuple[int, Value]) -> bytes:
    return b"".join(put(number, value) for number, value in fields)


class Ref(str):
    """A text that a stat refers to."""


class PlaneWriter:
    """A plane; names of events and stats get their numbers as they come."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lines: list[bytes] = []
        self.event_ids: dict[str, int] = {}
        self.metadata: dict[str, bytes] = {}
        self.stat_ids: dict[str, int] = {}
        self.stats = b""

    def stat_id(self, name: str) -> int:
        return self.stat_ids.setdefault(name, len(self.stat_ids) + 1)

    def stat(self, name: str, value: Value) -> bytes:
        id = (1, self.stat_id(name))
        if isinstance(value, Ref):
            return message(id, (7, self.stat_id(value)))
        number = {float: 2, int: 4, str: 5, bytes: 6}[type(value)]
        return message(id, (number, value))

    def event_id(self, name: str, shown: str = "", **stats: Value) -> int:
        if name not in self.event_ids:
            self.event_ids[name] = len(self.event_ids) + 1
            given = [(5, self.stat(stat.replace("__", " "), v)) for stat, v in stats.items()]
            self.metadata[name] = message((4, shown), *given) if shown else message(*given)
        return self.event_ids[name]

    def event(self, name: str, start_ns: float, dur_ns: float, **stats: Value) -> bytes:
        fields = [(1, self.event_id(name)), (2, round(start_ns * 1000))]
        if dur_ns:
            fields.append((3, round(dur_ns * 1000)))
        given = [(4, self.stat(stat, value)) for stat, value in stats.items()]
        return message(*fields, *given)

    def line(self, id: int, name: str, ts_ns: int, events: Iterable[bytes]) -> None:
        head = message((1, id), (2, name), (3, ts_ns))
        self.lines.append(head + b"".join(put(4, event) for event in events))

    def plane_stat(self, name: str, value: Value) -> None:
        self.stats += put(6, self.stat(name, value))

    def bytes(self) -> bytes:
        lines = b"".join(put(3, line) for line in self.lines)
        events = b"".join(
            put(4, message((1, id), (2, message((1, id), (2, name)) + self.metadata[name])))
            for name, id in self.event_ids.items()
        )
        stats = b"".join(
            put(5, message((1, id), (2, message((1, id), (2, name)))))
            for name, id in self.stat_ids.items()
        )
        return message((2, self.name)) + lines + events + stats + self.stats


START_NS = 1_700_000_000_000_000_000


def task_plane(start_ns: int = START_NS, stop_ns: int = START_NS + 10**9) -> PlaneWriter:
    plane = PlaneWriter("Task Environment")
    plane.plane_stat("profile_start_time", start_ns)
    plane.plane_stat("profile_stop_time", stop_ns)
    return plane


def space(*planes: PlaneWriter, host: str = "host") -> bytes:
    return b"".join(put(1, plane.bytes()) for plane in planes) + put(4, host)


def instruction(
    id: int, name: str, opcode: str, op_name: str = "", dims: tuple[int, ...] = (),
    operands: tuple[int, ...] = (), *more: tuple[int, Value],
) -> bytes:  # fmt: skip
    """An HLO instruction that makes one f32 array."""
    shape = message((2, 11), (3, b"".join(map(varint, dims))))
    ids = b"".join(map(varint, operands))
    metadata = message((2, op_name), (3, "train.py"), (4, 7)) if op_name else b""
    return message(
        (1, name), (2, opcode), (3, shape), (7, metadata), (35, id), (36, ids), *more
    )  # fmt: skip


def program(name: str, *instructions: bytes) -> bytes:
    """An HloProto with one computation."""
    computation = message((1, "main"), *((2, given) for given in instructions), (5, 1))
    return message((1, message((1, name), (3, computation))))


def metadata_plane(*programs: tuple[str, int, bytes]) -> PlaneWriter:
    """Programs by name, id and HloProto."""
    plane = PlaneWriter("/host:metadata")
    for name, id, proto in programs:
        plane.event_id(f"{name}({id})", Hlo__Proto=proto)
    return plane
