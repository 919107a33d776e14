"""Marks of an unmodified MindSpore training: data, forward, backward, update.

Hooks are where MindSpore calls through Python anyway: cells, compiled functions, gradients,
iterators over datasets (mindspore/calls.py, mindspore/graphs.py, mindspore/data.py). The windows of
full recording are in mindspore/windows.py.
"""

import functools
import sys
from collections import Counter
from collections.abc import Callable
from inspect import isfunction
from threading import get_ident
from time import monotonic_ns
from typing import Any

from strobe.collect.host.debug_modes import DebugModes
from strobe.collect.mindspore import versions
from strobe.collect.mindspore.calls import (
    OPTIMIZER,
    PLAIN,
    Calls,
    Known,
    Undo,
    kind_of,
    optimizer_in,
    takes_gradient,
)
from strobe.collect.mindspore.data import Datasets
from strobe.collect.mindspore.deferred_updates import Pending
from strobe.collect.mindspore.graphs import Graphs
from strobe.collect.mindspore.marks import Marks
from strobe.collect.mindspore.metrics import MindSporeMetrics
from strobe.collect.mindspore.source_analysis import optimizer_named
from strobe.collect.mindspore.windows import MindSporeWindows
from strobe.collect.recorder import Recorder
from strobe.collect.steps import StepCount
from strobe.collect.until_deleted import UntilDeleted
from strobe.model.journal import GRAPH_BACKWARD, Mark

FRAMEWORK = "mindspore"

# This many backward passes show every line that regularly makes them; the first may be a trial
# before training.
_LOOKS = 32

_DEBUG_FLAGS = ("pynative_synchronize", "save_graphs")

# Maximum number of functions with the same name to distinguish: one that is created again at every
# step has no end.
_MOST_ALIKE = 8


