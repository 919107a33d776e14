"""Programs as XLA compiled them (HloProto): what stands behind the name of an operation.

Of each instruction: its opcode, the name that JAX gave it (the path of scopes it was traced in),
the line of source, shapes, the work of products and convolutions, who takes part in a collective.
https://github.com/openxla/xla/blob/main/xla/service/hlo.proto
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple

from strobe.ingest.formats.xplane.wire import Broken, fields, signed, varint

# Names of element types and the bytes that one takes, by their number in xla_data.proto.
_TYPES = {
    1: ("pred", 1), 2: ("s8", 1), 3: ("s16", 2), 4: ("s32", 4), 5: ("s64", 8), 6: ("u8", 1),
    7: ("u16", 2), 8: ("u32", 4), 9: ("u64", 8), 10: ("f16", 2), 11: ("f32", 4), 12: ("f64", 8),
    15: ("c64", 8), 16: ("bf16", 2), 18: ("c128", 16), 19: ("f8e5m2", 1), 20: ("f8e4m3fn", 1),
    21: ("s4", 1), 22: ("u4", 1), 23: ("f8e4m3b11fnuz", 1), 24: ("f8e5m2fnuz", 1),
    25: ("f8e4m3fnuz", 1), 28: ("f8e4m3", 1), 29: ("f8e3m4", 1), 33: ("f8e8m0fnu", 1),
}  # fmt: skip
COLLECTIVES = {
    "all-reduce": "all_reduce", "all-gather": "all_gather", "reduce-scatter": "reduce_scatter",
    "all-to-all": "all_to_all", "ragged-all-to-all": "all_to_all",
    "collective-permute": "send_recv", "collective-broadcast": "broadcast", "send": "send",
    "recv": "recv",
}  # fmt: skip
_DEEPEST_TUPLE = 16
_LARGEST = 2**62
_MOST_MEMBERS = 1024
_LIBRARIES = ("site-packages", "dist-packages", "<frozen")


class Shape(NamedTuple):
    """Arrays of an operand or a result: several of a tuple."""

    dims: tuple[tuple[int, ...], ...]
    types: tuple[str, ...]
    bytes: int


@dataclass
class Instruction:
    opcode: str = ""
    op_name: str = ""
    source: str = ""  # file:line
    inputs: tuple[Shape, ...] = ()
    output: Shape = Shape((), (), 0)
    flops: int | None = None  # of products and convolutions, those of a fusion included
    groups: tuple[tuple[int, ...], ...] = ()  # who talks to whom, in a collective
    group_size: int = -1

    @property
    def bytes(self) -> int:
        return min(sum(shape.bytes for shape in self.inputs) + self.output.bytes, _LARGEST)

    def collective(self) -> str:
        """all_reduce, or "" if it is none; start and done are two halves of one."""
        opcode = self.opcode.removesuffix("-start").removesuffix("-done")
        return COLLECTIVES.get(opcode, "")


@dataclass(slots=True)
class _Raw:
    """An instruction, its fields not yet looked into."""

    opcode: str = ""
    op_name: str = ""
    source_file: str = ""
    source_line: int = 0
    frame: int = 0
    shape: bytes = b""
    operands: list[int] = field(default_factory=list)
    called: list[int] = field(default_factory=list)
    dot: bytes | None = None
    convolution: bytes | None = None
    groups: tuple[tuple[int, ...], ...] = ()
    group_size: int = -1


@dataclass
class _Computation:
    by_id: dict[int, _Raw] = field(default_factory=dict)


class Program:
    """One compiled module; instructions are looked up by name."""

    def __init__(self, data: bytes) -> None:
        self.name = ""
        self.damaged = 0
        self._by_name: dict[str, tuple[_Computation, _Raw]] = {}
        self._computations: dict[int, _Computation] = {}
        self._frames = _Frames()
        self._work: dict[int, int | None] = {}
        for number, value in fields(data, self._broken):
            if number == 1 and isinstance(value, bytes):
                self._take_module(value)

    def instruction(self, name: str) -> Instruction | None:
        found = self._by_name.get(name)
        if found is None:
            return None
        computation, raw = found
        return Instruction(
            raw.opcode, raw.op_name, self._source(raw), self._inputs(computation, raw),
            _shape(raw.shape), self._flops(computation, raw), raw.groups, raw.group_size,
        )  # fmt: skip

    def _broken(self) -> None:
        self.damaged += 1

    def _take_module(self, data: bytes) -> None:
        for number, value in fields(data, self._broken):
            if not isinstance(value, bytes):
                continue
            if number == 1:
                self.name = _text(value)
            elif number == 3:
                self._take_computation(value)
            elif number == 17:
                self._frames = _Frames(value)

    def _take_computation(self, data: bytes) -> None:
        found = _Computation()
        for number, value in fields(data, self._broken):
            if number == 5 and isinstance(value, int):
                self._computations[signed(value)] = found
            elif number == 2 and isinstance(value, bytes):
                name, id, raw = _instruction(value)
                found.by_id[id] = raw
                self._by_name[name] = (found, raw)

    def _source(self, raw: _Raw) -> str:
        if raw.source_file:
            return f"{raw.source_file}:{raw.source_line}"
        return self._frames.source(raw.frame)

    def _inputs(self, computation: _Computation, raw: _Raw) -> tuple[Shape, ...]:
        operands = (computation.by_id.get(id) for id in raw.operands)
        return tuple(_shape(operand.shape) for operand in operands if operand is not None)

    def _flops(self, computation: _Computation, raw: _Raw) -> int | None:
        """An add and a multiply are two. Loops and branches are left to what runs in them."""
        if raw.dot is not None or raw.convolution is not None:
            return _product_flops(raw, self._inputs(computation, raw))
        if raw.opcode != "fusion":
            return None
        return _sum(self._computation_flops(id) for id in raw.called)

    def _computation_flops(self, id: int) -> int | None:
        if id not in self._work:
            self._work[id] = None  # what calls itself adds nothing
            called = self._computations.get(id, _Computation())
            self._work[id] = _sum(self._flops(called, inner) for inner in called.by_id.values())
        return self._work[id]


class _Frames:
    """The stack frames of a module: an instruction points at the innermost."""

    def __init__(self, data: bytes = b"") -> None:
        self._files: list[str] = []
        self._places: list[tuple[int, int]] = []  # file, line
        self._frames: list[tuple[int, int]] = []  # place, frame around it
        for number, value in fields(data, _ignore):
            if not isinstance(value, bytes):
                continue
            if number == 1:
                self._files.append(_text(value))
            elif number == 3:
                numbers = _numbers(value)
                self._places.append((numbers.get(1, 0), numbers.get(3, 0)))
            elif number == 4:
                numbers = _numbers(value)
                self._frames.append((numbers.get(1, 0), numbers.get(2, 0)))

    def source(self, frame: int) -> str:
        """The innermost line that is not a library's; else the innermost."""
        innermost = ""
        for _ in range(len(self._frames)):
            if not 0 < frame <= len(self._frames):
                break
            place, frame = self._frames[frame - 1]
            found = self._line(place)
            if found and not any(word in found for word in _LIBRARIES):
                return found
            innermost = innermost or found
        return innermost

    def _line(self, place: int) -> str:
        if not 0 < place <= len(self._places):
            return ""
        file, line = self._places[place - 1]
        return f"{self._files[file - 1]}:{line}" if 0 < file <= len(self._files) else ""


