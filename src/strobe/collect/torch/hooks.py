"""Marks of an unmodified PyTorch training: data, forward, backward, update.

Each hook is where the framework calls through Python anyway, so that results, tracebacks and
compiled graphs do not change. The methods here may raise: their callers (torch/wrappers.py,
torch/calls.py) catch it. The windows of full recording are in torch/windows.py.
"""

import functools
import sys
import threading
from collections import Counter
from collections.abc import Callable
from time import monotonic_ns
from typing import Any

from strobe.collect.recorder import Recorder
from strobe.collect.steps import StepCount
from strobe.collect.torch.calls import CallCode
from strobe.collect.torch.communication import GradientExchange, hook_waits
from strobe.collect.torch.compile import Compilations
from strobe.collect.torch.data import DataLoaders, Known
from strobe.collect.torch.debug import TorchDebug
from strobe.collect.torch.discarded import DiscardedGradients
from strobe.collect.torch.metrics import TorchMetrics
from strobe.collect.torch.padding import padded_inputs
from strobe.collect.torch.parallel import Parallel
from strobe.collect.torch.untrained import untrained
from strobe.collect.torch.windows import TorchWindows
from strobe.collect.torch.wrappers import (
    COMPILING,
    tells_of_tracing,
    wrap_backward,
    wrap_update,
    wrap_zero_grad,
)
from strobe.collect.until_deleted import UntilDeleted
from strobe.model.journal import (
    DISCARDED_GRADIENTS,
    GRAD_ENABLED,
    PADDED_INPUTS,
    TRAINING_MODE,
    UNTRAINED_PARAMETERS,
    Mark,
)

FRAMEWORK = "torch"
_OLDEST = (2, 4)
_get_ident = threading.get_ident

# This many calls of a kind show every line that regularly makes them; the first may be a trial
# before training.
_LOOKS = 32
# At these calls of a model, its parameters are checked for an optimizer that updates them: by then
# most optimizers have made an update.
_UNTRAINED_LOOKS = (8, 16, 31)
# At these calls its inputs are examined for padding.
_PADDING_LOOKS = (4, 8, 12, 16, 20, 24, 28, 31)

# Plain numbers: looking up a member of an enum costs as much as writing the mark.
_COUNTER = int(Mark.COUNTER)
_FORWARD_BEGAN = int(Mark.FORWARD_BEGAN)
_FORWARD_ENDED = int(Mark.FORWARD_ENDED)
_OWN_WORK = int(Mark.OWN_WORK)


