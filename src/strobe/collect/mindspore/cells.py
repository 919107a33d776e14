"""Which cell called which operators, without graphs: learned in one step of a window.

Operators run asynchronously, and MindSpore does not record where they were called. So in the first
recorded step, which absorbs the cost of starting up and is usually not among the requested ones,
every cell waits at its beginning and its end until all operators have run: what ran in between was
called by it. The steps after it run as usual; the reader identifies their operators by order
(ingest/formats/mindspore/cells.py).
"""

import json
from collections.abc import Callable
from pathlib import Path
from threading import get_ident
from time import time_ns
from typing import Any

from strobe.collect.mindspore.gradients import GradientCalls
from strobe.collect.recorder import Recorder

CELLS_FILE = "strobe_cells_0.json"  # named as MindSpore names its files: with a number


class CellCalls:
    """The cell calls of one step."""

    def __init__(self, recorder: Recorder, wait: Callable[[], None]) -> None:
        """`wait` returns when all operators called so far have run.

        What it raises is an error of the script's own, and goes to the script.
        """
        self.is_on = False
        self.original: Callable[..., Any] = lambda *_, **__: None  # the original call of a cell
        self._wait, self._path = wait, recorder.guarded(self._path_of)
        self.gradients = GradientCalls(wait)
        self._made = recorder.guarded(self.gradients.made)
        self._thread = 0
        self._paths: dict[int, str] = {}
        # the roots of those paths, kept alive so that their addresses are not reused
        self._alive: list[Any] = []
        self._calls: list[tuple[str, int, int]] = []

    def begin(self) -> None:
        self._calls.clear()
        self.gradients.begin()
        self._thread, self.is_on = get_ident(), True

    def rest(self) -> None:
        """The step has ended."""
        self.is_on = False
        self.gradients.rest()
        self._paths.clear()
        self._alive.clear()

    def around(self, cell: Any, *args: Any, **kwargs: Any) -> Any:
        path = self._path(cell) if get_ident() == self._thread else None
        if path is None:
            return self.original(cell, *args, **kwargs)
        self._wait()
        began_ns = time_ns()
        # Its arguments were created by its caller, if not by another cell before.
        self._made(args)
        with self.gradients.inside(path):
            result = self.original(cell, *args, **kwargs)
            self._made(result)
        self._wait()
        self._calls.append((path, began_ns, time_ns() - began_ns))
        return result

    def write(self, folder: Path) -> None:
        """Write next to the profiler's files: [path, start, length] in ns since 1970."""
        self.rest()
        self.gradients.write(folder)
        if self._calls:
            (folder / CELLS_FILE).write_text(json.dumps(self._calls), encoding="utf-8")
        self._calls = []

    def _path_of(self, cell: Any) -> str:
        """A cell not seen before is a root: its subcells are named relative to it."""
        if id(cell) not in self._paths:
            name = type(cell).__name__
            self._alive.append(cell)
            for below, part in cell.cells_and_names():
                self._paths.setdefault(id(part), f"{name}.{below}" if below else name)
        return self._paths.get(id(cell), type(cell).__name__)
