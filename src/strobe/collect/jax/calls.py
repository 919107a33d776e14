"""Where jax calls us: calls of compiled functions, waits for arrays, step annotations.

Compiled functions are objects of a C++ class, and calling them does not involve Python. But they
share one class, and its `__call__` can be set, as jax itself sets other methods of it. Then every
function is seen, whenever it was created, and stays the object it is (to be pickled, lowered,
hashed, decorated further).
"""

import contextlib
import ctypes
import functools
import sys
import threading
from collections.abc import Callable
from time import monotonic_ns
from typing import TYPE_CHECKING, Any, NamedTuple

from strobe.collect.jax.steps import StepSaid
from strobe.model.journal import Mark

if TYPE_CHECKING:
    from strobe.collect.jax.hooks import JaxHooks

Undo = Callable[[], None]
_get_ident = threading.get_ident
_DEVICE_WAIT = int(Mark.DEVICE_WAIT)

# Shorter waits are not recorded: reading an array that is ready takes some microseconds.
_SHORT_WAIT_NS = 20_000

# In CPython's type objects: the position of the flags, and the flag that says that calls bypass
# `__call__`. Python 3.12 clears it when `__call__` is set; older versions do not.
_FLAGS_OFFSET = 168
_HAVE_VECTORCALL = 1 << 11


class Call(NamedTuple):
    """The current call of a thread."""

    function: Any
    program: Any  # a Program, or False if it is jax's own
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    called_ns: int


class NotPossible(Exception):
    """This jax, or this Python, calls functions in another way."""


def wrap_calls(hooks: "JaxHooks", cls: Any) -> Undo:
    original = cls.__call__
    known, inside = hooks.known, hooks.inside

    def __call__(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        program = known.get(id(self))
        thread = _get_ident()
        if thread in inside:  # another compiled function is being traced
            go_on = functools.partial(original, self, *args, **kwargs)
            return hooks.gradients.call_nested(inside[thread], self, go_on)
        if program is False and not hooks.follows:  # one of jax's own
            hooks.operations += 1
            return original(self, *args, **kwargs)
        if program is None or hooks.last is not None:
            program = hooks.called(self)
        called_ns = monotonic_ns()
        inside[thread] = Call(self, program, args, kwargs, called_ns)
        try:
            out = original(self, *args, **kwargs)
        finally:
            sent_ns = monotonic_ns()
            call = inside.pop(thread, None)
        if call is not None:
            hooks.sent(call, sent_ns, out)
        return out

    return _set_call(cls, original, __call__)


def _set_call(cls: Any, original: Any, ours: Any) -> Undo:
    had_flag = _bypass(cls)
    cls.__call__ = ours
    if had_flag:
        _set_bypass(cls, False)

    def undo() -> None:
        cls.__call__ = original
        if had_flag:
            _set_bypass(cls, True)

    return undo


def hide_frames() -> None:
    """Hide our frames: jax leaves them out of the source lines that it stores with compiled code,
    and out of tracebacks, as it does with its own.
    """
    hide_frames_of(__file__)


def hide_frames_of(file: str) -> None:
    from jax._src import source_info_util, traceback_util

    source_info_util.register_exclusion(file)
    traceback_util.register_exclusion(file)


def _bypass(cls: Any) -> bool:
    """Whether calls bypass `__call__` even after it is set."""
    if sys.version_info >= (3, 12) or not cls.__flags__ & _HAVE_VECTORCALL:
        return False
    if ctypes.c_ulong.from_address(id(cls) + _FLAGS_OFFSET).value != cls.__flags__:
        raise NotPossible("type objects of this Python are built otherwise")
    return True


def _set_bypass(cls: Any, is_on: bool) -> None:
    flags = ctypes.c_ulong.from_address(id(cls) + _FLAGS_OFFSET)
    flags.value = flags.value | _HAVE_VECTORCALL if is_on else flags.value & ~_HAVE_VECTORCALL
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(cls))


def wrap_waits(hooks: "JaxHooks", jax: Any, array_type: Any) -> Undo:
    """The script needs a value (float(), print, numpy), or waits explicitly."""
    undo = contextlib.ExitStack()
    value = array_type.__dict__["_value"]
    waits = _waiting(hooks, value.fget)
    array_type._value = property(waits)
    undo.callback(setattr, array_type, "_value", value)
    block = array_type.__dict__["block_until_ready"]
    array_type.block_until_ready = _waiting(hooks, block)
    hooks.device.waits.wait, hooks.device.value = block, value.fget
    undo.callback(setattr, array_type, "block_until_ready", block)
    block_all = jax.block_until_ready
    jax.block_until_ready = _waiting(hooks, block_all)
    undo.callback(setattr, jax, "block_until_ready", block_all)
    return undo.close


def _waiting(hooks: "JaxHooks", original: Any) -> Any:
    device, waiting = hooks.device, hooks.waiting

    def wait(array: Any) -> Any:
        thread = _get_ident()
        if thread in waiting or thread in device.own_threads:
            return original(array)
        waiting.add(thread)
        last = hooks.last
        if last is not None and last.is_there():  # too late to see when it was ready
            last = None
        began_ns = monotonic_ns()
        try:
            result = original(array)
        finally:
            length_ns = monotonic_ns() - began_ns
            waiting.discard(thread)
        try:
            if device.awaited:
                device.seen(array, last)
            if last is not None and last.done_ns:
                hooks.last = None
            if length_ns >= _SHORT_WAIT_NS and hooks.recorder.is_recording:
                hooks.journal.mark(_DEVICE_WAIT, 0, length_ns, began_ns)
        except Exception as error:
            hooks.broke("waited", error)
        return result

    # Methods written in C++ do not even have plain names.
    wait.__name__, wait.__doc__ = str(getattr(original, "__name__", "wait")), original.__doc__
    return wait


def wrap_rewraps(hooks: "JaxHooks", array_type: Any) -> Undo:
    """With several processes, jax.pmap takes and returns other objects than those of the compiled
    function inside it, with the same buffers.
    """
    name = "_rewrap_with_aval_and_sharding"
    original = array_type.__dict__.get(name)
    if original is None:  # an older jax
        return lambda: None

    def rewrap(array: Any, *args: Any) -> Any:
        again = original(array, *args)
        if hooks.follows:
            hooks.rewrapped(array, again)
        return again

    setattr(array_type, name, rewrap)
    return lambda: setattr(array_type, name, original)


def wrap_annotations(hooks: "JaxHooks", jax: Any) -> Undo:
    """jax.profiler.StepTraceAnnotation marks what the script considers a step."""
    cls = jax.profiler.StepTraceAnnotation
    leave = cls.__exit__

    def __exit__(self: Any, *error: Any) -> Any:
        result = leave(self, *error)
        if error[:1] == (None,) and _get_ident() not in hooks.inside:
            hooks.recorder.guarded(hooks.device.put)(StepSaid(by_hand=False))
        return result

    has_own = "__exit__" in cls.__dict__
    cls.__exit__ = __exit__

    def undo() -> None:
        if has_own:
            cls.__exit__ = leave
        else:
            del cls.__exit__

    return undo
