"""When an update really ended. Operators, and compiled functions as a whole, run behind the line
that calls them: the call returns, and whoever then asks for a value waits until they are done.

So the end of an update is told only with what comes next: a wait for a value, and then it ended
when that did; or anything else, and then its call's end has to do.
"""

import functools
import threading
from collections.abc import Callable
from time import monotonic_ns
from typing import Any

from strobe.collect.mindspore import versions
from strobe.collect.recorder import Recorder

Undo = Callable[[], None]
_get_ident = threading.get_ident

# What asks for the value of a tensor.
_ASKING = (
    "asnumpy", "numpy", "item", "tolist", "__array__", "__bool__", "__float__", "__int__",
    "__repr__", "__str__",
)  # fmt: skip

# Who got the value sooner than this did not wait for it; nor who asked late, a checkpoint after the
# call, and got it in a small part of the time since: what runs behind was done meanwhile.
SHORTEST_WAIT_NS = 100_000
SMALL_PART = 20


class Pending:
    """At most one update, of the thread that trains."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        # Called with what was given beside it, when the update ended, and whether that was seen;
        # None if no update is pending.
        self.tell: Callable[[Any, int, bool], None] | None = None
        self._of: Any = None
        self._ended_ns = 0
        self._thread = 0

    def hold(self, ended_ns: int, tell: Callable[[Any, int, bool], None], of: Any) -> None:
        """Its call ended then; `tell` is called when it is known when it itself did."""
        if self.tell is not None:
            self.settle()
        self.tell, self._of, self._ended_ns, self._thread = tell, of, ended_ns, _get_ident()

    def settle(self, ended_ns: int = 0) -> None:
        """Something else begins, or it is known when it ended."""
        tell, self.tell = self.tell, None
        if tell is not None:
            tell(self._of, ended_ns or self._ended_ns, ended_ns > 0)

    def _came(self, asked_ns: int, came_ns: int) -> None:
        """A value that somebody asked for."""
        shortest_ns = max(SHORTEST_WAIT_NS, (asked_ns - self._ended_ns) // SMALL_PART)
        self.settle(came_ns if came_ns - asked_ns > shortest_ns else 0)

    def forget(self) -> None:
        self.tell = None

    def install(self) -> list[Undo]:
        from mindspore import Tensor

        undo = [self._watch(Tensor, name) for name in _ASKING if name in vars(Tensor)]
        home = versions.executors()
        executor = getattr(home, "_PyNativeExecutor", None)
        if executor is not None and hasattr(executor, "sync"):
            undo.append(self._watch(executor, "sync"))
        return undo

    def _watch(self, owner: Any, name: str) -> Undo:
        original = vars(owner)[name]

        @functools.wraps(original)
        def ask(*args: Any, **kwargs: Any) -> Any:
            if self.tell is None or _get_ident() != self._thread:
                return original(*args, **kwargs)
            asked_ns = monotonic_ns()
            try:
                return original(*args, **kwargs)
            finally:
                try:
                    self._came(asked_ns, monotonic_ns())
                except Exception as error:
                    self._recorder.broke("a value was asked for", error)

        setattr(owner, name, ask)
        return lambda: setattr(owner, name, original)
