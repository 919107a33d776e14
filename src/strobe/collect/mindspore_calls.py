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


class GraphCall(NamedTuple):
    """A call that runs a graph."""

    ref: int
    kind: int
    began_ns: int
    graph: int  # by its address


# Of a call that is part of nothing else: what the thread is inside of until it ends; what to tell
# then, and of what (with the outcome, 0 for an error). Plain, for these are made at every step.
Call = tuple[str, Callable[[Any, int], None], Any]


class Calls:
    def __init__(self, hooks: "MindSporeHooks") -> None:
        self._hooks, self._inside = hooks, hooks.inside
        self._no_cells = CellCalls(hooks.recorder, lambda: None)

    def wrap(
        self, owner: Any, name: str, begins: Callable[..., Call | None],
        cells: CellCalls | None = None,
    ) -> Undo:  # fmt: skip
        """Let `begins` see each call that is part of nothing else, and the Call it returns end.

        `cells` is shown every call inside a forward pass, while it is on. All in one function: in
        a step of milliseconds each further one has left the processor's caches before it is called
        again, and costs microseconds.
        """
        original = getattr(owner, name)
        inside, broke, pending = self._inside, self._hooks.broke, self._hooks.pending
        owed, shown = self._hooks.windows.owed, cells or self._no_cells

        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            thread = _get_ident()
            around = inside.get(thread)
            if around is not None and around is not TRAINING:
                if shown.is_on and around is FORWARD:
                    return shown.around(original, *args, **kwargs)
                return original(*args, **kwargs)
            begun = None
            try:
                if pending.tell is not None:
                    pending.settle()
                begun = begins(around, *args)
            except Exception as error:
                broke(f"{name} began", error)
            if begun is None:
                return original(*args, **kwargs)
            inside[thread], ended, what = begun
            outcome = 0
            try:
                run = self._instead(begun, original, shown) if owed or shown.is_on else original
                result = run(*args, **kwargs)
                outcome = 1
                return result
            finally:
                try:
                    inside[thread] = around
                    ended(what, outcome)
                except Exception as error:
                    broke(f"{name} ended", error)

        setattr(owner, name, call)
        return lambda: setattr(owner, name, original)

    def _instead(
        self, begun: Call, original: Callable[..., Any], shown: CellCalls
    ) -> Callable[..., Any]:
        """What to call, in steps that are recorded in full. Raises what the script is owed."""
        if self._hooks.windows.owed:
            raise self._hooks.windows.owed.pop()
        is_shown = shown.is_on and begun[0] is FORWARD
        return functools.partial(shown.around, original) if is_shown else original

    # What begins

    def cell(self, around: str | None, cell: Any, *_: Any) -> Call | None:
        hooks = self._hooks
        known = hooks.called.get(id(cell)) or hooks.know(cell)
        if hooks.uses_graphs():
            return self._graph_of(id(cell), known)
        if known.kind == OPTIMIZER:
            return self._update(known.ref)
        if known.kind == REDUCER:
            hooks.mark(_COLLECTIVE_BEGAN, known.ref)
            return "collective", self._collective_ended, known.ref
        if known.kind == TRAINS:
            return (TRAINING, self._left, None) if around is None else None
        takes_gradient = bool(getattr(cell, "requires_grad", False))
        if around is TRAINING and not takes_gradient:
            return None  # helps with the gradients
        flags = (GRAD_ENABLED if takes_gradient else 0) | (TRAINING_MODE if cell.training else 0)
        return self._forward(known.ref, flags)

    def function(self, around: str | None, executor: Any, *_: Any) -> Call | None:
        """A function that is compiled: one call of it is one run of its graph."""
        hooks = self._hooks
        function = getattr(executor.fn, "__func__", executor.fn)  # a method is made at each call
        known = hooks.called.get(id(function)) or hooks.know(function)
        return self._graph_of(id(function), known)

    def gradient_forward(self, around: str | None, function: Any, *_: Any) -> Call | None:
        """The forward pass of a function whose gradient is taken."""
        hooks = self._hooks
        function = getattr(function, "__func__", function)
        known = hooks.called.get(id(function)) or hooks.know(function)
        return self._forward(known.ref, GRAD_ENABLED | TRAINING_MODE)

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
        if hooks.looks_left:
            hooks.look("backward")
        return "backward", self._backward_ended, None

    def _forward(self, ref: int, flags: int) -> Call:
        hooks = self._hooks
        if hooks.steps.is_new:
            hooks.windows.at_boundary()
        hooks.mark(_FORWARD_BEGAN, ref, flags)
        return FORWARD, self._forward_ended, ref

    def _update(self, ref: int) -> Call | None:
        hooks = self._hooks
        if not (hooks.recorder.is_recording or hooks.takes_part()):
            return None
        hooks.mark(_UPDATE_BEGAN, ref)
        return "update", self._update_ended, ref

    def _graph_of(self, graph: int, known: Known) -> Call:
        hooks = self._hooks
        if hooks.steps.is_new:
            hooks.windows.at_boundary()
        hooks.graphs.called[_get_ident()] = graph
        return "graph", self._graph_ended, GraphCall(known.ref, known.kind, monotonic_ns(), graph)

    # What ends

    def _left(self, _: None, outcome: int) -> None:
        """A cell whose parts were marked."""

    def _forward_ended(self, ref: int, outcome: int) -> None:
        self._hooks.mark(_FORWARD_ENDED, ref, outcome)

    def _backward_ended(self, _: None, outcome: int) -> None:
        hooks = self._hooks
        hooks.mark(_BACKWARD_ENDED)
        if hooks.steps.are_backwards:
            hooks.steps.went_backward()

    def _update_ended(self, ref: int, outcome: int) -> None:
        if outcome:
            self._hooks.pending.hold(monotonic_ns(), self._updated, ref)

    def _updated(self, ref: int, ended_ns: int) -> None:
        self._hooks.mark(_UPDATE_ENDED, ref, 0, ended_ns)
        self._hooks.steps.updated(ref)

    def _collective_ended(self, ref: int, outcome: int) -> None:
        self._hooks.mark(_COLLECTIVE_ENDED, ref)

    def _graph_ended(self, call: GraphCall, outcome: int) -> None:
        """Only now is it known what it did. It counts as the last of its parts, and a mark of its
        own says that there are others in it."""
        hooks, ended_ns = self._hooks, monotonic_ns()
        hooks.graphs.called.pop(_get_ident(), None)
        if not outcome:
            return
        if call.kind == OPTIMIZER:
            parts = GRAPH_UPDATE
        else:
            parts = hooks.graphs.parts(call.graph)
            parts |= GRAPH_UPDATE | GRAPH_BACKWARD if call.kind == TRAINS else 0
        trains = parts & (GRAPH_UPDATE | GRAPH_BACKWARD)
        if trains and not (hooks.recorder.is_recording or hooks.takes_part()):
            return
        if parts & GRAPH_UPDATE:
            hooks.pending.hold(ended_ns, self._ran, (call, parts))
        else:
            self._ran((call, parts), ended_ns)

    def _ran(self, run: tuple[GraphCall, int], ended_ns: int) -> None:
        call, parts = run
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
