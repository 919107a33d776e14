"""Where MindSpore calls us at every step: calls of cells, of compiled functions, of gradients.

Without graphs every cell is called from Python: the outermost one is a forward pass, an optimizer
an update, and a cell that holds an optimizer (TrainOneStepCell) a step of which both are parts.
With graphs the outermost call runs the graph, and what that does is known once it was compiled.
"""

import functools
import threading
from collections.abc import Callable
from time import monotonic_ns
from typing import TYPE_CHECKING, Any, NamedTuple

from strobe.collect.mindspore_cells import CellCalls
from strobe.collect.mindspore_graphs import GRADIENT
from strobe.model.journal import (
    GRAD_ENABLED,
    GRAPH_BACKWARD,
    GRAPH_PARTS_BITS,
    GRAPH_UPDATE,
    TRAINING_MODE,
    Mark,
)

if TYPE_CHECKING:
    from strobe.collect.mindspore import MindSporeHooks

Undo = Callable[[], None]
_get_ident = threading.get_ident

# As plain numbers: looking up a member of an enum costs as much as writing the mark.
_FORWARD_BEGAN, _FORWARD_ENDED = int(Mark.FORWARD_BEGAN), int(Mark.FORWARD_ENDED)
_BACKWARD_BEGAN, _BACKWARD_ENDED = int(Mark.BACKWARD_BEGAN), int(Mark.BACKWARD_ENDED)
_UPDATE_BEGAN, _UPDATE_ENDED = int(Mark.UPDATE_BEGAN), int(Mark.UPDATE_ENDED)
_COLLECTIVE_BEGAN, _COLLECTIVE_ENDED = int(Mark.COLLECTIVE_BEGAN), int(Mark.COLLECTIVE_ENDED)
_GRAPH = int(Mark.GRAPH)

# What a cell is to us.
PLAIN, OPTIMIZER, TRAINS, REDUCER = range(4)

# Inside one of these, whatever is called is a part of it; inside a cell that trains, it is not.
TRAINING, FORWARD = "training", "forward"


class Known(NamedTuple):
    """What is known of a cell or a function."""

    kind: int
    ref: int  # names it in marks


class Call(NamedTuple):
    """Something outermost that was called, until it ends."""

    thread: int
    before: str | None  # what the thread was inside of
    ended: Callable[["Call", int], None]
    ref: int = 0
    value: int = 0
    began_ns: int = 0
    graph: int = 0  # by its address


