"""Marks of torch.compile: each compilation is a scope, named by its number and its line."""

import sys
from typing import Any

from strobe.collect.places import users_line
from strobe.collect.recorder import Recorder
from strobe.model.journal import COMPILATION, Mark

_HOME = "torch._dynamo.callback"

# A model that compiles without end must not fill the journal with names.
MOST_NAMES = 256


class Compilations:
    """Uses torch's own callbacks, once torch.compile is in use."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._names = 0
        self._open: int | None = None
        self._handler: Any = None

    def look(self) -> None:
        """Called repeatedly: is the compiler imported by now?"""
        if self._handler is None and _HOME in sys.modules:
            handler: Any = getattr(sys.modules[_HOME], "callback_handler", None)
            if hasattr(handler, "register_start_callback"):
                handler.register_start_callback(self._began)
                handler.register_end_callback(self._ended)
                self._handler = handler

    def uninstall(self) -> None:
        handler, self._handler = self._handler, None
        if handler is not None:
            handler.remove_start_callback(self._began)
            handler.remove_end_callback(self._ended)

    def _began(self, *args: Any) -> None:
        try:
            self._open = self._name(args)
            self._recorder.mark(Mark.SCOPE_BEGAN, self._open)
        except Exception as error:
            self._recorder.broke("a compilation", error)

    def _ended(self, *args: Any) -> None:
        try:
            if self._open is not None:
                self._recorder.mark(Mark.SCOPE_ENDED, self._open)
            self._open = None
        except Exception as error:
            self._recorder.broke("a compilation", error)

    def _name(self, args: tuple[Any, ...]) -> int:
        """compilation 0/1 at train.py:31 is the second one of the first function."""
        self._names += 1
        if self._names > MOST_NAMES:
            return self._recorder.journal.string("scope", f"{COMPILATION}of one more function")
        number = getattr(args[0], "compile_id", None) if args else None
        line = users_line(sys._getframe(2))
        place = f" at {line.file}:{line.line}" if line else ""
        return self._recorder.journal.string("scope", f"{COMPILATION}{number or ''}{place}")
