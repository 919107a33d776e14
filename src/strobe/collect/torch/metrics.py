"""The loss, learning rate and gradient norm of an unmodified PyTorch training.

The loss is the root of a backward pass; the learning rate is that of each update; the gradient norm
is what the script's own clipping computes, or else is computed before updates as often as it costs
next to nothing. What the script would have to wait for is not read here.
"""

import functools
import sys
import threading
import weakref
from collections.abc import Callable
from time import monotonic_ns
from types import FrameType
from typing import TYPE_CHECKING, Any

from strobe.collect.metrics.batch_size import batch_size
from strobe.collect.metrics.call_names import CallNames
from strobe.collect.metrics.numbers import Later
from strobe.collect.torch.gradient_norms import GradientNorms
from strobe.collect.torch.scalars import ScalarReader
from strobe.collect.until_deleted import UntilDeleted
from strobe.model.automatic_metrics import (
    BATCH_SIZE_COUNTER,
    GRADIENT_NORM,
    LEARNING_RATE,
    LOSS,
    Series,
)
from strobe.model.journal import Mark
from strobe.model.metric_tables import AUTOMATIC

if TYPE_CHECKING:
    from strobe.collect.torch.hooks import TorchHooks

Undo = Callable[[], None]
_get_ident = threading.get_ident
_GRAD = 1  # the kind of a backward pass by torch.autograd.grad
_COUNTER = int(Mark.COUNTER)


class _Optimizer:
    """Where the learning rates of an optimizer go."""

    __slots__ = ("is_one", "number", "tags")

    def __init__(self, number: int, groups: list[Any]) -> None:
        self.number = number
        names = [str(group.get("name", "")).replace("\t", " ") for group in groups]
        self.tags = [
            Series(LEARNING_RATE, name, optimizer=number, group=group).tag
            for group, name in enumerate(names)
        ]
        self.is_one = len(groups) == 1


