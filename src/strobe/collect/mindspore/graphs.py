"""What MindSpore's compiled graphs do: forward, backward, update, or all of them in one.

A graph is compiled when it is first called, and again when its shapes or constant arguments change.
Its C++ side then asks Python for the code of every cell and function in it: those show whether it
takes gradients, and whether it contains an optimizer.
"""

import functools
import re
import sys
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

from strobe.collect.mindspore import versions
from strobe.collect.mindspore.source_analysis import GRADIENT, parts_of
from strobe.collect.places import users_line
from strobe.collect.recorder import Recorder
from strobe.model.journal import (
    COMPILATION,
    GRAPH_BACKWARD,
    GRAPH_FORWARD,
    GRAPH_UPDATE,
    MADE_ANEW,
    Mark,
)

Undo = Callable[[], None]
_get_ident = threading.get_ident

# A function that is compiled without end must not fill the journal with names.
MOST_NAMES = 256
MOST_LETTERS = 80
MOST_ARGUMENTS = 256

# Its name for a function that it compiles; for a cell, only the class.
_FUNCTION = re.compile(r'function "(.+?)" at the file')


class Graphs:
    """The graphs of this process, by the address of their cell or function."""

    def __init__(self, recorder: Recorder, is_optimizer: Callable[[Any], bool]) -> None:
        self._recorder, self._is_optimizer = recorder, is_optimizer
        self._parts: dict[int, int] = {}
        # Graphs whose code was seen while they were compiled. Others were compiled before recording
        # began: for those, the source code of the function shows what they do.
        self._compiled: set[int] = set()
        self._written: dict[int, int] = {}
        # By thread: the graph that is being called, and the compilation in progress.
        self.called: dict[int, int] = {}
        self._open: dict[int, int] = {}
        self._counts: Counter[str] = Counter()
        self._signatures: dict[str, list[str]] = {}
        # Which functions were compiled under which name, as long as they exist.
        self._named: dict[int, str] = {}

    def install(self) -> list[Undo]:
        home, parser = versions.executors(), versions.parser()
        undo = []
        if parser is not None:
            for name in ("parse_cb", "get_parse_method_of_class"):
                if hasattr(parser, name):
                    undo.append(self._watch_parser(parser, name))
        if home is not None and hasattr(home, "_check_recompile"):
            undo.append(self._watch_begin(home))
            for name in ("_JitExecutor", "_CellGraphExecutor"):
                if hasattr(home, name):
                    undo.append(self._watch_end(getattr(home, name)))
        if len(undo) < 2:
            self._recorder.problem(
                "mindspore", "compilations are not seen: this MindSpore compiles otherwise"
            )
        return undo

    def parts(self, graph: int, function: Any = None) -> int:
        """What a graph does, as far as its code was seen; `function` is its function."""
        known = self._parts.get(graph, 0) | GRAPH_FORWARD
        if graph in self._compiled or function is None:
            return known
        if graph not in self._written:
            self._written[graph] = parts_of(function, self._is_optimizer)
        return known | self._written[graph]

    def add_part(self, graph: int, part: int) -> None:
        self._parts[graph] = self._parts.get(graph, 0) | part

    def forget(self, graph: int) -> None:
        self._parts.pop(graph, None)
        self._written.pop(graph, None)
        self._compiled.discard(graph)
        self._named.pop(graph, None)

    def _watch_parser(self, home: Any, name: str) -> Undo:
        original = getattr(home, name)

        @functools.wraps(original)
        def parse(*args: Any, **kwargs: Any) -> Any:
            try:
                self._saw(args[0] if args else None)
            except Exception as error:
                self._recorder.broke("a graph's code", error)
            return original(*args, **kwargs)

        setattr(home, name, parse)
        return lambda: setattr(home, name, original)

    def _saw(self, code: Any) -> None:
        graph = self.called.get(_get_ident())
        if graph is None:
            return
        self._compiled.add(graph)
        if self._is_optimizer(code) or self._is_optimizer(getattr(code, "__self__", None)):
            self.add_part(graph, GRAPH_UPDATE)
        elif getattr(code, "__name__", "") == GRADIENT:
            self.add_part(graph, GRAPH_BACKWARD)

    def _watch_begin(self, home: Any) -> Undo:
        """MindSpore accesses this before it compiles, to check whether it does so too often."""
        original = home._check_recompile

        @functools.wraps(original)
        def _check_recompile(*args: Any, **kwargs: Any) -> Any:
            try:
                name = self._open[_get_ident()] = self._name(args)
                self._recorder.mark(Mark.SCOPE_BEGAN, name)
            except Exception as error:
                self._recorder.broke("a compilation", error)
            return original(*args, **kwargs)

        home._check_recompile = _check_recompile
        return lambda: setattr(home, "_check_recompile", original)

    def _watch_end(self, executor: Any) -> Undo:
        original = executor.compile

        @functools.wraps(original)
        def compile(*args: Any, **kwargs: Any) -> Any:
            try:
                return original(*args, **kwargs)
            finally:
                if self._open:
                    try:
                        name = self._open.pop(_get_ident(), None)
                        if name is not None:
                            self._recorder.mark(Mark.SCOPE_ENDED, name)
                    except Exception as error:
                        self._recorder.broke("a compilation", error)

        executor.compile = compile
        return lambda: setattr(executor, "compile", original)

    def _name(self, args: tuple[Any, ...]) -> int:
        """Example: compilation 2 of train_step (Float32[64, 9], was Float32[64, 8]) at train.py:31
        is its second one, because of other shapes than at the first.
        """
        string = self._recorder.journal.string
        what = str(args[-1]) if args else ""
        function = _FUNCTION.match(what)
        what = function.group(1) if function else what
        self._counts[what] += 1
        if self._counts.total() > MOST_NAMES:
            return string("scope", f"{COMPILATION}of one more function")
        signature = _signature(args[1] if len(args) > 1 else ())
        cause = self._cause(what, signature)
        self._signatures[what] = signature
        line = users_line(sys._getframe(2))
        at = f" at {line.file}:{line.line}" if line else ""
        return string("scope", f"{COMPILATION}{self._counts[what]} of {what}{cause}{at}")

    def _cause(self, name: str, signature: list[str]) -> str:
        """Why it is compiled again: other arguments, or another function of the same name."""
        before, graph = self._signatures.get(name), self.called.get(_get_ident())
        is_known = graph is None or self._named.get(graph) == name
        if graph is not None:
            self._named[graph] = name
        changed = _difference(signature, before)
        if changed or before is None or is_known:
            return changed
        return f" ({MADE_ANEW})"


def _signature(args: Any) -> list[str]:
    """What a graph is compiled for: types and shapes, and values that are constants in it; for
    lists and tuples those of their parts.

    A tensor's own text would contain its values, and accessing them means waiting for them.
    """
    found: list[str] = []
    waiting = list(args) if isinstance(args, list | tuple) else []
    while waiting and len(found) < MOST_ARGUMENTS:
        argument = waiting.pop(0)
        shape, kind = getattr(argument, "shape", None), getattr(argument, "dtype", None)
        if isinstance(argument, list | tuple):
            waiting = [*argument[:MOST_ARGUMENTS], *waiting]
        elif isinstance(shape, list | tuple):
            found.append(f"{kind}{list(shape)}"[:MOST_LETTERS])
        elif isinstance(argument, bool | int | float | str | None):
            found.append(repr(argument)[:MOST_LETTERS])
        else:
            found.append(type(argument).__name__)
    return found


def _difference(now: list[str], before: list[str] | None) -> str:
    if before is None or len(now) != len(before):
        return ""
    changed = [f"{new}, was {old}" for new, old in zip(now, before, strict=True) if new != old]
    return f" ({changed[0]})" if changed else ""
