"""Marks of an unmodified JAX training: calls of compiled functions, and when the device finished
them.

jax/calls.py has the places where jax calls us; jax/programs.py finds out what trains; jax/device.py
marks what the device did and when; the windows of full recording are in jax/windows.py.
"""

import atexit
import functools
import sys
import threading
import weakref
from collections.abc import Callable
from time import monotonic_ns
from typing import Any

from strobe.collect.faults import fault_text
from strobe.collect.host.debug_modes import DebugModes
from strobe.collect.jax.call_counts import Counts
from strobe.collect.jax.calls import (
    Call,
    NotPossible,
    hide_frames,
    wrap_annotations,
    wrap_calls,
    wrap_rewraps,
    wrap_waits,
)
from strobe.collect.jax.compile import Compilations
from strobe.collect.jax.costs import Costs
from strobe.collect.jax.data import Iterators
from strobe.collect.jax.device import Device
from strobe.collect.jax.functions import (
    Written,
    classes,
    innermost,
    named,
    passed_on,
    written,
)
from strobe.collect.jax.gradients import Gradients, wrap_gradients
from strobe.collect.jax.memory import MemoryLooks, device_name
from strobe.collect.jax.metrics import JaxMetrics
from strobe.collect.jax.programs import Circles, Program
from strobe.collect.jax.steps import Execution, StepSaid, Waited
from strobe.collect.jax.windows import JaxWindows
from strobe.collect.notices import notice
from strobe.collect.recorder import Recorder
from strobe.collect.steps import StepCount
from strobe.collect.until_deleted import UntilDeleted
from strobe.model.journal import NOT_COMPILED, SINGLE_OPERATIONS, Mark

FRAMEWORK = "jax"
_get_ident = threading.get_ident
_COUNTER, _DISPATCH = int(Mark.COUNTER), int(Mark.DISPATCH)
_OLDEST = (0, 6)
_DEBUG_FLAGS = (
    "jax_debug_nans", "jax_debug_infs", "jax_disable_jit", "jax_check_tracer_leaks",
    "jax_enable_checks",
)  # fmt: skip