def _instruction(data: bytes) -> tuple[str, int, _Raw]:
    name, id, raw = "", 0, _Raw()
    for number, value in fields(data, _ignore):
        if number == 1 and isinstance(value, bytes):
            name = _text(value)
        elif number == 35 and isinstance(value, int):
            id = signed(value)
        elif isinstance(value, bytes):
            if number in _TAKE:
                _TAKE[number](raw, value)
        elif number == 36:
            raw.operands.append(signed(value))
        elif number == 38:
            raw.called.append(signed(value))
    return name, id, raw


def _take_metadata(raw: _Raw, data: bytes) -> None:
    for number, value in fields(data, _ignore):
        if isinstance(value, bytes):
            if number == 2:
                raw.op_name = _text(value)
            elif number == 3:
                raw.source_file = _text(value)
        elif number == 4:
            raw.source_line = value
        elif number == 15:
            raw.frame = value


def _take_groups(raw: _Raw, data: bytes) -> None:
    """A list of groups; field 1 of the message in newer files, the field itself in older ones."""
    for number, value in fields(data, _ignore):
        if number == 1 and isinstance(value, bytes):
            _take_group(raw, value)


def _take_group(raw: _Raw, data: bytes) -> None:
    members = tuple(_repeated(data, 1))
    raw.groups += (members,)
    raw.group_size = max(raw.group_size, len(members))


def _take_iota(raw: _Raw, data: bytes) -> None:
    """Groups of equal size, of devices counted in some order."""
    numbers = _numbers(data)
    _take_sizes(raw, numbers.get(2, -1), max(1, numbers.get(1, 1)) * numbers.get(2, -1))


