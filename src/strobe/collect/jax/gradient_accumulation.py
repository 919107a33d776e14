"""Which of the programs that train only gather gradients? Those that take parameters again.

With accumulated gradients a program is called several times with the same parameters; a step ends
when these have changed, be it by another program or by operations that the script calls one by one.
A critic that is trained five times for each time its partner is, or a network whose target is
copied now and then, takes the same arrays again too, but beside them a state of its own.
"""

import weakref
from collections import Counter
from typing import Any, NamedTuple

# Smaller arrays are counters and random keys. In bytes.
_SMALL_BYTES = 64
# After so many calls a program whose state might be sums of gradients is believed to train.
PATIENCE_CALLS = 32


class Taken(NamedTuple):
    """An array that went into a call."""

    array: Any
    comes_back: bool  # from a program that this one leads to, or from itself
    is_own: bool  # made by the program itself, if only in part


class Intake:
    """What went into the calls of one program, one look after the other."""

    __slots__ = ("_again", "_last", "is_open", "place")

    def __init__(self) -> None:
        self._last: list[weakref.ref[Any]] = []
        # Places among the arrays that a call takes, where the same one was seen twice in turn.
        self._again: set[int] = set()
        # Of an array that stays the same within a step, once it is known that there is one.
        self.place: int | None = None
        # Whether what it makes of its own results may be sums of gradients: they are as large as
        # arrays that stay the same.
        self.is_open = False

    def gathers(self, taken: list[Taken]) -> bool:
        """Whether this call begins a new step of a program that only gathers gradients."""
        same = {
            place
            for place, (here, before) in enumerate(zip(taken, self._last, strict=False))
            if before() is here.array
        }
        self._last = [weakref.ref(each.array) for each in taken]
        self._again |= same
        back = {
            place: each
            for place, each in enumerate(taken)
            if place not in same and each.comes_back and each.array.nbytes >= _SMALL_BYTES
        }
        changed = {place: each.array.nbytes for place, each in back.items() if place in self._again}
        own = [each.array.nbytes for place, each in back.items()
               if place not in changed and each.is_own]  # fmt: skip
        if not changed:
            self.is_open = bool(own) and Counter(own) <= Counter(
                taken[place].array.nbytes for place in same
            )
            return False
        self.is_open = False
        if sum(own) * 2 > sum(changed.values()):
            return False
        self.place = max(changed, key=changed.__getitem__)
        return True
