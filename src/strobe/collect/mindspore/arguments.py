"""The argument shapes of operators without graphs, noted in one step.

MindSpore records no shapes for most of them. Its Python code calls every operator through a
function of its own; in the step in which cells wait for their operators (mindspore/cells.py), these
functions note the arguments. The reader joins notes and operators cell by cell.
"""

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from threading import get_ident
from time import time_ns
from typing import Any

from strobe.collect.recorder import Recorder

ARGUMENTS_FILE = "strobe_arguments_0.json"  # named as MindSpore names its files: with a number

# The functions of this module are how its Python code calls operators.
_HOME, _PREFIX = "mindspore.ops.auto_generate.gen_ops_prim", "pyboost_"

# A step that calls more operators than this is a loop over items; the first ones are enough.
_MOST = 50_000

Note = tuple[str, list[Any], int]  # operator, shapes of its arguments, ns since 1970


class OperatorArguments:
    """The operator calls of one step."""

    def __init__(self, recorder: Recorder, made: Callable[[Any], None]) -> None:
        """`made` is called with what operators return."""
        self._note, self._made = recorder.guarded(self._note_call), recorder.guarded(made)
        self._home: Any = None
        self._originals: dict[str, Callable[..., Any]] = {}
        self._thread = 0
        self._notes: list[Note] = []

    def begin(self) -> None:
        self.rest()
        self._notes.clear()
        try:
            self._home = importlib.import_module(_HOME)
        except ImportError:  # this MindSpore calls its operators differently
            return
        self._thread = get_ident()
        found = {name: each for name, each in vars(self._home).items() if callable(each)}
        self._originals = {n: each for n, each in found.items() if n.startswith(_PREFIX)}
        for name, original in self._originals.items():
            setattr(self._home, name, self._noted(original))

    def rest(self) -> None:
        """The step has ended."""
        for name, original in self._originals.items():
            setattr(self._home, name, original)
        self._originals = {}

    def write(self, folder: Path) -> None:
        """Write next to the profiler's files."""
        self.rest()
        if self._notes:
            text = json.dumps(self._notes)
            (folder / ARGUMENTS_FILE).write_text(text, encoding="utf-8")
        self._notes = []

    def _noted(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if get_ident() != self._thread:
                return original(*args, **kwargs)
            self._note(args)
            result = original(*args, **kwargs)
            self._made(result)
            return result

        return call

    def _note_call(self, args: tuple[Any, ...]) -> None:
        """A primitive, and the list of its arguments."""
        if len(self._notes) < _MOST and len(args) > 1:
            shapes = [_shape(argument) for argument in args[1]]
            self._notes.append((str(args[0].name), shapes, time_ns()))


def _shape(argument: Any) -> list[Any]:
    """In MindSpore's notation; empty if it has none."""
    shape = getattr(argument, "shape", None)
    if isinstance(shape, tuple):
        return list(shape)
    if isinstance(argument, list | tuple) and any(hasattr(each, "shape") for each in argument):
        return [_shape(each) for each in argument]
    return []
