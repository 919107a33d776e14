"""Whose gradient is computed when, without graphs: learned in one step of a window.

The backward pass runs entirely in C++, and its operators have bare names. But a tensor may have a
function that is called with its gradient, before the operator that created the tensor runs
backward: what runs from then on, until the next such call, is the backward pass of the cell in
which the tensor was created. Each call waits until all operators have run, as cells do in that step
(mindspore/cells.py).
"""

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import get_ident
from time import time_ns
from typing import Any

GRADIENTS_FILE = "strobe_gradients_0.json"  # named as MindSpore names its files: with a number

# A step that creates more tensors than this is a loop over items; the first ones are enough.
_MOST = 50_000


class GradientCalls:
    """The gradients of one step."""

    def __init__(self, wait: Callable[[], None]) -> None:
        """`wait` is that of CellCalls."""
        self._wait = wait
        self._thread = 0
        self._tensor: type | None = None
        self._inside: list[str] = []  # cells, by their paths
        # Tensors by address, kept alive until their gradient was computed; and the functions that
        # remove ours from them.
        self._made: dict[int, Any] = {}
        self._handles: list[Any] = []
        self._open: tuple[str, int] | None = None
        self._calls: list[tuple[str, int, int]] = []

    def begin(self) -> None:
        self.rest()
        self._calls.clear()
        with contextlib.suppress(ImportError):
            from mindspore import Tensor

            self._tensor, self._thread = Tensor, get_ident()

    def rest(self) -> None:
        """The step has ended."""
        self._tensor, self._open = None, None
        self._inside.clear()
        self._forget()

    @contextlib.contextmanager
    def inside(self, path: str) -> Iterator[None]:
        """A cell is called."""
        self._inside.append(path)
        try:
            yield
        finally:
            if self._inside:
                self._inside.pop()

    def made(self, result: Any) -> None:
        """A tensor was created in the current cell, unless an inner cell has reported it before."""
        if self._tensor is None or get_ident() != self._thread:
            return
        path = self._inside[-1] if self._inside else ""
        for tensor in result if isinstance(result, list | tuple) else (result,):
            if type(tensor) is self._tensor and len(self._made) < _MOST:
                self._watch(tensor, path)

    def _watch(self, tensor: Any, path: str) -> None:
        if id(tensor) in self._made:
            return
        self._made[id(tensor)] = tensor
        with contextlib.suppress(Exception):  # it has no gradient
            self._handles.append(tensor.register_hook(lambda _: self._came(path)))

    def around(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """The backward pass."""

        def backward(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            self._came("")
            self._forget()
            return result

        return backward

    def write(self, folder: Path) -> None:
        """Write next to the profiler's files: [path, start, length] in ns since 1970."""
        self.rest()
        if self._calls:
            (folder / GRADIENTS_FILE).write_text(json.dumps(self._calls), encoding="utf-8")
        self._calls = []

    def _came(self, path: str) -> None:
        """The gradient of a tensor that was created there. What waiting raises is the script's
        error.
        """
        if self._tensor is None or get_ident() != self._thread:
            return
        self._wait()
        now_ns = time_ns()
        if self._open is not None:
            self._calls.append((*self._open, now_ns - self._open[1]))
        self._open = (path, now_ns) if path else None

    def _forget(self) -> None:
        for handle in self._handles:
            with contextlib.suppress(Exception):
                handle.remove()
        self._handles.clear()
        self._made.clear()
