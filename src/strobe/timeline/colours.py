"""Which colour an event has, as a number that a viewer turns into light or dark paint."""

import zlib

from strobe.model.schema import PHASES

# Operators, kernels, modules and the like: by their name, so that a name looks alike in all runs.
BY_NAME = 192
# What means the same in every run has a colour of its own, after those by name.
FIXED = (
    "step", *(f"phase:{phase}" for phase in PHASES), "collective", "memcpy", "memset", "runtime",
    "sync", "data", "gc", "mark",
)  # fmt: skip
_FIXED_SLOTS = {name: BY_NAME + number for number, name in enumerate(FIXED)}

# A tile names an event by a number: these low bits are its colour, the rest its name.
COLOUR_BITS = 8


def colour_of(kind: str, name: str) -> int:
    key = f"phase:{name}" if kind == "phase" else kind
    slot = _FIXED_SLOTS.get(key)
    return slot if slot is not None else zlib.crc32(name.encode("utf-8", "replace")) % BY_NAME
