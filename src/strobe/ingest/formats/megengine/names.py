"""What MegEngine calls things, in our words: comp nodes, element types, kinds of operator."""

import re
from typing import NamedTuple

# CompNode("gpu0:0" from "xpux:0"), gpu0:0, xpux:0, gpu0, cpu:default
_LOCATOR = re.compile(r'(?:CompNode\(")?([a-z]+?)(\d*|x)(?::(\w+))?(?:"|\Z)')
_LOGICAL = re.compile(r'from "([^"]+)"')
_DEVICES = {"gpu": "cuda", "cuda": "cuda", "rocm": "hip", "multithread": "cpu", "xpu": "cpu"}
_BITS = re.compile(r"\d+")
_WHOLE_BYTES = {"Bool": 1, "Byte": 1}

COPIES = {"Host2DeviceCopy": "host to device", "HostToDevice": "host to device",
          "Copy": "device to device"}  # fmt: skip
COLLECTIVES = frozenset(("CollectiveComm", "RemoteSend", "RemoteRecv"))


class Place(NamedTuple):
    """A comp node: a stream of a device."""

    device: str  # cuda:0
    stream: int


def place(comp_node: str) -> Place:
    """Where a comp node computes; a CPU is cpu:0, as against the threads of the host."""
    found = _LOCATOR.match(comp_node)
    if found is None:
        return Place(f"device {comp_node}"[:80], 0)
    kind, number, stream = found.groups()
    number = number if number.isdecimal() and len(number) < 9 else "0"
    name = f"{_DEVICES.get(kind, kind)}:{int(number)}"
    return Place(name, int(stream) if stream and stream.isdecimal() and len(stream) < 9 else 0)


def logical(comp_node: str) -> str:
    """The name by which a program asks for a comp node: xpux:0."""
    found = _LOGICAL.search(comp_node)
    return found.group(1) if found else comp_node


def device_kind(type_name: str) -> str:
    """The kind of event that an operator of this type is on a device."""
    if type_name in COPIES:
        return "memcpy"
    return "collective" if type_name in COLLECTIVES else "kernel"


def bits_of(dtype: str) -> int:
    """Of an element: Float32, Int8, Quantized8Asymm, Byte; 0 where unknown."""
    if dtype in _WHOLE_BYTES:
        return 8 * _WHOLE_BYTES[dtype]
    found = _BITS.search(dtype)
    return int(found.group()) if found and len(found.group()) < 4 else 0
