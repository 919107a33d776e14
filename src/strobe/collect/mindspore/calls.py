"""Where MindSpore calls us at every step: calls of cells, of compiled functions, of gradients.

Without graphs every cell is called from Python: the outermost one is a forward pass, an optimizer
is an update, and a cell that holds an optimizer (TrainOneStepCell) is a step that contains both.
With graphs the outermost call runs the graph, and what the graph does is known once it was
compiled.
"""

import functools
import threading
from collections.abc import Callable
from time import monotonic_ns
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from strobe.collect.mindspore.cells import CellCalls
from strobe.collect.mindspore.source_analysis import GRADIENT
from strobe.model.journal import (
    GRAD_ENABLED,
    GRAPH_BACKWARD,
    GRAPH_PARTS_BITS,
    GRAPH_UPDATE,
    TRAINING_MODE,
    UPDATE_RAN_ON,
    Mark,
)

if TYPE_CHECKING:
    from strobe.collect.mindspore.hooks import MindSporeHooks

Undo = Callable[[], None]
_get_ident = threading.get_ident

# Plain numbers: looking up a member of an enum costs as much as writing the mark.
_FORWARD_BEGAN, _FORWARD_ENDED = int(Mark.FORWARD_BEGAN), int(Mark.FORWARD_ENDED)
_BACKWARD_BEGAN, _BACKWARD_ENDED = int(Mark.BACKWARD_BEGAN), int(Mark.BACKWARD_ENDED)
_UPDATE_BEGAN, _UPDATE_ENDED = int(Mark.UPDATE_BEGAN), int(Mark.UPDATE_ENDED)
_COLLECTIVE_BEGAN, _COLLECTIVE_ENDED = int(Mark.COLLECTIVE_BEGAN), int(Mark.COLLECTIVE_ENDED)
_GRAPH = int(Mark.GRAPH)

# Roles of a cell.
PLAIN, OPTIMIZER, TRAINS, REDUCER = range(4)

_TRAINS = GRAD_ENABLED | TRAINING_MODE

# Inside one of these, every call is part of it; not so inside a cell that trains.
TRAINING, FORWARD = "training", "forward"


class Known(NamedTuple):
    """What is known about a cell or a function."""

    kind: int
    ref: int  # names it in marks


# Plain tuples, as they are created at every step. A call that runs a graph: its name in marks, its
# object, when it began, the graph by its address, the function that was compiled.
GraphCall = tuple[int, int, int, int, Any]

# For an outermost call: what the thread is inside of until it ends; the mark to leave then, or the
# function to call, and its subject (with the outcome, 0 for an error, and the time).
Call = tuple[str, int | Callable[[Any, int, int], None], Any]