class JaxHooks:
    """All hooks in jax; `uninstall` removes every one."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.journal = recorder.journal
        self.broke = recorder.broke
        self.steps = StepCount()
        self.windows = JaxWindows(recorder, self.steps)
        self.device = Device(recorder, self.steps, self._step_ended)
        self.compilations = Compilations(self)
        self.memory = MemoryLooks(recorder)
        self.data = Iterators(self)
        # For compiled functions: the script's programs, and False for jax's own.
        self.known = UntilDeleted[Program | bool]()
        # The current calls of threads, and the threads that wait for an array.
        self.inside: dict[int, Call] = {}
        self.waiting: set[int] = set()
        self.gradients = Gradients()
        self.metrics: JaxMetrics | None = None
        # The last call of a program.
        self.last: Execution | None = None
        # How many of jax's own operations the script has called, outside of its programs.
        self.operations = self._operations_told = 0
        # Whether jax's own operations are followed, too, to find out what trains.
        self.follows = False
        self._circles: Circles | None = None
        self._undo: list[Callable[[], None]] = []
        # By name and the location of their code.
        self._programs: dict[tuple[Any, ...], Program] = {}
        self.windows.tell_costs = Costs(recorder, lambda: list(self._programs.values())).tell

    def install(self) -> None:
        import jax
        from jax._src.lib import xla_client

        version = str(jax.__version__)
        self.recorder.frameworks["jax"] = version
        if tuple(int(part) for part in version.split(".")[:2]) < _OLDEST:
            self.recorder.problem(
                "jax", f"jax {version} is older than what Strobe is tested with ({_OLDEST})"
            )
        array_type = xla_client.ArrayImpl
        self._circles = self._circles or Circles(jax, array_type)
        self.follows = self._circles.is_following and bool(self._circles.programs)
        hide_frames()
        try:
            for cls in classes(jax):
                self._undo.append(wrap_calls(self, cls))
        except (NotPossible, TypeError, AttributeError) as error:
            self.recorder.problem(
                "jax", f"calls of compiled functions are not seen: {error}; call strobe.step() at "
                "the end of each step",
            )  # fmt: skip
        self._undo.append(wrap_waits(self, jax, array_type))
        self._undo.append(wrap_rewraps(self, array_type))
        self._undo.append(wrap_annotations(self, jax))
        if self.recorder.options.metrics:
            self.metrics = JaxMetrics(self, jax, array_type)
            self.device.marks.record_values = self.metrics.record
            self._undo.append(self.metrics.install())
        self._undo.append(wrap_gradients(self, jax))
        self._undo.append(self.windows.give_way())
        self.compilations.install()
        self._undo.append(self.compilations.uninstall)
        if self.recorder.options.data_process:
            self.data.install()
            self._undo.append(self.data.uninstall)
        # jax shuts its devices down at exit; their remaining work must be recorded before.
        leave = functools.partial(_leave, weakref.ref(self))
        atexit.register(leave)
        self._undo.append(lambda: atexit.unregister(leave))

    def uninstall(self) -> None:
        while self._undo:
            self._undo.pop()()
        self.recorder.waited = None
        self.device.finish()

    def leave(self) -> None:
        """Wait for the device: it may still run what a window is to show."""
        last = self._circles.judge_finally() if self._circles is not None else None
        if last is not None:
            self._begin_training()
        self._report_unused_gradients()
        self.device.finish()
        self.windows.close()

    def _report_unused_gradients(self) -> None:
        """Gradients may be taken for another purpose, such as a check of a model."""
        if self.recorder.is_recording or self.recorder.is_off:
            return
        found = [p for p in self._programs.values() if p.takes_gradient and p.calls > 1]
        if found:
            program = max(found, key=lambda program: program.calls)
            self.recorder.say(notice("unused-gradients", program=program.name))

    def after_fork_in_child(self) -> None:
        self.journal = self.recorder.journal
        self.inside.clear()
        self.waiting.clear()
        self.known.clear()  # their numbers belong to the parent's journal
        self._programs.clear()
        self.last = None
        self.data.after_fork_in_child()
        if self.metrics is not None:
            self.metrics.after_fork_in_child()
        self.follows = False
        if self._circles is not None:
            self._circles = Circles(sys.modules["jax"], self._circles.array_type)
        self.steps = StepCount()
        self.device.after_fork_in_child(self.steps)
        if self.metrics is not None:
            self.device.marks.record_values = self.metrics.record
        self.windows.after_fork_in_child(self.steps)

    def step_said(self) -> None:
        """strobe.step(): the device may be behind."""
        self.device.marks.is_training_known = True
        self.device.put(StepSaid(by_hand=True))

    def waited(self, loader: int, ready: int, asked_ns: int, outcome: int) -> None:
        """The script waited for data; the device may have been busy meanwhile."""
        self.device.put(Waited(loader, ready, asked_ns, outcome))

    def _step_ended(self) -> None:
        self.windows.at_boundary()
        self.memory.look()

    # Calls

    def called(self, function: Any) -> Program | bool:
        """A call begins. If the last result was ready long ago, the waiting thread may not have
        reported it yet.
        """
        try:
            known = self.known.get(id(function))
            known = self._know(function) if known is None else known
            last = self.last
            if known and last is not None:
                self.last = None
                self.device.passed_by(last)
            return known
        except Exception as error:
            self.broke("called", error)
            return False

    def sent(self, call: Call, sent_ns: int, out: Any) -> None:
        try:
            program = call.program
            if isinstance(program, Program):
                self._sent(program, call, sent_ns, out)
                return
            self.operations += 1
            if self._circles is not None and self.follows:
                self._circles.follow(call.args, call.kwargs, out)
                self.follows = self._circles.is_following
        except Exception as error:
            self.broke("sent", error)

    def rewrapped(self, array: Any, again: Any) -> None:
        try:
            if self._circles is not None:
                self._circles.rewrapped(array, again)
        except Exception as error:
            self.broke("rewrapped", error)

    def value_came(self, function: Any, has_aux: bool, out: Any) -> None:
        """jax.value_and_grad has returned, while a program is traced."""
        try:
            if self.metrics is not None:
                self.metrics.value_came(function, has_aux, out)
        except Exception as error:
            self.broke("value", error)

    def took_gradient(self, function: Any, call: Call, out: Any, kind: tuple[bool, bool]) -> None:
        """It belongs to this function, outside of any compiled one. `kind`: whether it returns the
        value, too, and whether something else with it.
        """
        sent_ns = monotonic_ns()
        try:
            inner = innermost(function)
            name = getattr(inner, "__name__", "a function")
            program = self._program(named(f"gradient of {name}{NOT_COMPILED}", inner))
            program.takes_gradient = True
            if self.metrics is not None and not program.values:
                program.values = self.metrics.of_gradient(function, *kind)
            self._sent(program, call, sent_ns, out)
        except Exception as error:
            self.broke("gradient", error)

    def _sent(self, program: Program, call: Call, sent_ns: int, out: Any) -> None:
        mark = self.journal.mark
        mark(_DISPATCH, program.number, sent_ns - call.called_ns, call.called_ns)
        if program.trains and self.operations != self._operations_told:
            self._operations_told = self.operations
            mark(_COUNTER, self.journal.string("counter", SINGLE_OPERATIONS), self.operations)
        program.calls += 1
        execution = Execution(program, _get_ident(), call.called_ns, sent_ns)
        if program.which_kept is not None:
            execution.is_next_step = self._is_next_step(program, call)
        self._wait_for(execution, out)
        if self.metrics is not None:
            execution.values = self.metrics.values(program, call, out)
        if program.looks > 0:  # takes some time: the device may be done before it is over
            was_known = program.which_kept is not None
            self._looked(program, call, out)
            execution.is_next_step |= program.which_kept is not None and not was_known
        if program.counts is not None:
            self._count(program.counts, execution, out)
        self.last = execution if execution.leaf is not None else None
        self.device.put(execution)

    def _wait_for(self, execution: Execution, out: Any) -> None:
        leaf = self._result(execution.program, out)
        if leaf is None or leaf.is_ready():
            execution.done_ns = execution.sent_ns
        else:
            execution.leaf = leaf

    def _count(self, counts: Counts, execution: Execution, out: Any) -> None:
        try:
            execution.counters = counts.arrays(out)
        except (LookupError, AttributeError, TypeError):  # they have another structure than before
            return
        if counts.is_open:  # waits for it: see there
            self.device.read(execution)
            execution.done_ns = execution.done_ns or monotonic_ns()

    def _is_next_step(self, program: Program, call: Call) -> bool:
        try:
            return program.is_next_step((call.args, call.kwargs))
        except (LookupError, AttributeError, TypeError):  # it has other arguments than before
            return False

    def _know(self, function: Any) -> Program | bool:
        found = written(function)
        known = self._program(found) if found is not None else False
        self.known.keep(function, known)
        return known

    def _program(self, found: Written) -> Program:
        name, key = found
        if key in self._programs:
            return self._programs[key]
        same = sum(known[0] == name for known in self._programs)
        text = f"{name} #{same + 1}" if same else name
        program = self._programs[key] = Program(text, self.journal.string("program", text))
        if self._circles is not None:
            self._circles.add(program)
            self.follows = self._circles.is_following
        self.recorder.watch()
        return program

    def _result(self, program: Program, out: Any) -> Any:
        """A small array of its results, if it has one, to find out when they are ready."""
        if program.which is None or self._circles is None:
            return None
        try:
            leaf = program.which(out)
            if program.trains and program.state is not None:
                program.last_state = weakref.ref(program.state(out))
        except (LookupError, AttributeError, TypeError):  # they have another structure than before
            program.looks = max(1, program.looks)
            return None
        return leaf if type(leaf) is self._circles.array_type else None

    def _looked(self, program: Program, call: Call, out: Any) -> None:
        if self._circles is None:
            return
        if program.takes_gradient is False and program.passed is None:
            program.passed = self._passed_on(program, call)
        found = self._circles.look(program, call.args, call.kwargs, out)
        self.follows = self._circles.is_following
        if found:
            self._see_training(program)

    def _passed_on(self, program: Program, call: Call) -> dict[int, int]:
        try:
            return passed_on(call.function, call.args, call.kwargs)
        except Exception as error:  # an unknown jax, or a backend that cannot be queried
            what = notice("unknown-results", program=program.name, reason=fault_text(error))
            self.recorder.problem("jax", what)
            return {}

    def _see_training(self, program: Program) -> None:
        if program.trains:
            self.recorder.places.see("update", sys._getframe(3), program=program.name)
        elif program.evaluates:
            self.recorder.places.see("evaluation", sys._getframe(3), program=program.name)
        self._begin_training()

    def _begin_training(self) -> None:
        if not self.recorder.is_recording and not self.recorder.is_off:
            began_ns = monotonic_ns()
            self.recorder.devices[:] = _devices()
            self.recorder.begin_training(self)
            config = sys.modules["jax"].config
            flags = {name: functools.partial(getattr, config, name) for name in _DEBUG_FLAGS}
            DebugModes(self.recorder, flags).begin()
            self.recorder.mark(Mark.OWN_WORK, 0, monotonic_ns() - began_ns, began_ns)
        self.recorder.waited = self.waited
        self.device.marks.is_training_known = True


def _leave(hooks: "weakref.ref[JaxHooks]") -> None:
    here = hooks()
    if here is not None:
        here.recorder.guarded(here.leave)()


def _devices() -> list[str]:
    import jax

    others = [device for device in jax.local_devices() if device.platform != "cpu"]
    return ["cpu", *(f"{device_name(device)} {device.device_kind}" for device in others)]
