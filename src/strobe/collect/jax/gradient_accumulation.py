"""Which training programs only accumulate gradients? Those that take the same parameters again.

With gradient accumulation a program is called several times with the same parameters; a step ends
when these change, either in another program or in operations that the script calls one by one. A
critic that is trained five times per update of its partner, or a network whose target is copied now
and then, takes the same arrays again too, but also has a state of its own.
"""

import weakref
from collections import Counter
from typing import Any, NamedTuple

# Smaller arrays are counters and random keys. In bytes.
_SMALL_BYTES = 64
# After this many calls, a program whose state might be sums of gradients is assumed to train.
PATIENCE_CALLS = 32


class Taken(NamedTuple):
    """An array that was an argument of a call."""

    array: Any
    comes_back: bool  # from a program that this one leads to, or from itself
    is_own: bool  # made by the program itself, if only in part


class Intake:
    """The arguments of one program's calls, examined one after the other."""

    __slots__ = ("_again", "_last", "is_open", "place")

    def __init__(self) -> None:
        self._last: list[weakref.ref[Any]] = []
        # Positions among the arguments where the same array was seen twice in a row.
        self._again: set[int] = set()
        # The position of an array that stays the same within a step, once it is known that there is
        # one.
        self.place: int | None = None
        # Whether its results that it takes again may be sums of gradients: they are as large as
        # arrays that stay the same.
        self.is_open = False

    def gathers(self, taken: list[Taken]) -> bool:
        """Whether this call begins a new step of a program that only accumulates gradients."""
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