class Calls:
    def __init__(self, hooks: "MindSporeHooks") -> None:
        self._hooks, self._inside = hooks, hooks.inside
        self._no_cells = CellCalls(hooks.recorder, lambda: None)

    def _wrap(
        self, owner: Any, name: str, begins: Callable[..., Call | None],
        cells: CellCalls | None = None,
    ) -> Undo:  # fmt: skip
        """Call `begins` for each outermost call, and end the Call that it returns.

        `cells` sees every call inside a forward pass, while it is on. All in one function: in a
        step of milliseconds each further one has left the processor's caches before it is called
        again, and costs microseconds.
        """
        original, hooks = getattr(owner, name), self._hooks
        inside, broke, pending, keep = self._inside, hooks.broke, hooks.pending, hooks.keep
        owed, shown = hooks.windows.owed, cells or self._no_cells
        came = hooks.metrics.result_came if hooks.metrics is not None else _nothing
        shown.original = original

        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            thread = _get_ident()
            around = inside.get(thread)
            if around is not None and around is not TRAINING:
                is_shown = shown.is_on and around is FORWARD
                return (shown.around if is_shown else original)(*args, **kwargs)
            begun = None
            try:
                if pending.tell is not None:
                    pending.settle()
                begun = begins(around, thread, *args)
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
                came(begun, args[0], result)
                return result
            finally:
                try:
                    inside[thread] = around
                    now_ns = monotonic_ns()
                    if isinstance(ended, int):
                        keep((ended, what, outcome, now_ns, thread))
                    else:
                        ended(what, outcome, now_ns)
                except Exception as error:
                    broke(f"{name} ended", error)

        setattr(owner, name, call)
        return lambda: setattr(owner, name, original)

    def wrap_cell(self, owner: Any, name: str) -> Undo:
        return self._wrap(owner, name, self._cell, self._hooks.windows.cells)

    def wrap_function(self, owner: Any, name: str) -> Undo:
        return self._wrap(owner, name, self._function)

    def wrap_forward(self, owner: Any, name: str) -> Undo:
        """The forward pass of a function whose gradient is taken: the first argument, after the
        gradient itself if this is a method of it.

        It is called at every step of a loop without graphs, so it does by itself what `_wrap` and
        the functions below do for others, and leaves both its marks at the end.
        """
        original, hooks = getattr(owner, name), self._hooks
        inside, broke, pending, keep = self._inside, hooks.broke, hooks.pending, hooks.keep
        owed, called, marks = hooks.windows.owed, hooks.called, hooks.marks
        came = hooks.metrics.forward_came if hooks.metrics is not None else _nothing
        place = 0 if isinstance(owner, ModuleType) else 1

        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            thread = _get_ident()
            around = inside.get(thread)
            if around is not None and around is not TRAINING:
                return original(*args, **kwargs)
            ref = began_ns = outcome = 0
            function = None
            try:
                if pending.tell is not None:
                    pending.settle()
                function = getattr(args[place], "__func__", args[place])
                ref = (called.get(id(function)) or hooks.know(function))[1]
                if hooks.steps.is_new:
                    hooks.at_boundary()
                began_ns = monotonic_ns()
                if began_ns > marks.due_ns:
                    marks.write(began_ns)
                inside[thread] = FORWARD
            except Exception as error:
                broke(f"{name} began", error)
            try:
                if owed:
                    raise owed.pop()
                result = original(*args, **kwargs)
                outcome = 1
                came(function, result, around)
                return result
            finally:
                inside[thread] = around
                keep((
                    _FORWARD_BEGAN, ref, _TRAINS, began_ns, thread,
                    _FORWARD_ENDED, ref, outcome, monotonic_ns(), thread,
                ))  # fmt: skip

        setattr(owner, name, call)
        return lambda: setattr(owner, name, original)

    def wrap_backward(self, owner: Any, name: str) -> Undo:
        """The same for taking the gradient of a function without graphs."""
        original, hooks = getattr(owner, name), self._hooks
        inside, broke, pending, keep = self._inside, hooks.broke, hooks.pending, hooks.keep
        owed, cells, recorder = hooks.windows.owed, hooks.windows.cells, hooks.recorder
        early = recorder.guarded(self._early_backward)

        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            thread = _get_ident()
            around = inside.get(thread)
            if around is not None and around is not TRAINING:
                return original(*args, **kwargs)
            try:
                if pending.tell is not None:
                    pending.settle()
                if not recorder.is_recording:
                    hooks.takes_part()
            except Exception as error:
                broke(f"{name} began", error)
            inside[thread], began_ns = "backward", monotonic_ns()
            try:
                run = self._shown(original) if owed or cells.is_on else original
                return run(*args, **kwargs)
            finally:
                inside[thread] = around
                keep((
                    _BACKWARD_BEGAN, 0, 0, began_ns, thread,
                    _BACKWARD_ENDED, 0, 0, monotonic_ns(), thread,
                ))  # fmt: skip
                if hooks.looks_left or hooks.steps.are_backwards:
                    early()

        setattr(owner, name, call)
        return lambda: setattr(owner, name, original)

    def _shown(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """A backward pass in the step that shows whose gradients are computed when."""
        if self._hooks.windows.owed:
            raise self._hooks.windows.owed.pop()
        return self._hooks.windows.cells.gradients.around(original)

    def _early_backward(self) -> None:
        hooks = self._hooks
        if hooks.looks_left:
            hooks.look("backward")
        hooks.steps.went_backward()

    def _instead(
        self, begun: Call, original: Callable[..., Any], shown: CellCalls
    ) -> Callable[..., Any]:
        """What to call instead, in steps that are recorded in full. Raises a pending error of the
        script.
        """
        if self._hooks.windows.owed:
            raise self._hooks.windows.owed.pop()
        is_shown = shown.is_on and begun[0] is FORWARD
        return shown.around if is_shown else original

    # Beginnings

    def _cell(self, around: str | None, thread: int, cell: Any, *_: Any) -> Call | None:
        hooks = self._hooks
        known = hooks.called.get(id(cell)) or hooks.know(cell)
        if hooks.uses_graphs():
            return self._graph_of(thread, id(cell), known)
        kind, ref = known
        if kind == OPTIMIZER:
            if not (hooks.recorder.is_recording or hooks.takes_part()):
                return None
            hooks.keep((_UPDATE_BEGAN, ref, 0, monotonic_ns(), thread))
            if hooks.metrics is not None:
                hooks.metrics.updating(cell)
            return "update", self._update_ended, ref
        if kind == REDUCER:
            hooks.keep((_COLLECTIVE_BEGAN, ref, 0, monotonic_ns(), thread))
            return "collective", _COLLECTIVE_ENDED, ref
        if kind == TRAINS:
            return (TRAINING, self._left, None) if around is None else None
        takes_gradient = bool(getattr(cell, "requires_grad", False))
        if around is TRAINING and not takes_gradient:
            return None  # helps with the gradients
        flags = (GRAD_ENABLED if takes_gradient else 0) | (TRAINING_MODE if cell.training else 0)
        return self._forward(thread, ref, flags)

    def _function(self, around: str | None, thread: int, executor: Any, *_: Any) -> Call | None:
        """A compiled function: one call of it is one run of its graph."""
        hooks = self._hooks
        # a method object is created at each call
        function = getattr(executor.fn, "__func__", executor.fn)
        known = hooks.called.get(id(function)) or hooks.know(function)
        return self._graph_of(thread, id(function), known, executor.fn)

    def _forward(self, thread: int, ref: int, flags: int) -> Call:
        hooks = self._hooks
        if hooks.steps.is_new:
            hooks.at_boundary()
        now_ns = monotonic_ns()
        hooks.keep((_FORWARD_BEGAN, ref, flags, now_ns, thread))
        if now_ns > hooks.marks.due_ns:
            hooks.marks.write(now_ns)
        return FORWARD, _FORWARD_ENDED, ref

    def _graph_of(self, thread: int, graph: int, known: Known, function: Any = None) -> Call:
        hooks = self._hooks
        if hooks.steps.is_new:
            hooks.at_boundary()
        hooks.graphs.called[thread] = graph
        kind, ref = known
        return "graph", self._graph_ended, (ref, kind, monotonic_ns(), graph, function)

    # Ends

    def _left(self, _: None, outcome: int, ended_ns: int) -> None:
        """A cell whose parts were marked."""

    def _update_ended(self, ref: int, outcome: int, ended_ns: int) -> None:
        if outcome:
            self._hooks.pending.hold(ended_ns, self._updated, ref)

    def _updated(self, ref: int, ended_ns: int, _: bool) -> None:
        self._hooks.keep((_UPDATE_ENDED, ref, 0, ended_ns, _get_ident()))
        self._hooks.steps.updated(ref)

    def _graph_ended(self, call: GraphCall, outcome: int, ended_ns: int) -> None:
        """Only now is it known what the graph did. It is marked as the last of its parts, and a
        mark of its own says that it has others.
        """
        hooks, (_, kind, _, graph, function) = self._hooks, call
        hooks.graphs.called.pop(_get_ident(), None)
        if not outcome:
            return
        if kind == OPTIMIZER:
            parts = GRAPH_UPDATE
        else:
            parts = hooks.graphs.parts(graph, function)
            parts |= GRAPH_UPDATE | GRAPH_BACKWARD if kind == TRAINS else 0
        trains = parts & (GRAPH_UPDATE | GRAPH_BACKWARD)
        if trains and not (hooks.recorder.is_recording or hooks.takes_part()):
            return
        if parts & GRAPH_UPDATE:
            hooks.pending.hold(ended_ns, self._ran, (call, parts))
        else:
            self._ran((call, parts), ended_ns, False)

    def _ran(self, run: tuple[GraphCall, int], ended_ns: int, is_seen: bool) -> None:
        (ref, _, began_ns, _, _), parts = run
        hooks, thread = self._hooks, _get_ident()
        length = (ended_ns - began_ns) << GRAPH_PARTS_BITS | parts
        if parts & GRAPH_UPDATE:
            hooks.keep((
                _UPDATE_BEGAN, ref, 0, began_ns, thread,
                _UPDATE_ENDED, ref, 0 if is_seen else UPDATE_RAN_ON, ended_ns, thread,
                _GRAPH, ref, length, began_ns, thread,
            ))  # fmt: skip
            hooks.steps.updated(ref)
        elif parts & GRAPH_BACKWARD:
            hooks.keep((
                _BACKWARD_BEGAN, 0, 0, began_ns, thread, _BACKWARD_ENDED, 0, 0, ended_ns, thread,
                _GRAPH, ref, length, began_ns, thread,
            ))  # fmt: skip
            if hooks.steps.are_backwards:
                hooks.steps.went_backward()
        else:
            hooks.keep((
                _FORWARD_BEGAN, ref, 0, began_ns, thread, _FORWARD_ENDED, ref, 1, ended_ns, thread,
            ))  # fmt: skip
        if ended_ns > hooks.marks.due_ns:
            hooks.marks.write(ended_ns)


def _nothing(*_: Any) -> None:
    """Where training metrics are switched off."""


def kind_of(cell: Any, is_optimizer: Callable[[Any], bool]) -> int:
    if is_optimizer(cell):
        return OPTIMIZER
    if type(cell).__name__ in ("DistributedGradReducer", "PipelineGradReducer"):
        return REDUCER
    return PLAIN if optimizer_in(cell, is_optimizer) is None else TRAINS


def optimizer_in(cell: Any, is_optimizer: Callable[[Any], bool]) -> Any:
    """The first optimizer among the parts of a cell; None if there is none, or it is not a cell."""
    inner = getattr(cell, "cells_and_names", None)
    return next((part for _, part in inner() if is_optimizer(part)), None) if inner else None


def takes_gradient(function: Any) -> bool:
    """Whether a function is the one that MindSpore creates to take a gradient of another."""
    return getattr(function, "__name__", "") == GRADIENT
