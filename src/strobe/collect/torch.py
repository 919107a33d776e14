"""Marks from a PyTorch training that knows nothing of us: data, forward, backward, update.

Each hook stands where the framework calls through Python anyway, so that results, tracebacks and
compiled graphs stay as they are. The windows of full recording are torch_windows.py.
"""

import functools
import threading
import weakref
from collections.abc import Callable
from time import monotonic_ns
from typing import Any

from strobe.collect.recorder import Recorder
from strobe.collect.steps import StepCount
from strobe.collect.torch_calls import CallCode
from strobe.collect.torch_communication import GradientExchange, hook_waits
from strobe.collect.torch_windows import Windows
from strobe.model.journal import GRAD_ENABLED, TRAINING_MODE, Mark

FRAMEWORK = "torch"
_OLDEST = (2, 4)
_get_ident = threading.get_ident

# As plain numbers: looking up a member of an enum costs as much as writing the mark.
_BACKWARD_BEGAN = int(Mark.BACKWARD_BEGAN)
_BACKWARD_ENDED = int(Mark.BACKWARD_ENDED)
_DATA_ASKED = int(Mark.DATA_ASKED)
_DATA_CAME = int(Mark.DATA_CAME)
_FORWARD_BEGAN = int(Mark.FORWARD_BEGAN)
_FORWARD_ENDED = int(Mark.FORWARD_ENDED)
_UPDATE_BEGAN = int(Mark.UPDATE_BEGAN)
_UPDATE_ENDED = int(Mark.UPDATE_ENDED)
_ZERO_GRAD = int(Mark.ZERO_GRAD)


