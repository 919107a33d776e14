"""Marks from a PyTorch training that knows nothing of us: data, forward, backward, update.

Each hook stands where the framework calls through Python anyway, so that results, tracebacks and
compiled graphs stay as they are. The windows of full recording are torch_windows.py.
"""

import functools
import threading
import time
import weakref
from collections.abc import Callable
from time import monotonic_ns
from typing import Any

from strobe.collect.recorder import Recorder
from strobe.collect.steps import StepCount
from strobe.collect.torch_calls import CallCode
from strobe.collect.torch_windows import Windows
from strobe.model.journal import GRAD_ENABLED, TRAINING_MODE, Mark

FRAMEWORK = "torch"
_OLDEST = (2, 4)
_get_ident = threading.get_ident


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
        self._optimizers: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._ending: dict[int, int] = {}
        self._ddp: Any = None

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
        self._hook_modules(torch)
        self._hook_data(torch)
        self._hook_backward(torch)
        self._hook_optimizers(torch)
        self._hook_collectives(torch)

    def uninstall(self) -> None:
        while self._undo:
            self._undo.pop()()

    # forward

    def _hook_modules(self, torch: Any) -> None:
        hooks = {
            "_strobe_is_compiling": torch.compiler.is_compiling,
            "_strobe_get_ident": _get_ident,
            "_strobe_inside": self.inside,
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
        self.windows.at_boundary()
        recorder = self.recorder
        flags = GRAD_ENABLED if self._is_grad_enabled() else 0
        if module.training:
            flags |= TRAINING_MODE
        name = type(module).__qualname__
        recorder.mark(Mark.FORWARD_BEGAN, recorder.journal.string("module", name), flags)
        if name == "DistributedDataParallel":
            self._know_ddp(module)

    def forward_ended(self, module: Any) -> None:
        recorder = self.recorder
        if self.inside.pop(_get_ident(), None) is None:
            return
        name = type(module).__qualname__
        recorder.mark(Mark.FORWARD_ENDED, recorder.journal.string("module", name), 1)
        if self._ddp is not None and name == "DistributedDataParallel":
            self._mark_all_reduce()

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
            span.__exit__(None, None, None)
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
        self.windows.at_boundary()
        thread = _get_ident()
        before = self.inside.get(thread)
        self.inside[thread] = "data"
        recorder = self.recorder
        recorder.mark(Mark.DATA_ASKED, self._loader(iterator), _ready_batches(iterator))
        return before

    def data_came(self, iterator: Any, before: str | None, outcome: int) -> None:
        if before is None:
            self.inside.pop(_get_ident(), None)
        else:
            self.inside[_get_ident()] = before
        self.recorder.mark(Mark.DATA_CAME, self._loader(iterator), outcome)

    def _loader(self, iterator: Any) -> int:
        known = getattr(iterator, "_strobe_loader", None)
        if known is None:
            dataset = type(getattr(iterator, "_dataset", None)).__name__
            workers = getattr(iterator, "_num_workers", 0)
            text = f"{dataset}, {workers} workers"
            known = iterator._strobe_loader = self.recorder.journal.string("loader", text)
        return int(known)

    # backward

    def _hook_backward(self, torch: Any) -> None:
        """Where users call it, and below that, where code of torch's own may call it directly."""
        autograd = torch.autograd
        for owner, name, kind in (
            (autograd, "backward", 0),
            (autograd, "grad", 1),
            (autograd, "_engine_run_backward", None),
            (autograd.graph, "_engine_run_backward", None),
        ):
            self._hook_backward_function(owner, name, kind)

    def _hook_backward_function(self, owner: Any, name: str, kind: int | None) -> None:
        original = getattr(owner, name)
        began = self.recorder.guarded(self.backward_began)
        ended = self.recorder.guarded(self.backward_ended)
        inside, is_compiling = self.inside, self._is_compiling

        @functools.wraps(original)
        def backward(*args: Any, **kwargs: Any) -> Any:
            if is_compiling() or inside.get(_get_ident()) == "backward":
                return original(*args, **kwargs)
            accumulates = kwargs.get("accumulate_grad", True)
            before = began(kind if kind is not None else int(not accumulates))
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
        recorder.mark(Mark.BACKWARD_BEGAN, 0, kind)
        return before

    def backward_ended(self, before: str | None) -> None:
        if before is None:
            self.inside.pop(_get_ident(), None)
        else:
            self.inside[_get_ident()] = before
        self.recorder.mark(Mark.BACKWARD_ENDED)
        self.steps.went_backward()

    # update

    def _hook_optimizers(self, torch: Any) -> None:
        from torch.optim import optimizer as optim

        is_compiling = torch.compiler.is_compiling
        began = self.recorder.guarded(self.update_began)
        ended = self.recorder.guarded(self.update_ended)

        def update_begins(optimizer: Any, args: Any, kwargs: Any) -> None:
            if not is_compiling():  # inside a compiled update there is nothing to mark
                began(optimizer)

        def update_ends(optimizer: Any, args: Any, kwargs: Any) -> None:
            if not is_compiling():
                ended(optimizer)

        handles = (
            optim.register_optimizer_step_pre_hook(update_begins),
            optim.register_optimizer_step_post_hook(update_ends),
        )
        self._undo.extend(handle.remove for handle in handles)
        self._hook_update_exit(torch.autograd.profiler.record_function)
        for owner in (optim.Optimizer, torch.nn.Module):
            self._hook_zero_grad(owner, is_compiling)

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
        self.recorder.mark_at(began_ns, Mark.ZERO_GRAD, 0, monotonic_ns() - began_ns)

    def update_began(self, optimizer: Any) -> None:
        if self.recorder.rank is None:
            self.recorder.begin_training()
        self.recorder.mark(Mark.UPDATE_BEGAN, self._optimizer(optimizer))

    def update_ended(self, optimizer: Any) -> None:
        """All but torch's own span around the update, which takes longer to close than a mark."""
        self._ending[_get_ident()] = self._optimizer(optimizer)

    def _hook_update_exit(self, record_function: Any) -> None:
        original = record_function.__exit__
        left = self.recorder.guarded(self.update_left)
        ending = self._ending

        def __exit__(self: Any, *error: Any) -> Any:
            result = original(self, *error)
            if ending and self.name.startswith("Optimizer.step#"):
                left()
            return result

        record_function.__exit__ = __exit__
        self._undo.append(lambda: setattr(record_function, "__exit__", original))

    def update_left(self) -> None:
        number = self._ending.pop(_get_ident(), None)
        if number is not None:
            self.recorder.mark(Mark.UPDATE_ENDED, number)
            self.steps.updated(number)

    def _optimizer(self, optimizer: Any) -> int:
        number = self._optimizers.get(optimizer)
        if number is None:
            text = f"{type(optimizer).__name__} #{len(self._optimizers) + 1}"
            number = self.recorder.journal.string("optimizer", text)
            self._optimizers[optimizer] = number
        return number

    # communication

    def _hook_collectives(self, torch: Any) -> None:
        if not torch.distributed.is_available():
            return
        from torch._C._distributed_c10d import Work

        original = Work.wait
        began = self.recorder.guarded(self.wait_began)
        ended = self.recorder.guarded(self.wait_ended)

        def wait(self: Any, *args: Any, **kwargs: Any) -> Any:
            began()
            try:
                return original(self, *args, **kwargs)
            finally:
                ended()

        setattr(Work, "wait", wait)  # noqa: B010 - a class of C++, which mypy sees as closed
        self._undo.append(lambda: setattr(Work, "wait", original))

    def wait_began(self) -> None:
        recorder = self.recorder
        recorder.mark(Mark.COLLECTIVE_BEGAN, recorder.journal.string("collective", "wait"))

    def wait_ended(self) -> None:
        recorder = self.recorder
        recorder.mark(Mark.COLLECTIVE_ENDED, recorder.journal.string("collective", "wait"))

    def _know_ddp(self, module: Any) -> None:
        if self._ddp is not None and self._ddp[0]() is module:
            return
        self._ddp = (weakref.ref(module), {"iteration": -1})
        # DDP times its own buckets on some iterations only; ask for every one.
        module._set_ddp_runtime_logging_sample_rate(1)

    def _mark_all_reduce(self) -> None:
        """What DDP says of the iteration before: all-reduce that outlasted the backward pass."""
        reference, last = self._ddp
        module = reference()
        if module is None:
            self._ddp = None
            return
        said = module._get_ddp_logging_data()
        computed, communicated = (
            said.get("backward_compute_time_end", 0), said.get("backward_comm_time_end", 0)
        )  # fmt: skip
        if communicated > computed > 0 and last["iteration"] != communicated:
            last["iteration"] = communicated
            to_monotonic = time.monotonic_ns() - time.time_ns()
            self.recorder.mark_at(
                computed + to_monotonic, Mark.ALL_REDUCE, 0, communicated - computed
            )


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