class MindSporeHooks:
    """All hooks in MindSpore; `uninstall` removes every one."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.journal = recorder.journal
        self.marks = Marks(recorder)
        self.keep = self.marks.keep
        recorder.at_looks.append(self.marks.write)
        self.broke = recorder.broke
        self.steps = StepCount()
        self.windows = MindSporeWindows(recorder, self.steps)
        # What threads are inside of, None if that was not marked: see mindspore/calls.py.
        self.inside: dict[int, str | None] = {}
        self._optimizer_classes: tuple[type, ...] = ()
        self._optimizers = self._numbered = 0  # created, and seen at work
        self.looks_left = _LOOKS
        self._undo: list[Callable[[], None]] = []
        self.pending = Pending(recorder)
        self.metrics = MindSporeMetrics(self) if recorder.options.metrics else None
        self.calls = Calls(self)
        self.graphs = Graphs(recorder, self.is_optimizer)
        # For functions, and optimizers that cells hold: their number among those of the same name.
        self._alike, self._names = UntilDeleted[int](), Counter[str]()
        # What is known about cells and functions.
        self.called = UntilDeleted[Known](self.graphs.forget)
        self.data = Datasets(self)
        self.windows.on_begin = self.data.window_began

    def install(self) -> None:
        import mindspore
        from mindspore import context, nn
        from mindspore.experimental.optim.optimizer import Optimizer

        self._context = context
        self.recorder.frameworks["mindspore"] = str(mindspore.__version__)
        strange = versions.unfamiliar(str(mindspore.__version__))
        if strange:
            self.recorder.notes.append(strange)
        self._optimizer_classes = (nn.Optimizer, Optimizer)
        if self.metrics is not None:
            self._undo.append(self.metrics.install())
        self._undo.append(self.windows.give_way())
        self._undo.append(self.calls.wrap_cell(nn.Cell, "__call__"))
        for owner in self._optimizer_classes:
            self._undo.append(self._watch_optimizers(owner))
        self._undo += self.graphs.install()
        self._undo += self.pending.install()
        self._hook_executors()
        if self.recorder.options.data_process:
            self._undo += self.data.install()

    def _hook_executors(self) -> None:
        home, calls = versions.executors(), self.calls
        runs_jit = getattr(home, "_JitExecutor", None)
        runs_plain = getattr(home, "_PyNativeExecutor", None)
        self._hook("compiled functions", [(runs_jit, "__call__", calls.wrap_function)])
        forward = [
            (owner, "_pynative_forward_run", calls.wrap_forward)
            for owner in versions.forward_homes()
        ]
        self._hook("forward passes", forward)
        backward = [(runs_plain, name, calls.wrap_backward) for name in ("grad", "grad_aux")]
        self._hook("backward passes", backward)

    def _hook(self, what: str, places: list[tuple[Any, str, Callable[..., Undo]]]) -> None:
        """Into every place that this version has; one is enough."""
        found = [place for place in places if place[0] is not None and hasattr(*place[:2])]
        for owner, name, wrap in found:
            self._undo.append(wrap(owner, name))
        if not found:
            self.recorder.problem(
                "mindspore", f"{what} are not seen: this MindSpore runs them otherwise"
            )

    def uninstall(self) -> None:
        self.pending.settle()
        self.marks.write()
        for error in self.windows.owed:  # no call followed that could have raised it
            first = str(error).strip().partition("\n")[0]
            self.recorder.problem("mindspore", f"an operator of the script failed: {first}")
        self.data.close()
        while self._undo:
            self._undo.pop()()

    def after_fork_in_child(self) -> None:
        self.journal = self.recorder.journal
        self.marks.after_fork_in_child()
        self.inside.clear()
        self.pending.forget()
        self._alike.clear()
        self._names.clear()
        self.called.clear()  # their numbers belong to the parent's journal
        self.graphs.called.clear()
        self.data.after_fork_in_child()
        if self.metrics is not None:
            self.metrics.after_fork_in_child()
        self.looks_left = _LOOKS
        self.steps = StepCount()
        self.windows.after_fork_in_child(self.steps)

    def step_said(self) -> None:
        """strobe.step(): the update before it has ended."""
        self.pending.settle()
        self.keep((int(Mark.STEP), 0, 0, monotonic_ns(), get_ident()))
        self.steps.said()
        self.at_boundary()

    def at_boundary(self) -> None:
        """Windows may begin or end: their marks come after those of the steps before."""
        self.marks.write()
        self.windows.at_boundary()

    def takes_part(self) -> bool:
        """Whether to record; called by a process that does not yet, or no longer."""
        recorder = self.recorder
        if recorder.is_off:
            recorder.stand_down()
            return False
        self.steps.has_optimizer = self._optimizers > 0
        target = str(self._context.get_context("device_target"))
        if target != "CPU":
            recorder.devices[:] = ["cpu", target.lower()]
        recorder.begin_training(self)
        read = self._context.get_context
        flags = {name: functools.partial(read, name) for name in _DEBUG_FLAGS}
        DebugModes(recorder, flags).begin()
        return not recorder.is_off

    def uses_graphs(self) -> bool:
        return bool(self._context._get_mode() == self._context.GRAPH_MODE)

    def is_optimizer(self, thing: Any) -> bool:
        return isinstance(thing, self._optimizer_classes)

    def _watch_optimizers(self, owner: Any) -> Callable[[], None]:
        """This decides whether a step ends with an update or with a backward pass, before either
        happens.
        """
        original = owner.__init__

        def __init__(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            self._optimizers += 1
            original(optimizer, *args, **kwargs)

        __init__.__wrapped__ = original  # type: ignore[attr-defined]
        owner.__init__ = __init__
        return lambda: setattr(owner, "__init__", original)

    # What is known by number

    def know(self, thing: Any) -> Known:
        """Register a cell or a function that is called."""
        name = getattr(thing, "__qualname__", type(thing).__qualname__)
        kind = kind_of(thing, self.is_optimizer)
        if kind == OPTIMIZER:
            self._numbered += 1
            known = Known(kind, self.journal.string("optimizer", f"{name} #{self._numbered}"))
            self.recorder.places.see("update", sys._getframe(1), optimizer=name)
        else:
            known = Known(kind, self.journal.string("module", self._told_apart(thing, name)))
            trains = kind != PLAIN or bool(getattr(thing, "requires_grad", False))
            details = {"module": name, "gradients": trains, "training": trains}
            self.recorder.places.see("model call", sys._getframe(1), **details)
            self.recorder.watch()
        if takes_gradient(thing):
            self.graphs.add_part(id(thing), GRAPH_BACKWARD)
        self.called.keep(thing, known)
        return known

    def _told_apart(self, thing: Any, name: str) -> str:
        """A name for each of several with the same name.

        Two that run in turns, each with an optimizer of its own, make one step. A cell or a
        function that is created again around the same optimizer is the same.
        """
        if isfunction(thing):
            optimizer = optimizer_named(thing, self.is_optimizer)
            thing = thing if optimizer is None else optimizer
        else:
            thing = optimizer_in(thing, self.is_optimizer)
        if thing is None:
            return name
        number = self._alike.get(id(thing))
        if number is None:
            number = self._names[name] = self._names[name] + 1
            self._alike.keep(thing, number)
        return name if number == 1 or number > _MOST_ALIKE else f"{name} #{number}"

    def look(self, what: str) -> None:
        """Record the user's line that called this, in the first calls."""
        self.looks_left -= 1
        self.recorder.places.see(what, sys._getframe(2))