def _take_mesh(raw: _Raw, data: bytes) -> None:
    """Groups along some axes of a mesh of devices."""
    sizes, size = [], 1
    for number, value in fields(data, _ignore):
        if number == 1 and isinstance(value, bytes):
            axes = (axis for n, axis in fields(value, _ignore) if n == 1)
            sizes = [_numbers(axis).get(2, 1) for axis in axes if isinstance(axis, bytes)]
        elif number == 2 and isinstance(value, bytes):
            part = next((v for n, v in fields(value, _ignore) if n == 2), b"")
            axis = _numbers(value).get(1, 0)
            whole = sizes[axis] if axis < len(sizes) else 1
            size *= _numbers(part).get(2, whole) if isinstance(part, bytes) else whole
    _take_sizes(raw, size, prod(sizes))


def _take_sizes(raw: _Raw, size: int, total: int) -> None:
    if 0 < size < _LARGEST:
        raw.group_size = size
    if 0 < size == total <= _MOST_MEMBERS:
        raw.groups = (tuple(range(size)),)


_TAKE: dict[int, Callable[[_Raw, bytes], None]] = {
    2: lambda raw, value: setattr(raw, "opcode", _text(value)),
    3: lambda raw, value: setattr(raw, "shape", value),
    7: _take_metadata,
    16: lambda raw, value: setattr(raw, "convolution", value),
    30: lambda raw, value: setattr(raw, "dot", value),
    36: lambda raw, value: raw.operands.extend(_packed(value)),
    38: lambda raw, value: raw.called.extend(_packed(value)),
    49: _take_group,
    87: _take_groups,
    92: _take_iota,
    93: _take_mesh,
}


def _shape(data: bytes, depth: int = 0) -> Shape:
    element = 0
    dims: list[int] = []
    parts: list[Shape] = []
    for number, value in fields(data, _ignore):
        if number == 2 and isinstance(value, int):
            element = value
        elif number == 3:
            dims += _packed(value) if isinstance(value, bytes) else [signed(value)]
        elif number == 4 and isinstance(value, bytes) and depth < _DEEPEST_TUPLE:
            parts.append(_shape(value, depth + 1))
    if parts:
        return Shape(
            tuple(d for p in parts for d in p.dims), tuple(t for p in parts for t in p.types),
            min(sum(p.bytes for p in parts), _LARGEST),
        )  # fmt: skip
    name, size = _TYPES.get(element, ("", 0))
    if not name:
        return Shape((), (), 0)
    return Shape((tuple(dims),), (name,), min(abs(prod(dims)) * size, _LARGEST))


def _product_flops(raw: _Raw, inputs: tuple[Shape, ...]) -> int | None:
    if len(inputs) < 2 or not all(shape.dims for shape in inputs[:2]):
        return None
    output = _shape(raw.shape)
    made = prod(output.dims[0]) if output.dims else 0
    left, right = inputs[0].dims[0], inputs[1].dims[0]
    try:
        if raw.dot is not None:
            summed = prod(left[axis] for axis in _repeated(raw.dot, 1))
        else:
            numbers = _numbers(raw.convolution or b"")
            summed = prod(right) // max(1, right[numbers.get(4, 0)])
    except IndexError:
        return None
    return min(2 * abs(made * summed), _LARGEST)


def _sum(parts: Iterable[int | None]) -> int | None:
    known = [part for part in parts if part is not None]
    return min(sum(known), _LARGEST) if known else None


def _numbers(data: bytes) -> dict[int, int]:
    return {n: v for n, v in fields(data, _ignore) if isinstance(v, int)}


def _repeated(data: bytes, wanted: int) -> list[int]:
    found: list[int] = []
    for number, value in fields(data, _ignore):
        if number == wanted:
            found += _packed(value) if isinstance(value, bytes) else [signed(value)]
    return found


def _packed(data: bytes) -> list[int]:
    found, at = [], 0
    try:
        while at < len(data):
            value, at = varint(data, at)
            found.append(signed(value))
    except Broken:
        pass
    return found


def as_json(shapes: tuple[Shape, ...]) -> tuple[str, str]:
    """Dimensions and types of arrays, as the columns of arguments hold them."""
    dims = [list(d) for shape in shapes for d in shape.dims]
    return json.dumps(dims), json.dumps([t for shape in shapes for t in shape.types])


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _ignore() -> None:
    """What is missing stays unknown."""