class TorchMetrics:
    """Hooks call this; `install` returns what removes its own."""

    def __init__(self, hooks: "TorchHooks") -> None:
        self._hooks = hooks
        self.recorder = hooks.recorder
        self.names = CallNames()
        # Losses before a gradient scaler multiplied them, by what the backward pass begins with.
        self._unscaled = UntilDeleted[float | Later | None]()
        # By thread: the loss that the script gave to a library, which divides it.
        self._given: dict[int, tuple[Any, float | Later | None]] = {}
        self._optimizers = UntilDeleted[_Optimizer]()
        # By thread: the learning rates of an update that calls a closure, until it does.
        self._rates: dict[int, dict[str, Any]] = {}
        self._slots: list[tuple[Any, str]] = []
        self._libraries: dict[str, Callable[[Any], Undo]] = {
            "accelerate.accelerator": self._wrap_accelerate,
            "lightning.pytorch.loops.optimization.automatic": self._wrap_lightning,
            "pytorch_lightning.loops.optimization.automatic": self._wrap_lightning,
        }
        self._undo: list[Undo] = []
        self._batch_sizes: dict[int, int] = {}  # of the last batch, by number of the loader

    def install(self, torch: Any) -> Undo:
        self._torch = torch
        self._parameter = torch.nn.Parameter
        self._tensor_backward = torch.Tensor.backward.__code__
        self.reader = ScalarReader(torch)
        self._read = self.reader.read
        self.norms = GradientNorms(self._hooks, torch, self.reader)
        self._undo += [self._wrap_scale(torch), *self._wrap_norms(torch)]
        if torch.cuda.is_available():
            self._undo.append(self.reader.watch_captures())
        return self._uninstall

    def _uninstall(self) -> None:
        while self._undo:
            self._undo.pop()()

    def begin(self) -> None:
        """The process trains: libraries that it trains with are imported by now."""
        reader = self.reader
        self.recorder.metrics.is_paused = lambda: reader.captures > 0
        for name, wrap in list(self._libraries.items()):
            module = sys.modules.get(name)
            if module is not None:
                del self._libraries[name]
                self._undo += self.recorder.unseen.tried(
                    name,
                    "the loss before it is divided",
                    lambda w=wrap, m=module: w(m),  # type: ignore[misc]
                )

    def after_fork_in_child(self) -> None:
        self._given.clear()
        self._rates.clear()
        self._batch_sizes.clear()
        self._optimizers.clear()
        self._slots.clear()
        self.norms.after_fork_in_child()

    def batch_came(self, loader: int, batch: Any) -> None:
        """None at the end of the data."""
        if batch is None:
            return
        size = batch_size(batch)
        if size != self._batch_sizes.get(loader, 0):
            self._batch_sizes[loader] = size
            name = self._hooks.journal.string("counter", BATCH_SIZE_COUNTER.format(loader))
            self._hooks.mark(_COUNTER, name, size)

    # Loss

    def backward(self, args: Any, kwargs: Any, kind: int, frame: FrameType) -> None:
        """A backward pass is about to begin, called from this frame."""
        roots = args[0] if args else kwargs.get("outputs" if kind else "tensors")
        if self._rates:
            self.recorder.metrics.scalars(self._rates.pop(_get_ident(), {}), None, AUTOMATIC)
        if kind == _GRAD and not self._is_of_training(args, kwargs):
            return
        if frame.f_code is self._tensor_backward:
            frame = frame.f_back or frame
        if roots.__class__ is tuple or roots.__class__ is list:
            for number, root in enumerate(roots):
                self._lose(root, frame, number if len(roots) > 1 else -1)
        elif roots is not None:
            self._lose(roots, frame, -1)

    def _lose(self, root: Any, frame: FrameType, element: int) -> None:
        value: float | Later | None
        if self._given:
            value = self._given_for(root)
        elif self._unscaled and id(root) in self._unscaled:
            value = self._unscaled[id(root)]
        else:
            value = self._read(root)
        if value is None:
            return
        tag = self.names.tag(LOSS, frame, element)
        self.recorder.metrics.scalars({tag: value}, None, AUTOMATIC)

    def _given_for(self, root: Any) -> float | Later | None:
        _, value = self._given.get(_get_ident(), (None, None))
        return self._read(root) if value is None else value

    def _is_of_training(self, args: Any, kwargs: Any) -> bool:
        """Whether torch.autograd.grad derives by parameters; by inputs of the model, with a graph
        of the derivative, it computes a part of the loss.
        """
        inputs = args[1] if len(args) > 1 else kwargs.get("inputs")
        creates_graph = args[4] if len(args) > 4 else kwargs.get("create_graph")
        if not creates_graph:
            return True
        inputs = inputs if isinstance(inputs, (list, tuple)) else (inputs,)
        is_wrapped = self._torch._C._functorch.is_functorch_wrapped_tensor
        return any(isinstance(one, self._parameter) or is_wrapped(one) for one in inputs)

    def _wrap_scale(self, torch: Any) -> Undo:
        cls = torch.amp.grad_scaler.GradScaler
        original = cls.scale
        is_traced = torch.compiler.is_dynamo_compiling

        def scale(scaler: Any, outputs: Any) -> Any:
            scaled = original(scaler, outputs)
            if scaled is outputs or is_traced():
                return scaled
            try:
                self._scaled(outputs, scaled)
            except Exception as error:
                self.recorder.broke("scale", error)
            return scaled

        return _replaced(cls, "scale", original, scale)

    def _scaled(self, outputs: Any, scaled: Any) -> None:
        if isinstance(outputs, self._torch.Tensor):
            outputs, scaled = (outputs,), (scaled,)
        if not isinstance(outputs, (list, tuple)):
            return
        thread = _get_ident()
        for before, after in zip(outputs, scaled, strict=False):
            _, given = self._given.get(thread, (None, None))
            self._unscaled.keep(after, self._read(before) if given is None else given)

    def _wrap_accelerate(self, module: Any) -> Undo:
        """It divides the loss by the number of batches that an update accumulates."""
        cls = module.Accelerator
        original = cls.backward

        def backward(accelerator: Any, loss: Any, **kwargs: Any) -> Any:
            thread = _get_ident()
            try:
                self._given[thread] = loss, self._read(loss)
            except Exception as error:
                self.recorder.broke("accelerate", error)
            try:
                return original(accelerator, loss, **kwargs)
            finally:
                self._given.pop(thread, None)

        return _replaced(cls, "backward", original, backward)

    def _wrap_lightning(self, module: Any) -> Undo:
        """It divides what training_step returns in the same way."""
        cls = module.ClosureResult
        original = cls.__dict__["from_training_step_output"]
        inner = original.__func__

        def from_training_step_output(cls: Any, training_step_output: Any, *args: Any,
                                      **kwargs: Any) -> Any:  # fmt: skip
            result = inner(cls, training_step_output, *args, **kwargs)
            try:
                loss = training_step_output
                if isinstance(loss, dict):
                    loss = loss.get("loss")
                if result.closure_loss is not None and result.closure_loss is not loss:
                    self._unscaled.keep(result.closure_loss, self._read(loss))
            except Exception as error:
                self.recorder.broke("lightning", error)
            return result

        replacement = classmethod(from_training_step_output)
        return _replaced(cls, "from_training_step_output", original, replacement)

    # Learning rate

    def updating(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """An optimizer is about to update; args are those of its step."""
        groups = optimizer.param_groups
        known = self._optimizers.get(id(optimizer))
        if known is None or len(known.tags) != len(groups):
            known = self._know(optimizer)
        has_closure = len(args) > 1 and args[1] is not None or kwargs.get("closure") is not None
        if known.is_one:
            rate = groups[0].get("lr")
            rates = {known.tags[0]: rate if rate.__class__ is float else self._rate(rate)}
        else:
            rates = {tag: self._rate(group.get("lr"))
                     for tag, group in zip(known.tags, groups, strict=True)}  # fmt: skip
        if None in rates.values():
            rates = {tag: rate for tag, rate in rates.items() if rate is not None}
        if has_closure:  # the step's forward pass is still to come
            self._rates[_get_ident()] = rates
            return
        self.recorder.metrics.scalars(rates, None, AUTOMATIC)
        norms = self.norms
        if monotonic_ns() >= norms.due_ns:
            norms.measure(optimizer, known.number, len(self._slots))

    def _rate(self, rate: Any) -> Any:
        if isinstance(rate, self._torch.Tensor):
            return self._read(rate)
        return rate if isinstance(rate, (int, float)) else None

    def _know(self, optimizer: Any) -> _Optimizer:
        """An optimizer that replaces a deleted one of its kind continues its values."""
        kind = f"{type(optimizer).__name__} {len(optimizer.param_groups)}"
        known = self._optimizers.get(id(optimizer))
        number = known.number if known else None
        for place, (before, its_kind) in enumerate(self._slots):
            if number is None and before() is None and its_kind == kind:
                number = place
        if number is None:
            number = len(self._slots)
            self._slots.append((None, kind))
        self._slots[number] = weakref.ref(optimizer), kind
        known = _Optimizer(number, optimizer.param_groups)
        self._optimizers.keep(optimizer, known)
        return known

    # Gradient norm, where the script computes it

    def _wrap_norms(self, torch: Any) -> list[Undo]:
        home, public = torch.nn.utils.clip_grad, torch.nn.utils
        if hasattr(home, "_get_total_norm"):  # clip_grad_norm_ calls it
            owners = [(home, "_get_total_norm"), (public, "get_total_norm")]
        else:  # before torch 2.6
            owners = [(home, "clip_grad_norm_"), (public, "clip_grad_norm_")]
        return [self._wrap_norm(torch, owner, name) for owner, name in owners
                if hasattr(owner, name)]  # fmt: skip

    def _wrap_norm(self, torch: Any, owner: Any, name: str) -> Undo:
        original = getattr(owner, name)
        is_traced = torch.compiler.is_dynamo_compiling

        @functools.wraps(original)
        def total_norm(*args: Any, **kwargs: Any) -> Any:
            norm = original(*args, **kwargs)
            if is_traced() or not self.recorder.is_recording:
                return norm
            try:
                value = self._read(norm)
                if value is not None:
                    self.norms.is_known = True
                    tag = self.names.tag(GRADIENT_NORM, sys._getframe(1))
                    self.recorder.metrics.scalars({tag: value}, None, AUTOMATIC)
            except Exception as error:
                self.recorder.broke("gradient_norm", error)
            return norm

        return _replaced(owner, name, original, total_norm)


def _replaced(owner: Any, name: str, original: Any, replacement: Any) -> Undo:
    setattr(owner, name, replacement)
    return lambda: setattr(owner, name, original)
