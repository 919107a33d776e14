"""Pickled data without the danger: containers, numbers and text are read, all else is refused.

Python's own unpickler runs what a file tells it to run. This one knows no opcode that names,
calls or builds anything but plain data, so there is nothing to run. It is bounded as well: by the
number of values, of containers and of bytes. It keeps no recursion of its own; data that contains
itself stays a loop of references, which is why readers walk to a known depth only.
"""

import struct
from collections.abc import Callable
from typing import Any

MOST_VALUES = 200_000_000
MOST_CONTAINERS = 4_000_000
_DEEPEST_STACK = 5_000_000
# Opcodes that ask for code, by what they are called.
_REFUSED = {
    b"c": "GLOBAL", b"\x93": "STACK_GLOBAL", b"i": "INST", b"o": "OBJ", b"R": "REDUCE",
    b"b": "BUILD", b"\x81": "NEWOBJ", b"\x92": "NEWOBJ_EX", b"P": "PERSID", b"Q": "BINPERSID",
    b"\x82": "EXT1", b"\x83": "EXT2", b"\x84": "EXT4",
}  # fmt: skip
_MARK = object()


class Refused(Exception):
    """The pickle is not plain data, or not a whole one; the message is a sentence's end."""


def loads(data: bytes, most_values: int = MOST_VALUES) -> Any:
    """The value that a pickle of protocol 2 or later stands for."""
    machine = _Machine(data, most_values)
    try:
        return machine.run()
    except (IndexError, KeyError, struct.error, ValueError, TypeError) as error:
        raise Refused(f"is cut short or damaged at byte {machine.at:,}") from error


class _Machine:
    """The stack machine of the pickle format; `at` is the byte after the last one it took."""

    def __init__(self, data: bytes, most_values: int) -> None:
        self.data = data
        self.at = 0
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.values_left = most_values
        self.containers_left = min(MOST_CONTAINERS, most_values)

    def run(self) -> Any:
        data, table = self.data, _TABLE
        while True:
            opcode = data[self.at]
            self.at += 1
            if opcode == _STOP:
                return self.stack.pop()
            step = table[opcode]
            if step is None:
                raise Refused(_reason(opcode))
            self.values_left -= 1
            if self.values_left < 0 or len(self.stack) > _DEEPEST_STACK:
                raise Refused("holds more values than any snapshot has")
            step(self)

    def take(self, size: int) -> bytes:
        end = self.at + size
        if size < 0 or end > len(self.data):
            raise IndexError
        found = self.data[self.at : end]
        self.at = end
        return found

    def number(self, layout: struct.Struct) -> int:
        (found,) = layout.unpack_from(self.data, self.at)
        self.at += layout.size
        return int(found)

    def push_container(self, container: Any) -> None:
        self.containers_left -= 1
        if self.containers_left < 0:
            raise Refused("holds more lists and dictionaries than any snapshot has")
        self.stack.append(container)

    def down_to_mark(self) -> list[Any]:
        stack = self.stack
        for place in range(len(stack) - 1, -1, -1):
            if stack[place] is _MARK:
                found = stack[place + 1 :]
                del stack[place:]
                return found
        raise IndexError


def _reason(opcode: int) -> str:
    name = _REFUSED.get(bytes([opcode]))
    if name:
        return f"asks for code to be run (opcode {name}), which plain data never does"
    return f"uses opcode {opcode:#04x}, which plain data of protocol 2 or later never does"


def _set_items(machine: _Machine) -> None:
    items = machine.down_to_mark()
    target = machine.stack[-1]
    if type(target) is not dict or len(items) % 2:
        raise TypeError
    target.update(zip(items[::2], items[1::2], strict=True))


def _set_item(machine: _Machine) -> None:
    value, key = machine.stack.pop(), machine.stack.pop()
    if type(machine.stack[-1]) is not dict:
        raise TypeError
    machine.stack[-1][key] = value


def _append(machine: _Machine) -> None:
    value = machine.stack.pop()
    if type(machine.stack[-1]) is not list:
        raise TypeError
    machine.stack[-1].append(value)


def _appends(machine: _Machine) -> None:
    items = machine.down_to_mark()
    if type(machine.stack[-1]) is not list:
        raise TypeError
    machine.stack[-1].extend(items)