class TorchHooks:
    """All hooks in torch; `uninstall` removes every one."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.journal = recorder.journal
        self.mark = recorder.journal.mark
        self.broke = recorder.broke
        self.steps = StepCount()
        self.windows = TorchWindows(recorder, self.steps)
        self.compilations = Compilations(recorder)
        self.parallel = Parallel(recorder)
        self.debug = TorchDebug(recorder)
        self.metrics = TorchMetrics(self) if recorder.options.metrics else None
        # Threads inside an outermost module, a backward pass or a data loader: modules that they
        # call there are part of it, not another forward pass.
        self.inside: dict[int, str] = {}
        # The number of an optimizer; what is known about a loader's iterator.
        self.optimizers = UntilDeleted[int]()
        self.loaders = UntilDeleted[Known]()
        self.data = DataLoaders(self)
        # By thread: the optimizer at work, and the update around this one, if there is one.
        self.updates: dict[int, tuple[int, Any, Any]] = {}
        # The number of a module's class, for each mode that a call can be in.
        self._classes: tuple[dict[type, int], ...] = ({}, {}, {}, {})
        # How many calls of each kind were examined for the user's line that made them, and what to
        # call there as long as more are wanted.
        self._looks: Counter[Any] = Counter()
        self.look: dict[str, Callable[[], None]] = {}
        self._look_anew()
        self._undo: list[Callable[[], None]] = []
        self._optimizer_count = 0
        self._trained: set[int] = set()  # parameters that an optimizer updates, by id
        self.discarded = DiscardedGradients()
        self._models: dict[type, set[int]] = {}  # outermost modules of a class, by id
        self._exchange: GradientExchange | None = None

    def install(self) -> None:
        import torch

        version = str(torch.__version__)
        self.recorder.frameworks["torch"] = version
        self.recorder.devices[:] = _devices(torch)
        if tuple(int(part) for part in version.split(".")[:2]) < _OLDEST:
            self.recorder.problem(
                "torch", f"torch {version} is older than what Strobe is tested with ({_OLDEST})"
            )
        self._is_grad_enabled = torch.is_grad_enabled
        # Without communication no wrapper is examined; no module is of this class.
        does_exchange = self.recorder.options.profile_communication
        self._ddp_class = torch.nn.parallel.DistributedDataParallel if does_exchange else None
        self._hook_windows(torch)
        self._hook_modules(torch)
        options = self.recorder.options
        if options.data_process:
            self._undo += self.data.install()
        if self.metrics is not None:
            self._try("training metrics", lambda: self.metrics.install(torch))  # type: ignore[union-attr]
        for name, kind in (("backward", 0), ("grad", 1)):
            self._undo.append(wrap_backward(self, torch, name, kind))
        self._try("updates by optimizers", lambda: wrap_update(self, torch))
        for owner in (torch.optim.Optimizer, torch.nn.Module):
            self._undo.append(wrap_zero_grad(self, torch, owner))
        if options.profile_communication:
            self._try("waits for collectives", lambda: hook_waits(self.recorder, torch))
        self._undo.append(self.compilations.uninstall)
        self._undo += self.debug.install(torch)

    @property
    def has_exchange(self) -> bool:
        """Whether a model of DDP was called: every rank then has the whole gradients."""
        return self._exchange is not None

    def _try(self, part: str, install: Callable[[], Callable[[], None]]) -> None:
        self._undo += self.recorder.unseen.tried(FRAMEWORK, part, install)

    def _hook_windows(self, torch: Any) -> None:
        """Two profilers at once crash the process: if the user's own cannot be detected, there are
        no windows.
        """
        try:
            self._undo.append(self.windows.give_way(torch))
        except Exception as error:
            self.recorder.unseen.add(FRAMEWORK, "windows of full recording", error)
            self.windows.retire()

    def uninstall(self) -> None:
        while self._undo:
            self._undo.pop()()

    def after_fork_in_child(self) -> None:
        self.journal = self.recorder.journal
        self.mark = self.recorder.journal.mark
        self.inside.clear()
        self.updates.clear()
        if self.metrics is not None:
            self.metrics.after_fork_in_child()
        self.parallel = Parallel(self.recorder)
        self.optimizers.clear()  # their numbers belong to the parent's journal
        self.loaders.clear()
        self.data.after_fork_in_child()
        for numbers in self._classes:
            numbers.clear()
        self._look_anew()
        self.steps = StepCount()
        self.windows.after_fork_in_child(self.steps)

    def takes_part(self) -> bool:
        """Whether to record; called by a process that does not yet, or no longer."""
        began_ns = monotonic_ns()
        recorder = self.recorder
        if recorder.is_off or _is_data_worker():
            recorder.stand_down()
            return False
        self.steps.has_optimizer = _any_optimizer()
        recorder.begin_training(self)
        if self.metrics is not None:
            self.metrics.begin()
        if recorder.options.parallel_strategy and not recorder.is_off:
            self.parallel.see(sys.modules["torch"])
        threads = self.journal.string("counter", "intra_op_threads")
        self.journal.mark(_COUNTER, threads, _intra_op_threads())
        self.debug.begin(sys.modules["torch"])
        # It is time of the first step, and belongs to none of its phases.
        self.journal.mark(_OWN_WORK, 0, monotonic_ns() - began_ns, began_ns)
        return not recorder.is_off

    # Forward

    def _hook_modules(self, torch: Any) -> None:
        try:
            calls = CallCode(torch.nn.Module._wrapped_call_impl, self._in_calls(torch))
        except Exception as error:
            self.recorder.unseen.add(FRAMEWORK, "forward passes", error)
            return
        self.windows.calls = calls
        calls.use(calls.light)
        self._undo.append(lambda: calls.use(calls.original))

    def _in_calls(self, torch: Any) -> dict[str, Any]:
        return {
            "_strobe_is_traced": tells_of_tracing(torch),
            "_strobe_compiler": vars(torch.compiler),
            "_strobe_compiling": COMPILING,
            "_strobe_get_ident": _get_ident,
            "_strobe_inside": self.inside,
            # A loss after the forward pass is part of it, and needs no mark of its own.
            "_strobe_unmarked": _losses(torch),
            "_strobe_began": self.forward_began,
            "_strobe_ended": self.forward_ended,
            "_strobe_broke": self.recorder.broke,
            **self.windows.in_calls(torch),
        }

    def forward_began(self, module: Any) -> int:
        """Returns the number of its class, for the mark of its end."""
        self.inside[_get_ident()] = "forward"
        if self.steps.is_new:
            self.compilations.look()
            self.windows.at_boundary()
            self.windows.know_root(module)
        flags = GRAD_ENABLED if self._is_grad_enabled() else 0
        if module.training:
            flags |= TRAINING_MODE
        cls = type(module)
        number = self._classes[flags].get(cls) or self._know_class(module, cls, flags)
        self.mark(_FORWARD_BEGAN, number, flags)
        if cls is self._ddp_class and (self._exchange is None or not self._exchange.is_of(module)):
            self._exchange = self._exchange_of(module)
        return number

    def _exchange_of(self, module: Any) -> GradientExchange | None:
        try:
            return GradientExchange(self.recorder, module)
        except Exception as error:
            self._ddp_class = None  # it is not checked again
            self.recorder.unseen.add(FRAMEWORK, "the all-reduce of DDP", error)
            return None

    def _know_class(self, module: Any, cls: type, flags: int) -> int:
        number = self.journal.string("module", cls.__qualname__)
        looks = self._looks[(cls, flags)]
        if self.metrics is not None:
            self.metrics.begin()
        if self.recorder.options.parallel_strategy and looks in (0, *_UNTRAINED_LOOKS):
            self.parallel.see(sys.modules["torch"], module)
        details = {"module": cls.__qualname__, "gradients": bool(flags & GRAD_ENABLED),
                   "training": bool(flags & TRAINING_MODE)}  # fmt: skip
        if flags == GRAD_ENABLED:
            details.update(self._is_taught(module))
        self.recorder.places.see("model call", sys._getframe(1), **details)
        if flags & GRAD_ENABLED and not _is_data_worker():
            self.recorder.watch()
        if not self._looks_on((cls, flags)):
            self._classes[flags][cls] = number
        if flags == GRAD_ENABLED | TRAINING_MODE:
            self._models.setdefault(cls, set()).add(id(module))
            self._look_for_padding(self._looks[(cls, flags)])
            if self._trained:
                self._look_for_untrained(module, self._looks[(cls, flags)])
        return number

    def _look_for_padding(self, look: int) -> None:
        if look in _PADDING_LOOKS:
            call = sys._getframe(3)  # of the module, around forward_began
            arguments = call.f_locals
            found = padded_inputs(arguments.get("args", ()), arguments.get("kwargs", {}))
            if found:
                self.recorder.places.see(PADDED_INPUTS, call, call=look, inputs=found)

    def _look_for_untrained(self, module: Any, look: int) -> None:
        if look in _UNTRAINED_LOOKS:
            found = untrained(module, self._trained) or {"tensors": 0}
            self.recorder.places.see(UNTRAINED_PARAMETERS, sys._getframe(2), **found)
            is_only_one = len(self._models[type(module)]) == 1  # operators distinguish classes
            if is_only_one and (discarded := self.discarded.of(module)):
                self.recorder.places.see(
                    DISCARDED_GRADIENTS, sys._getframe(2), module=type(module).__name__, **discarded
                )

    def _is_taught(self, module: Any) -> dict[str, bool]:
        """For a module in evaluation mode: whether its gradients are used, as far as it
        is known.
        """
        wanting = [parameter for parameter in module.parameters() if parameter.requires_grad]
        if not wanting:
            return {"frozen": True}
        if self._trained and not any(id(parameter) in self._trained for parameter in wanting):
            return {"learns": False}
        return {}

    def _look_anew(self) -> None:
        self._looks.clear()
        for what in ("backward", "zero_grad"):
            self.look[what] = functools.partial(self._look, what)

    def _look(self, what: str) -> None:
        self.recorder.places.see(what, sys._getframe(1))
        if not self._looks_on(what):
            self.look[what] = _look_no_more

    def _looks_on(self, what: Any) -> bool:
        self._looks[what] += 1
        return self._looks[what] < _LOOKS

    def forward_ended(self, module: Any, number: int) -> None:
        if self.inside.pop(_get_ident(), None) is None:
            return
        self.mark(_FORWARD_ENDED, number, 1)
        if self._exchange is not None and self._exchange.is_of(module):
            self._exchange.mark_last()

    # What the wrappers know by number

    def know_loader(self, iterator: Any) -> Known:
        self.recorder.watch()
        return self.data.know(iterator)

    def know_optimizer(self, optimizer: Any) -> int:
        self._optimizer_count += 1
        text = f"{type(optimizer).__name__} #{self._optimizer_count}"
        self.recorder.places.see("update", sys._getframe(1), optimizer=type(optimizer).__name__)
        number = self.journal.string("optimizer", text)
        self.optimizers.keep(optimizer, number)
        for group in optimizer.param_groups:
            self._trained.update(map(id, group["params"]))
        return number


def _look_no_more() -> None:
    """Replaces, at every step, a function that has done its work: an empty call is cheaper than a
    check.
    """


def _losses(torch: Any) -> frozenset[type]:
    home = torch.nn.modules.loss
    return frozenset(getattr(home, name) for name in home.__all__)


def _is_data_worker() -> bool:
    from torch.utils.data import get_worker_info

    return get_worker_info() is not None


def _intra_op_threads() -> int:
    from torch import get_num_threads

    return int(get_num_threads())


def _any_optimizer() -> bool:
    """Whether an optimizer was ever created: its class then has torch's own hook."""
    from torch.optim import Optimizer

    classes = list(Optimizer.__subclasses__())
    while classes:
        cls = classes.pop()
        if getattr(cls.step, "hooked", False):
            return True
        classes.extend(cls.__subclasses__())
    return False


def _devices(torch: Any) -> list[str]:
    devices = ["cpu"]
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        devices += [f"cuda:{i} {torch.cuda.get_device_name(i)}"
                    for i in range(torch.cuda.device_count())]  # fmt: skip
    return devices
