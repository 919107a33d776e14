"""When an update really ended.

Operators and whole compiled functions run asynchronously: the call returns, and the next access to
a value waits until they are done. So the end of an update is marked only with what comes next. If
that is a wait for a value, the update ended with it; otherwise the end of the call is used.
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

# The methods that access the value of a tensor.
_ASKING = (
    "asnumpy", "numpy", "item", "tolist", "__array__", "__bool__", "__float__", "__int__",
    "__repr__", "__str__",
)  # fmt: skip

# An access that returned sooner than this did not wait; nor did a late one, such as a checkpoint
# after the call, that returned in a small part of the time since: the asynchronous work was done
# meanwhile.
SHORTEST_WAIT_NS = 100_000
SMALL_PART = 20


class Pending:
    """At most one update, of the training thread."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        # Called with its subject, the time when the update ended, and whether that was observed;
        # None if no update is pending.
        self.tell: Callable[[Any, int, bool], None] | None = None
        self._of: Any = None
        self._ended_ns = 0
        self._thread = 0

    def hold(self, ended_ns: int, tell: Callable[[Any, int, bool], None], of: Any) -> None:
        """Its call ended at this time; `tell` is called when the end of the update is known."""
        if self.tell is not None:
            self.settle()
        self.tell, self._of, self._ended_ns, self._thread = tell, of, ended_ns, _get_ident()

    def settle(self, ended_ns: int = 0) -> None:
        """Something else begins, or the end of the update is known."""
        tell, self.tell = self.tell, None
        if tell is not None:
            tell(self._of, ended_ns or self._ended_ns, ended_ns > 0)

    def _came(self, asked_ns: int, came_ns: int) -> None:
        """A value was accessed."""
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
