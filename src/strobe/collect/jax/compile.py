"""Marks of XLA's compilations: each is a scope, named by its function, its cause and its line.

jax notifies its listeners after each compilation. If a function was compiled before, its current
arguments are compared with those of the previous compilation.
"""

import inspect
import sys
import threading
from time import monotonic_ns
from typing import TYPE_CHECKING, Any

from strobe.collect.jax.functions import given, innermost, plain_name
from strobe.collect.places import users_line
from strobe.model.journal import COMPILATION, MADE_ANEW, Mark

if TYPE_CHECKING:
    from strobe.collect.jax.calls import Call
    from strobe.collect.jax.hooks import JaxHooks

_COMPILED = "/jax/core/compile/backend_compile_duration"
_TRACED = "/jax/core/compile/jaxpr_trace_duration"
_UNREGISTER = "unregister_event_duration_listener"

# A training that compiles without end must not fill the journal with names.
MOST_NAMES = 256
# Maximum length of a value that is part of a name.
_LONGEST_VALUE = 40

Signature = dict[str, str]


class Compilations:
    def __init__(self, hooks: "JaxHooks") -> None:
        self._hooks = hooks
        self._names = 0
        self._counts: dict[str, int] = {}
        # What each function was last compiled for, by the location of its code.
        self._signatures: dict[Any, Signature] = {}
        # And everything it was ever compiled for, as a number, with the object that was compiled.
        self._compiled_for: dict[Any, dict[int, int]] = {}
        # When the last compilation of a thread ended: the next one of the same call begins there.
        self._ended_ns: dict[int, int] = {}

    def install(self) -> None:
        from jax import monitoring

        monitoring.register_event_duration_secs_listener(self.heard)

    def uninstall(self) -> None:
        from jax._src import monitoring

        if self.heard in monitoring.get_event_duration_listeners():
            # Before jax 0.8 it is a private function with another name.
            for name in (_UNREGISTER, f"_{_UNREGISTER}_by_callback"):
                if hasattr(monitoring, name):
                    getattr(monitoring, name)(self.heard)
                    return

    def heard(self, event: str, duration: float, **details: Any) -> None:
        if event not in (_COMPILED, _TRACED):
            return
        try:
            if event == _TRACED:
                self._hooks.gradients.traced(self._hooks.inside.get(threading.get_ident()))
                return
            name = plain_name(str(details.get("fun_name") or "a function"))
            self._compiled(int(duration * 1e9), name)
        except Exception as error:
            self._hooks.broke("a compilation", error)

    def _compiled(self, length_ns: int, name: str) -> None:
        now_ns, thread = monotonic_ns(), threading.get_ident()
        call = self._hooks.inside.get(thread)
        began_ns = now_ns - length_ns
        if call is not None and call.program:  # it was traced and lowered first
            began_ns = max(call.called_ns, self._ended_ns.get(thread, 0))
        self._ended_ns[thread] = now_ns
        number = self._name(name, call)
        mark = self._hooks.journal.mark
        mark(Mark.SCOPE_BEGAN, number, 0, began_ns)
        mark(Mark.SCOPE_ENDED, number, 0, now_ns)

    def _name(self, function: str, call: "Call | None") -> int:
        """Example: compilation 2 of train_step (x was float32[8, 4], now float32[7, 4]) at
        train.py:31
        """
        self._names += 1
        if call is not None and function == getattr(call.function, "__name__", None):
            function = str(getattr(given(call.function)[0], "__name__", function))
        string = self._hooks.journal.string
        if self._names > MOST_NAMES:
            return string("scope", f"{COMPILATION}of one more function")
        count = self._counts[function] = self._counts.get(function, 0) + 1
        cause = self._cause(call) if call is not None and call.program else ""
        line = users_line(sys._getframe(3))
        place = f" at {line.file}:{line.line}" if line else ""
        why = f" ({cause})" if cause else ""
        return string("scope", f"{COMPILATION}{count} of {function}{why}{place}")

    def _cause(self, call: "Call") -> str:
        signature = _signature(call)
        code = getattr(innermost(call.function), "__code__", None)
        key = (code.co_filename, code.co_firstlineno) if code is not None else id(call.function)
        before, self._signatures[key] = self._signatures.get(key), signature
        number, object = hash(frozenset(signature.items())), id(call.function)
        earlier = self._compiled_for.setdefault(key, {})
        compiled, earlier[number] = earlier.get(number), object
        if before is None:
            return ""
        if compiled is not None and compiled != object:
            # Whatever its last arguments were: a cached function would have had this already.
            return f"{MADE_ANEW}: compile it once, outside the loop"
        changes = list(_changes(before, signature))
        if changes:
            more = f" and {len(changes) - 1} more" if len(changes) > 1 else ""
            return changes[0] + more
        return "called with the same shapes: a setting, a sharding or a constant of it changed"


def _signature(call: "Call") -> Signature:
    """For each argument, by name and path, what compiled code depends on."""
    import jax

    function, args, kwargs = given(call.function, call.args, call.kwargs)
    try:
        bound = inspect.signature(function).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        bound = {f"argument {n + 1}": value for n, value in enumerate(args)} | kwargs
    leaves, _ = jax.tree_util.tree_flatten_with_path(dict(bound))
    return {_path(path): _kind(leaf) for path, leaf in leaves}


def _path(path: Any) -> str:
    import jax

    return f"{path[0].key}{jax.tree_util.keystr(path[1:])}"


def _kind(leaf: Any) -> str:
    shape, dtype = getattr(leaf, "shape", None), getattr(leaf, "dtype", None)
    if shape is not None and dtype is not None:
        return f"{dtype}[{', '.join(map(str, shape))}]"
    if type(leaf) in (int, float, bool, complex):
        # Its value matters if it is static; its type always does.
        return f"{type(leaf).__name__} {leaf!r}"
    return f"{type(leaf).__name__} {str(leaf)[:_LONGEST_VALUE]}".replace(" at ", " ")


def _changes(before: Signature, now: Signature) -> list[str]:
    found = [
        f"{path} was {before[path]}, now {kind}"
        for path, kind in now.items()
        if path in before and before[path] != kind
    ]
    # Numbers that are not static change without a compilation: a shape is the likelier cause.
    found.sort(key=lambda text: "[" not in text)
    found += [f"{path} is new" for path in now if path not in before]
    return found + [f"{path} is gone" for path in before if path not in now]
