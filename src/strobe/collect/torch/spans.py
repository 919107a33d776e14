"""The named spans that are open in a window of full recording: modules, and the user's own.

A span entered under one torch.profiler and left under a later one corrupts memory (torch 2.13). So
spans that are still open when a window ends are left then; leaving them later does nothing.
"""

import threading
from collections.abc import Callable
from typing import Any

_get_ident = threading.get_ident


class OpenSpans:
    """Spans of the recorded thread: in others torch.profiler records none."""

    def __init__(self) -> None:
        # Of the recorded thread only, and only while a window is recorded.
        self.of_thread: dict[int, list[Any]] = {}

    def begin(self) -> None:
        self.of_thread[_get_ident()] = []

    def add(self, span: Any) -> None:
        stack = self.of_thread.get(_get_ident())
        if stack is not None:
            stack.append(span)

    def discard(self, span: Any) -> bool:
        """Whether it was still open."""
        stack = self.of_thread.get(_get_ident(), [])
        for place in range(len(stack) - 1, -1, -1):
            if stack[place] is span:
                del stack[place]
                return True
        return False

    def leave(self, span: Any) -> None:
        if self.discard(span):
            span.__exit__(None, None, None)

    def end(self) -> None:
        """Leave all open spans; from now on nothing is open in any thread."""
        for stack in self.of_thread.values():
            while stack:
                span = stack.pop()
                span.__exit__(None, None, None)
                if hasattr(span, "run_callbacks_on_exit"):  # a record_function: the user leaves it
                    span.run_callbacks_on_exit = False
        self.of_thread.clear()


def guard(torch: Any, spans: OpenSpans, plain: Callable[[Any], Any]) -> Callable[[], None]:
    """Track the user's own spans, under a name that the trace can represent; returns the undo."""
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