class TorchHooks:
    """All that we hang into torch; `uninstall` takes every piece back."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.steps = StepCount()
        self.windows = Windows(recorder, self.steps)
        # Threads inside an outermost module, a backward pass or a data loader: modules they call
        # there are parts of it, not another forward pass.
        self.inside: dict[int, str] = {}
        self._undo: list[Callable[[], None]] = []
        # By id, with a weak reference that tells an optimizer from a later one at its address.
        self._optimizers: dict[int, tuple[Any, int]] = {}
        self._classes: dict[type, int] = {}
        self._updating: dict[int, list[int]] = {}  # by thread: updates may nest
        self._optimizer_count = 0
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
        self._is_compiling = torch.compiler.is_compiling
        self._ddp_class = torch.nn.parallel.DistributedDataParallel
        self._undo.append(self.windows.give_way(torch))
        self._hook_modules(torch)
        self._hook_data(torch)
        self._hook_backward(torch)
        self._hook_optimizers(torch)
        self._undo.append(hook_waits(self.recorder, torch))

    def uninstall(self) -> None:
        while self._undo:
            self._undo.pop()()

    def after_fork_in_child(self) -> None:
        self.inside.clear()
        self._optimizers.clear()  # their numbers are those of the parent's journal
        self._classes.clear()
        self._updating.clear()
        self.steps = StepCount()
        self.windows.after_fork_in_child(self.steps)

    # forward

    def _hook_modules(self, torch: Any) -> None:
        hooks = {
            "_strobe_is_compiling": torch.compiler.is_compiling,
            "_strobe_get_ident": _get_ident,
            "_strobe_inside": self.inside,
            # A loss follows the forward pass and is part of it; it needs no mark of its own.
            "_strobe_unmarked": _losses(torch),
            "_strobe_began": self.recorder.guarded(self.forward_began),
            "_strobe_ended": self.recorder.guarded(self.forward_ended),
            "_strobe_entered": self.recorder.guarded(self.module_entered),
            "_strobe_left": self.recorder.guarded(self.module_left),
        }
        try:
            calls = CallCode(torch.nn.Module._wrapped_call_impl, hooks)
        except (OSError, ValueError, AttributeError) as error:
            self.recorder.problem(
                "torch", f"forward passes are not seen: this torch calls modules otherwise: {error}"
            )
            return
        self.windows.calls = calls
        calls.use(calls.light)
        self._undo.append(lambda: calls.use(calls.original))

    def forward_began(self, module: Any) -> None:
        self.inside[_get_ident()] = "forward"
        if self.steps.done != self.windows.seen_done:
            self.windows.at_boundary()
            self.windows.know_root(module)
        flags = GRAD_ENABLED if self._is_grad_enabled() else 0
        if module.training:
            flags |= TRAINING_MODE
        cls = type(module)
        ref = self._classes.get(cls) or self._class(cls)
        self.recorder.mark(_FORWARD_BEGAN, ref, flags)
        if cls is self._ddp_class and (self._exchange is None or not self._exchange.is_of(module)):
            self._exchange = GradientExchange(self.recorder, module)

    def _class(self, cls: type) -> int:
        ref = self._classes[cls] = self.recorder.journal.string("module", cls.__qualname__)
        return ref

    def forward_ended(self, module: Any) -> None:
        if self.inside.pop(_get_ident(), None) is None:
            return
        cls = type(module)
        self.recorder.mark(_FORWARD_ENDED, self._classes.get(cls) or self._class(cls), 1)
        if self._exchange is not None and self._exchange.is_of(module):
            self._exchange.mark_last()

    def module_entered(self, module: Any) -> Any:
        """Full recording: the outermost module is marked as ever, and each has its span."""
        is_outermost = _get_ident() not in self.inside
        if is_outermost:
            self.forward_began(module)
        return is_outermost, self.windows.enter_module(module)

    def module_left(self, module: Any, token: Any) -> None:
        if token is None:
            return
        is_outermost, span = token
        if span is not None:
            spans, entered = span
            spans.leave(entered)
        if is_outermost:
            self.forward_ended(module)

    # data

    def _hook_data(self, torch: Any) -> None:
        from torch.utils.data.dataloader import _BaseDataLoaderIter

        original = _BaseDataLoaderIter.__next__
        asked = self.recorder.guarded(self.data_asked)
        came = self.recorder.guarded(self.data_came)

        def __next__(self: Any) -> Any:
            before = asked(self)
            outcome = -1
            try:
                batch = original(self)
                outcome = 1
                return batch
            except StopIteration:
                outcome = 0
                raise
            finally:
                came(self, before, outcome)

        _BaseDataLoaderIter.__next__ = __next__
        # `next = __next__` of older releases would keep the original; it is not used by loops.
        self._undo.append(lambda: setattr(_BaseDataLoaderIter, "__next__", original))

    def data_asked(self, iterator: Any) -> str | None:
        if self.steps.done != self.windows.seen_done:
            self.windows.at_boundary()
        thread = _get_ident()
        before = self.inside.get(thread)
        self.inside[thread] = "data"
        recorder = self.recorder
        recorder.mark(_DATA_ASKED, self._loader(iterator), _ready_batches(iterator))
        return before

    def data_came(self, iterator: Any, before: str | None, outcome: int) -> None:
        if before is None:
            self.inside.pop(_get_ident(), None)
        else:
            self.inside[_get_ident()] = before
        self.recorder.mark(_DATA_CAME, self._loader(iterator), outcome)

    def _loader(self, iterator: Any) -> int:
        journal = self.recorder.journal
        of_journal, known = getattr(iterator, "_strobe_loader", (None, 0))
        if of_journal is not journal:  # new, or brought along from before a fork
            dataset = type(getattr(iterator, "_dataset", None)).__name__
            workers = getattr(iterator, "_num_workers", 0)
            text = f"{dataset}, {workers} workers"
            known = journal.string("loader", text)
            iterator._strobe_loader = (journal, known)
        return int(known)

    # backward

    def _hook_backward(self, torch: Any) -> None:
        """tensor.backward() and the transforms of torch.func come here too."""
        for name, kind in (("backward", 0), ("grad", 1)):
            self._hook_backward_function(torch.autograd, name, kind)

    def _hook_backward_function(self, owner: Any, name: str, kind: int) -> None:
        original = getattr(owner, name)
        began = self.recorder.guarded(self.backward_began)
        ended = self.recorder.guarded(self.backward_ended)
        inside, is_compiling = self.inside, self._is_compiling

        @functools.wraps(original)
        def backward(*args: Any, **kwargs: Any) -> Any:
            if is_compiling() or inside.get(_get_ident()) == "backward":
                return original(*args, **kwargs)
            before = began(kind)
            try:
                return original(*args, **kwargs)
            finally:
                ended(before)

        setattr(owner, name, backward)
        self._undo.append(lambda: setattr(owner, name, original))

    def backward_began(self, kind: int) -> str | None:
        recorder = self.recorder
        if recorder.rank is None:
            if _is_data_worker():
                recorder.is_off = True
                return None
            self.steps.has_optimizer = _any_optimizer()
            recorder.begin_training()
        thread = _get_ident()
        before = self.inside.get(thread)
        self.inside[thread] = "backward"
        recorder.mark(_BACKWARD_BEGAN, 0, kind)
        return before

    def backward_ended(self, before: str | None) -> None:
        if before is None:
            self.inside.pop(_get_ident(), None)
        else:
            self.inside[_get_ident()] = before
        self.recorder.mark(_BACKWARD_ENDED)
        self.steps.went_backward()

    # update

    def _hook_optimizers(self, torch: Any) -> None:
        from torch.optim import optimizer as optim

        is_compiling = torch.compiler.is_compiling
        began = self.recorder.guarded(self.update_began)

        def update_begins(optimizer: Any, args: Any, kwargs: Any) -> None:
            if not is_compiling():  # inside a compiled update there is nothing to mark
                began(optimizer)

        self._undo.append(optim.register_optimizer_step_pre_hook(update_begins).remove)
        self._hook_update_exit(torch.autograd.profiler.record_function)
        for owner in (optim.Optimizer, torch.nn.Module):
            self._hook_zero_grad(owner, is_compiling)

    def _hook_update_exit(self, record_function: Any) -> None:
        """torch's own span around an update ends after its last hook, and takes a while to."""
        original = record_function.__exit__
        ended = self.recorder.guarded(self.update_ended)
        updating = self._updating

        def __exit__(self: Any, kind: Any, error: Any, traceback: Any) -> Any:
            result = original(self, kind, error, traceback)
            if updating and self.name.startswith("Optimizer.step#"):
                ended(kind is None)
            return result

        record_function.__exit__ = __exit__
        self._undo.append(lambda: setattr(record_function, "__exit__", original))

    def update_began(self, optimizer: Any) -> None:
        if self.recorder.rank is None:
            self.recorder.begin_training()
        number = self._optimizer(optimizer)
        self._updating.setdefault(_get_ident(), []).append(number)
        self.recorder.mark(_UPDATE_BEGAN, number)

    def update_ended(self, is_whole: bool) -> None:
        """Of the innermost update on this thread; one that raised was none."""
        thread = _get_ident()
        numbers = self._updating.get(thread)
        if not numbers:
            return
        number = numbers.pop()
        if not numbers:
            del self._updating[thread]
        if is_whole:
            self.recorder.mark(_UPDATE_ENDED, number)
            self.steps.updated(number)

    def _optimizer(self, optimizer: Any) -> int:
        known = self._optimizers.get(id(optimizer))
        if known is not None and known[0]() is optimizer:
            return known[1]
        self._optimizer_count += 1
        text = f"{type(optimizer).__name__} #{self._optimizer_count}"
        number = self.recorder.journal.string("optimizer", text)
        self._optimizers[id(optimizer)] = (weakref.ref(optimizer), number)
        return number

    def _hook_zero_grad(self, owner: Any, is_compiling: Callable[[], bool]) -> None:
        original = owner.zero_grad
        cleared = self.recorder.guarded(self.gradients_cleared)

        @functools.wraps(original)
        def zero_grad(self: Any, *args: Any, **kwargs: Any) -> Any:
            if is_compiling():
                return original(self, *args, **kwargs)
            began_ns = monotonic_ns()
            try:
                return original(self, *args, **kwargs)
            finally:
                cleared(began_ns)

        owner.zero_grad = zero_grad
        self._undo.append(lambda: setattr(owner, "zero_grad", original))

    def gradients_cleared(self, began_ns: int) -> None:
        self.recorder.mark_at(began_ns, _ZERO_GRAD, 0, monotonic_ns() - began_ns)


def _losses(torch: Any) -> frozenset[type]:
    home = torch.nn.modules.loss
    return frozenset(getattr(home, name) for name in home.__all__)


def _ready_batches(iterator: Any) -> int:
    queue = getattr(iterator, "_data_queue", None)
    if queue is None:
        return -1
    try:
        return int(queue.qsize())
    except (NotImplementedError, OSError):  # macOS has no qsize
        return -1


def _is_data_worker() -> bool:
    from torch.utils.data import get_worker_info

    return get_worker_info() is not None


def _any_optimizer() -> bool:
    """Whether an optimizer was ever made: its class then carries torch's own hook."""
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
