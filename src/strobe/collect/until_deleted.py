"""Attach data to a user's objects, by address, for as long as they exist."""

import weakref
from collections.abc import Callable
from typing import Any, TypeVar

Value = TypeVar("Value")


class UntilDeleted(dict[int, Value]):
    """A dict by `id`, so that a lookup costs no more than that of a dict.

    Objects need not be hashable or have identity equality, and are not kept alive. When an object
    is deleted, its entry goes too: another object may get its address.
    """

    def __init__(self, when_deleted: Callable[[int], None] | None = None) -> None:
        super().__init__()
        self._watched: dict[int, Any] = {}
        self._when_deleted = when_deleted

    def keep(self, thing: Any, value: Value) -> None:
        address = id(thing)
        self[address] = value
        if address in self._watched:
            return

        def forget(_: Any) -> None:
            self.pop(address, None)
            self._watched.pop(address, None)
            if self._when_deleted is not None:
                self._when_deleted(address)

        try:
            self._watched[address] = weakref.ref(thing, forget)
        # it cannot be weakly referenced, so it is kept alive: no other object gets its address
        except TypeError:
            self._watched[address] = thing

    def clear(self) -> None:
        super().clear()
        self._watched.clear()