def _tuple_of(size: int) -> "Callable[[_Machine], None]":
    def step(machine: _Machine) -> None:
        if len(machine.stack) < size:
            raise IndexError
        items = machine.stack[-size:]
        del machine.stack[-size:]
        machine.push_container(tuple(items))

    return step


def _constant(value: Any) -> "Callable[[_Machine], None]":
    return lambda machine: machine.stack.append(value)


def _integer(layout: struct.Struct) -> "Callable[[_Machine], None]":
    return lambda machine: machine.stack.append(machine.number(layout))


def _long(layout: struct.Struct) -> "Callable[[_Machine], None]":
    def step(machine: _Machine) -> None:
        digits = machine.take(machine.number(layout))
        if len(digits) > _LONGEST_NUMBER:
            raise Refused("holds a number too long to be one")
        machine.stack.append(int.from_bytes(digits, "little", signed=True))

    return step


def _text(layout: struct.Struct) -> "Callable[[_Machine], None]":
    return lambda machine: machine.stack.append(
        machine.take(machine.number(layout)).decode("utf-8", "surrogatepass")
    )


def _bytes(layout: struct.Struct) -> "Callable[[_Machine], None]":
    return lambda machine: machine.stack.append(machine.take(machine.number(layout)))


def _float(machine: _Machine) -> None:
    machine.stack.append(_DOUBLE.unpack(machine.take(_DOUBLE.size))[0])


def _put(layout: struct.Struct) -> "Callable[[_Machine], None]":
    def step(machine: _Machine) -> None:
        machine.memo[machine.number(layout)] = machine.stack[-1]

    return step


def _get(layout: struct.Struct) -> "Callable[[_Machine], None]":
    return lambda machine: machine.stack.append(machine.memo[machine.number(layout)])


def _memoize(machine: _Machine) -> None:
    machine.memo[len(machine.memo)] = machine.stack[-1]


def _skip(size: int) -> "Callable[[_Machine], None]":
    def step(machine: _Machine) -> None:
        machine.take(size)

    return step


_STOP = ord(".")
_LONGEST_NUMBER = 64
_U8, _U16, _U32, _U64 = (struct.Struct(f"<{letter}") for letter in "BHIQ")
_I32, _DOUBLE = struct.Struct("<i"), struct.Struct(">d")

_STEPS: "dict[bytes, Callable[[_Machine], None]]" = {
    b"\x80": _skip(1),  # PROTO
    b"\x95": _skip(8),  # FRAME
    b"(": _constant(_MARK),
    b"N": _constant(None),
    b"\x88": _constant(True),
    b"\x89": _constant(False),
    b"}": lambda machine: machine.push_container({}),
    b"]": lambda machine: machine.push_container([]),
    b")": _constant(()),
    b"d": lambda machine: machine.push_container(_paired(machine.down_to_mark())),
    b"l": lambda machine: machine.push_container(machine.down_to_mark()),
    b"t": lambda machine: machine.push_container(tuple(machine.down_to_mark())),
    b"\x85": _tuple_of(1),
    b"\x86": _tuple_of(2),
    b"\x87": _tuple_of(3),
    b"s": _set_item,
    b"u": _set_items,
    b"a": _append,
    b"e": _appends,
    b"0": lambda machine: machine.stack.pop() and None,
    b"J": _integer(_I32),
    b"K": _integer(_U8),
    b"M": _integer(_U16),
    b"\x8a": _long(_U8),
    b"\x8b": _long(_I32),
    b"G": _float,
    b"X": _text(_U32),
    b"\x8c": _text(_U8),
    b"\x8d": _text(_U64),
    b"C": _bytes(_U8),
    b"B": _bytes(_U32),
    b"\x8e": _bytes(_U64),
    b"q": _put(_U8),
    b"r": _put(_U32),
    b"h": _get(_U8),
    b"j": _get(_U32),
    b"\x94": _memoize,
}


def _paired(items: list[Any]) -> dict[Any, Any]:
    return dict(zip(items[::2], items[1::2], strict=True))


_TABLE = [_STEPS.get(bytes([opcode])) for opcode in range(256)]