class Calls:
    def __init__(self, hooks: "MindSporeHooks") -> None:
        self._hooks, self._inside = hooks, hooks.inside
        self._no_cells = CellCalls(hooks.recorder, lambda: None)

    def wrap(
        self, owner: Any, name: str, begins: Callable[..., Call | None],
        cells: CellCalls | None = None,
    ) -> Undo:  # fmt: skip
        """Let `begins` see each call that is part of nothing else, and the Call it returns end.

        `cells` is shown every call inside a forward pass, while it is on.
        """
        original = getattr(owner, name)
        inside, broke, settle = self._inside, self._hooks.broke, self._hooks.pending.settle
        shown = cells or self._no_cells

        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            around = inside.get(_get_ident())
            if around is not None and around is not TRAINING:
                if shown.is_on and around is FORWARD:
                    return shown.around(original, *args, **kwargs)
                return original(*args, **kwargs)
            begun = None
            try:
                settle()
                begun = begins(around, *args)
            except Exception as error:
                broke(f"{name} began", error)
            if begun is None:
                return original(*args, **kwargs)
            is_shown = shown.is_on and inside.get(begun.thread) is FORWARD
            run = functools.partial(shown.around, original) if is_shown else original
            return self._outermost(begun, name, run, args, kwargs)

        setattr(owner, name, call)
        return lambda: setattr(owner, name, original)

    def _outermost(
        self, begun: Call, name: str, original: Callable[..., Any], args: Any, kwargs: Any
    ) -> Any:
        inside, owed = self._inside, self._hooks.windows.owed
        outcome = 0
        try:
            if owed:
                raise owed.pop()
            result = original(*args, **kwargs)
            outcome = 1
            return result
        finally:
            try:
                if begun.before is None:
                    inside.pop(begun.thread, None)
                else:
                    inside[begun.thread] = begun.before
                begun.ended(begun, outcome)
            except Exception as error:
                self._hooks.broke(f"{name} ended", error)

    # What begins

    def cell(self, around: str | None, cell: Any, *_: Any) -> Call | None:
        hooks = self._hooks
        known = hooks.called.get(id(cell)) or hooks.know(cell)
        if hooks.uses_graphs():
            return self._graph_of(around, id(cell), known)
        if known.kind == OPTIMIZER:
            return self._update(around, known.ref)
        if known.kind == REDUCER:
            return self._collective(around, known.ref)
        if known.kind == TRAINS:
            return self._enter(around, TRAINING, self._left) if around is None else None
        takes_gradient = bool(getattr(cell, "requires_grad", False))
        if around is TRAINING and not takes_gradient:
            return None  # helps with the gradients
        flags = (GRAD_ENABLED if takes_gradient else 0) | (TRAINING_MODE if cell.training else 0)
        return self._forward(around, known.ref, flags)

    def function(self, around: str | None, executor: Any, *_: Any) -> Call | None:
        """A function that is compiled: one call of it is one run of its graph."""
        hooks = self._hooks
        function = getattr(executor.fn, "__func__", executor.fn)  # a method is made at each call
        known = hooks.called.get(id(function)) or hooks.know(function)
        return self._graph_of(around, id(function), known)

    def gradient_forward(self, around: str | None, function: Any, *_: Any) -> Call | None:
        """The forward pass of a function whose gradient is taken."""
        hooks = self._hooks
        function = getattr(function, "__func__", function)
        known = hooks.called.get(id(function)) or hooks.know(function)
        return self._forward(around, known.ref, GRAD_ENABLED | TRAINING_MODE)

    def gradient_forward_of(
        self, around: str | None, operation: Any, function: Any, *_: Any
    ) -> Call | None:
        """The same, where it is a method of the gradient."""
        return self.gradient_forward(around, function)

    def gradient_backward(self, around: str | None, *_: Any) -> Call | None:
        hooks = self._hooks
        if not (hooks.recorder.is_recording or hooks.takes_part()):
            return None
        hooks.mark(_BACKWARD_BEGAN)
        hooks.look("backward")
        return self._enter(around, "backward", self._backward_ended)

    def _enter(
        self, around: str | None, what: str, ended: Callable[[Call, int], None], ref: int = 0,
        value: int = 0, graph: int = 0,
    ) -> Call:  # fmt: skip
        thread = _get_ident()
        self._inside[thread] = what
        return Call(thread, around, ended, ref, value, monotonic_ns() if graph else 0, graph)

    def _forward(self, around: str | None, ref: int, flags: int) -> Call:
        hooks = self._hooks
        if hooks.steps.is_new:
            hooks.windows.at_boundary()
        hooks.mark(_FORWARD_BEGAN, ref, flags)
        return self._enter(around, FORWARD, self._forward_ended, ref)

    def _update(self, around: str | None, ref: int) -> Call | None:
        hooks = self._hooks
        if not (hooks.recorder.is_recording or hooks.takes_part()):
            return None
        hooks.mark(_UPDATE_BEGAN, ref)
        return self._enter(around, "update", self._update_ended, ref)

    def _collective(self, around: str | None, ref: int) -> Call:
        self._hooks.mark(_COLLECTIVE_BEGAN, ref)
        return self._enter(around, "collective", self._collective_ended, ref)

    def _graph_of(self, around: str | None, graph: int, known: Known) -> Call:
        hooks = self._hooks
        if hooks.steps.is_new:
            hooks.windows.at_boundary()
        hooks.graphs.called[_get_ident()] = graph
        return self._enter(around, "graph", self._graph_ended, known.ref, known.kind, graph)

    # What ends

    def _left(self, call: Call, outcome: int) -> None:
        """A cell whose parts were marked."""

    def _forward_ended(self, call: Call, outcome: int) -> None:
        self._hooks.mark(_FORWARD_ENDED, call.ref, outcome)

    def _backward_ended(self, call: Call, outcome: int) -> None:
        hooks = self._hooks
        hooks.mark(_BACKWARD_ENDED)
        if hooks.steps.are_backwards:
            hooks.steps.went_backward()

    def _update_ended(self, call: Call, outcome: int) -> None:
        if outcome:
            self._hooks.pending.hold(monotonic_ns(), functools.partial(self._updated, call.ref))

    def _updated(self, ref: int, ended_ns: int) -> None:
        self._hooks.mark(_UPDATE_ENDED, ref, 0, ended_ns)
        self._hooks.steps.updated(ref)

    def _collective_ended(self, call: Call, outcome: int) -> None:
        self._hooks.mark(_COLLECTIVE_ENDED, call.ref)

    def _graph_ended(self, call: Call, outcome: int) -> None:
        """Only now is it known what it did. It counts as the last of its parts, and a mark of its
        own says that there are others in it."""
        hooks, ended_ns = self._hooks, monotonic_ns()
        hooks.graphs.called.pop(call.thread, None)
        if not outcome:
            return
        if call.value == OPTIMIZER:
            parts = GRAPH_UPDATE
        else:
            parts = hooks.graphs.parts(call.graph)
            parts |= GRAPH_UPDATE | GRAPH_BACKWARD if call.value == TRAINS else 0
        trains = parts & (GRAPH_UPDATE | GRAPH_BACKWARD)
        if trains and not (hooks.recorder.is_recording or hooks.takes_part()):
            return
        if parts & GRAPH_UPDATE:
            hooks.pending.hold(ended_ns, functools.partial(self._ran, call, parts))
        else:
            self._ran(call, parts, ended_ns)

    def _ran(self, call: Call, parts: int, ended_ns: int) -> None:
        hooks, mark, ref, began_ns = self._hooks, self._hooks.mark, call.ref, call.began_ns
        if parts & GRAPH_UPDATE:
            mark(_UPDATE_BEGAN, ref, 0, began_ns)
            mark(_UPDATE_ENDED, ref, 0, ended_ns)
            hooks.steps.updated(ref)
        elif parts & GRAPH_BACKWARD:
            mark(_BACKWARD_BEGAN, 0, 0, began_ns)
            mark(_BACKWARD_ENDED, 0, 0, ended_ns)
            if hooks.steps.are_backwards:
                hooks.steps.went_backward()
        else:
            mark(_FORWARD_BEGAN, ref, 0, began_ns)
            mark(_FORWARD_ENDED, ref, 1, ended_ns)
        if parts & (GRAPH_BACKWARD | GRAPH_UPDATE):
            mark(_GRAPH, ref, (ended_ns - began_ns) << GRAPH_PARTS_BITS | parts, began_ns)


def kind_of(cell: Any, is_optimizer: Callable[[Any], bool]) -> int:
    if is_optimizer(cell):
        return OPTIMIZER
    if type(cell).__name__ in ("DistributedGradReducer", "PipelineGradReducer"):
        return REDUCER
    inner = getattr(cell, "cells_and_names", None)
    if inner is not None and any(is_optimizer(part) for _, part in inner()):
        return TRAINS
    return PLAIN


def takes_gradient(function: Any) -> bool:
    """Whether a function is the one that MindSpore makes to take a gradient of another."""
    return getattr(function, "__name__", "") == GRADIENT
