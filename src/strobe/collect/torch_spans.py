"""The named spans that are open in a window of full recording: modules, and the user's own.

A span entered under one torch.profiler and left under a later one corrupts memory (torch 2.13). So
the spans that are still open when a window ends are left then; leaving them later does nothing.
"""

import threading
from collections.abc import Callable
from typing import Any

_get_ident = threading.get_ident


class OpenSpans:
    """Those of the thread that is recorded: in others torch.profiler records none."""

    def __init__(self) -> None:
        self._thread = _get_ident()
        self._open: list[Any] = []

    def enter(self, span: Any) -> None:
        span.__enter__()
        if _get_ident() == self._thread:
            self._open.append(span)

    def leave(self, span: Any) -> None:
        still_open = self._open
        if still_open and still_open[-1] is span:  # as spans nest, it nearly always is
            still_open.pop()
        elif _get_ident() == self._thread and not self.discard(span):
            return
        span.__exit__(None, None, None)

    def add(self, span: Any) -> None:
        if _get_ident() == self._thread:
            self._open.append(span)

    def discard(self, span: Any) -> bool:
        """Whether it was still open."""
        for place in range(len(self._open) - 1, -1, -1):
            if self._open[place] is span:
                del self._open[place]
                return True
        return False

    def leave_all(self) -> None:
        while self._open:
            span = self._open.pop()
            span.__exit__(None, None, None)
            if hasattr(span, "run_callbacks_on_exit"):  # a record_function: the user leaves it too
                span.run_callbacks_on_exit = False


def guard(torch: Any, spans: OpenSpans, plain: Callable[[Any], Any]) -> Callable[[], None]:
    """See the user's own spans, under a name that the trace can hold; returns what undoes it."""
    cls = torch.autograd.profiler.record_function
    enter, leave = cls.__enter__, cls.__exit__

    def __enter__(self: Any) -> Any:
        name = self.name
        self.name = plain(name)
        try:
            entered = enter(self)
        finally:
            self.name = name
        spans.add(self)
        return entered

    def __exit__(self: Any, kind: Any, error: Any, traceback: Any) -> Any:
        spans.discard(self)
        return leave(self, kind, error, traceback)

    cls.__enter__, cls.__exit__ = __enter__, __exit__

    def undo() -> None:
        cls.__enter__, cls.__exit__ = enter, leave

    return undo
