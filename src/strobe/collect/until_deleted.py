"""What is known of a user's objects, by their address, for as long as they are there."""

import weakref
from collections.abc import Callable
from typing import Any, TypeVar

Value = TypeVar("Value")


class UntilDeleted(dict[int, Value]):
    """A dict by `id`, so that looking up costs no more than that of a dict.

    Objects need be neither hashable nor equal only to themselves, and are not kept alive. With an
    object goes what is known of it: another may come to its address.
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
        except TypeError:  # it cannot be watched, so it is held: nothing else comes to its address
            self._watched[address] = thing

    def clear(self) -> None:
        super().clear()
        self._watched.clear()
