"""Wrappers of the functions through which torch calls us at every step.

After a model has run, nothing of ours is left in the processor's caches: the cost of a hook is to
fetch every function and object that it touches, about five times of what it takes in a tight loop.
So a wrapper does its work in its own frame and catches our errors itself, which costs nothing if
there are none. (After an error in the first half of a wrapper, the second may miss a name that the
first would have set: one more error, which is not reported.)
"""

import functools
import sys
import threading
from collections.abc import Callable
from time import monotonic_ns
from typing import TYPE_CHECKING, Any

from strobe.model.journal import Mark

if TYPE_CHECKING:
    from strobe.collect.torch.hooks import TorchHooks

Undo = Callable[[], None]
_get_ident = threading.get_ident

# Plain numbers: looking up a member of an enum costs as much as writing the mark.
_BACKWARD_BEGAN = int(Mark.BACKWARD_BEGAN)
_BACKWARD_ENDED = int(Mark.BACKWARD_ENDED)
_UPDATE_BEGAN = int(Mark.UPDATE_BEGAN)
_UPDATE_ENDED = int(Mark.UPDATE_ENDED)
_ZERO_GRAD = int(Mark.ZERO_GRAD)


# Set while torch.compile or torch.export runs, in the namespace of torch.compiler. Reading it there
# is one lookup, whereas torch.compiler.is_compiling takes two frames.
COMPILING = "_is_compiling_flag"


def tells_of_tracing(torch: Any) -> Callable[[], bool]:
    """Whether this line is being traced by dynamo, which forbids much of what follows it.

    Dynamo knows the function by identity; no cheaper test would work.
    """
    is_traced: Callable[[], bool] = torch.compiler.is_dynamo_compiling
    return is_traced


def _record_nothing(*_: Any) -> None:
    """Where training metrics are switched off."""


def wrap_backward(hooks: "TorchHooks", torch: Any, name: str, kind: int) -> Undo:
    """tensor.backward() and the transforms of torch.func use these too."""
    original = getattr(torch.autograd, name)
    is_traced, compiler = tells_of_tracing(torch), vars(torch.compiler)
    look = hooks.look
    record_loss = hooks.metrics.backward if hooks.metrics is not None else _record_nothing

    @functools.wraps(original)
    def backward(*args: Any, **kwargs: Any) -> Any:
        if is_traced() or compiler.get(COMPILING) or hooks.inside.get(_get_ident()) == "backward":
            return original(*args, **kwargs)
        try:
            thread = _get_ident()
            before = hooks.inside.get(thread)
            if hooks.recorder.is_recording or hooks.takes_part():
                hooks.inside[thread] = "backward"
                hooks.mark(_BACKWARD_BEGAN, 0, kind)
                look["backward"]()
                record_loss(args, kwargs, kind, sys._getframe(1))
        except Exception as error:
            hooks.broke("backward_began", error)
        try:
            return original(*args, **kwargs)
        finally:
            try:
                hooks.mark(_BACKWARD_ENDED)
                if before is None:
                    hooks.inside.pop(thread, None)
                else:
                    hooks.inside[thread] = before
                if hooks.steps.are_backwards:
                    hooks.steps.went_backward()
                hooks.windows.went_backward()
            except Exception as error:
                hooks.broke("backward_ended", error)

    setattr(torch.autograd, name, backward)
    return lambda: setattr(torch.autograd, name, original)


def wrap_update(hooks: "TorchHooks", torch: Any) -> Undo:
    """From torch's hook before an update to the end of torch's own span around it.

    That span ends after the last hook, with some delay. An update that raised does not count.
    """
    from torch.optim.optimizer import register_optimizer_step_pre_hook

    begin = register_optimizer_step_pre_hook(_update_begins(hooks, torch))
    span = torch.autograd.profiler.record_function
    original = span.__exit__
    span.__exit__ = _update_ends(hooks, original)

    def undo() -> None:
        begin.remove()
        span.__exit__ = original

    return undo


def _update_begins(hooks: "TorchHooks", torch: Any) -> Callable[..., None]:
    is_traced = tells_of_tracing(torch)
    updates = hooks.updates
    record_update = hooks.metrics.updating if hooks.metrics is not None else _record_nothing

    def update_begins(optimizer: Any, args: Any, kwargs: Any) -> None:
        if is_traced():  # inside a compiled update there is nothing to mark
            return
        try:
            if hooks.recorder.is_recording or hooks.takes_part():
                number = hooks.optimizers.get(id(optimizer)) or hooks.know_optimizer(optimizer)
                thread = _get_ident()
                updates[thread] = number, updates.get(thread), optimizer
                hooks.mark(_UPDATE_BEGAN, number)
                record_update(optimizer, args, kwargs)
        except Exception as error:
            hooks.broke("update_began", error)

    return update_begins


def _update_ends(hooks: "TorchHooks", original: Any) -> Callable[..., Any]:
    updates = hooks.updates

    def __exit__(self: Any, kind: Any, error: Any, traceback: Any) -> Any:
        result = original(self, kind, error, traceback)
        if updates and self.name.startswith("Optimizer.step#"):
            try:
                thread = _get_ident()
                number, around, optimizer = updates.pop(thread, (0, None, None))
                if around is not None:
                    updates[thread] = around
                if number and kind is None:
                    hooks.mark(_UPDATE_ENDED, number)
                    hooks.steps.updated(number)
                    hooks.discarded.updated(optimizer)
            except Exception as fault:
                hooks.broke("update_ended", fault)
        return result

    return __exit__


def wrap_zero_grad(hooks: "TorchHooks", torch: Any, owner: Any) -> Undo:
    original = owner.zero_grad
    is_traced = tells_of_tracing(torch)
    look = hooks.look

    @functools.wraps(original)
    def zero_grad(self: Any, *args: Any, **kwargs: Any) -> Any:
        if is_traced():
            return original(self, *args, **kwargs)
        cleared = None
        try:
            cleared = hooks.discarded.clearing(self)
        except Exception as error:
            hooks.broke("zero_grad", error)
        began_ns = monotonic_ns()
        try:
            return original(self, *args, **kwargs)
        finally:
            try:
                hooks.mark(_ZERO_GRAD, 0, monotonic_ns() - began_ns, began_ns)
                if cleared is not None:
                    cleared()
                look["zero_grad"]()
            except Exception as error:
                hooks.broke("zero_grad", error)

    owner.zero_grad = zero_grad
    return lambda: setattr(owner, "zero_grad", original)
