"""Gradients that are taken outside of any compiled function, operation by operation.

A script that never calls jax.jit trains all the same. The functions that jax.grad and
jax.value_and_grad make are then its programs, and calls of them are looked at like those of
compiled ones.
"""

import functools
import threading
from collections.abc import Callable
from time import monotonic_ns
from typing import TYPE_CHECKING, Any

from strobe.collect.jax_calls import Call, hide_frames_of

if TYPE_CHECKING:
    from strobe.collect.jax import JaxHooks

_get_ident = threading.get_ident


def wrap_gradients(hooks: "JaxHooks", jax: Any) -> Callable[[], None]:
    hide_frames_of(__file__)
    originals = {name: getattr(jax, name) for name in ("grad", "value_and_grad")}
    for name, original in originals.items():
        setattr(jax, name, _making(hooks, jax, original))

    def undo() -> None:
        for name, original in originals.items():
            setattr(jax, name, original)

    return undo


def _making(hooks: "JaxHooks", jax: Any, original: Any) -> Any:
    tracer, leaves = jax.core.Tracer, jax.tree_util.tree_leaves

    def is_traced(taken: Any) -> bool:
        try:
            return any(isinstance(leaf, tracer) for leaf in leaves(taken))
        except Exception as error:
            hooks.broke("gradient", error)
            return True

    # Threads inside of such a gradient: one within it is a part of it.
    taking: set[int] = set()

    @functools.wraps(original)
    def make(fun: Any, *settings: Any, **more: Any) -> Any:
        function = original(fun, *settings, **more)

        @functools.wraps(function)
        def gradient(*args: Any, **kwargs: Any) -> Any:
            thread = _get_ident()
            is_part = thread in hooks.inside or thread in taking or hooks.recorder.is_off
            if is_part or is_traced((args, kwargs)):
                return function(*args, **kwargs)
            called_ns = monotonic_ns()
            taking.add(thread)
            try:
                out = function(*args, **kwargs)
            finally:
                taking.discard(thread)
            hooks.took_gradient(fun, Call(function, None, args, kwargs, called_ns), out)
            return out

        return gradient

    return make
