"""Which functions take gradients, and gradients taken outside of any compiled function.

A gradient taken while a compiled function is traced shows that the function can train. A script
that never calls jax.jit trains too: then the functions that jax.grad and jax.value_and_grad return
are its programs, and their calls are treated like those of compiled functions.
"""

import functools
import threading
from collections.abc import Callable
from time import monotonic_ns
from typing import TYPE_CHECKING, Any

from strobe.collect.jax.calls import Call, hide_frames_of
from strobe.collect.until_deleted import UntilDeleted

if TYPE_CHECKING:
    from strobe.collect.jax.hooks import JaxHooks

_get_ident = threading.get_ident

# Transformations whose results may be the script's programs.
_PROGRAMS = ("grad", "value_and_grad")
# Others that return a function which takes a gradient, and those that take it when called.
_MAKE, _TAKE = ("jacrev", "jacobian", "hessian"), ("vjp", "linearize")


class Gradients:
    """Which compiled functions take a gradient: the trace of a nested one is cached, so this is
    remembered per function.
    """

    def __init__(self) -> None:
        self._taken: dict[int, int] = {}
        self._functions = UntilDeleted[bool]()

    def taken(self, call: Call | None) -> None:
        """A gradient is taken while this call is traced."""
        if call is None:
            return
        thread = _get_ident()
        self._taken[thread] = self._taken.get(thread, 0) + 1
        self._functions.keep(call.function, True)
        if call.program:
            call.program.takes_gradient = True

    def call_nested(self, outer: Call, function: Any, call: Callable[[], Any]) -> Any:
        """Call a compiled function while another one is traced."""
        thread = _get_ident()
        before = self._taken.get(thread, 0)
        out = call()
        if self._taken.get(thread, 0) != before:
            self._functions.keep(function, True)
        elif id(function) in self._functions:
            self.taken(outer)
        return out

    def traced(self, call: Call | None) -> None:
        """A function was traced; if it took a gradient, that is known by now."""
        if call is not None and call.program and call.program.takes_gradient is None:
            call.program.takes_gradient = False


def wrap_gradients(hooks: "JaxHooks", jax: Any) -> Callable[[], None]:
    hide_frames_of(__file__)
    wrappers = dict.fromkeys(_PROGRAMS, _making) | dict.fromkeys(_MAKE, _making_part)
    wrappers |= dict.fromkeys(_TAKE, _taking)
    originals = {name: getattr(jax, name) for name in wrappers if hasattr(jax, name)}
    for name, original in originals.items():
        setattr(jax, name, wrappers[name](hooks, jax, original))

    def undo() -> None:
        for name, original in originals.items():
            setattr(jax, name, original)

    return undo


def _making(hooks: "JaxHooks", jax: Any, original: Any) -> Any:
    has_value = original.__name__ == "value_and_grad"
    tracer, leaves = jax.core.Tracer, jax.tree_util.tree_leaves

    def is_traced(taken: Any) -> bool:
        try:
            return any(isinstance(leaf, tracer) for leaf in leaves(taken))
        except Exception as error:
            hooks.broke("gradient", error)
            return True

    # Threads inside such a gradient: a nested one is part of it.
    taking: set[int] = set()

    @functools.wraps(original)
    def make(fun: Any, *settings: Any, **more: Any) -> Any:
        function = original(fun, *settings, **more)
        has_aux = bool(settings[1] if len(settings) > 1 else more.get("has_aux", False))

        @functools.wraps(function)
        def gradient(*args: Any, **kwargs: Any) -> Any:
            thread = _get_ident()
            is_part = thread in hooks.inside or thread in taking or hooks.recorder.is_off
            if is_part or is_traced((args, kwargs)):
                hooks.gradients.taken(hooks.inside.get(thread))
                out = function(*args, **kwargs)
                if has_value and hooks.metrics is not None:
                    hooks.value_came(fun, has_aux, out)
                return out
            called_ns = monotonic_ns()
            taking.add(thread)
            try:
                out = function(*args, **kwargs)
            finally:
                taking.discard(thread)
            kind = has_value, has_aux
            hooks.took_gradient(fun, Call(function, None, args, kwargs, called_ns), out, kind)
            return out

        return gradient

    return make


def _making_part(hooks: "JaxHooks", jax: Any, original: Any) -> Any:
    @functools.wraps(original)
    def make(*args: Any, **kwargs: Any) -> Any:
        return _taking(hooks, jax, original(*args, **kwargs))

    return make


def _taking(hooks: "JaxHooks", jax: Any, original: Any) -> Any:
    @functools.wraps(original)
    def take(*args: Any, **kwargs: Any) -> Any:
        hooks.gradients.taken(hooks.inside.get(_get_ident()))
        return original(*args, **kwargs)

    return take
