"""The loss, learning rate and gradient norm of an unmodified JAX training.

A compiled program returns arrays, and does not say what they are. So the values of
jax.value_and_grad and optax.global_norm are noted while the program is traced, and looked for among
its results. Only results are read, once the device has computed them: what a program does not
return is not recorded. The learning rate is read where optax keeps it in its state.
"""

import functools
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from strobe.collect.jax.array_access import Ways, names_of
from strobe.collect.jax.functions import innermost
from strobe.collect.jax.steps import Computed
from strobe.collect.metrics.batch_size import batch_size
from strobe.collect.metrics.call_names import CallNames
from strobe.collect.metrics.numbers import Later
from strobe.collect.notices import notice
from strobe.collect.start.autostart import when_imported
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
    from strobe.collect.jax.hooks import JaxHooks
    from strobe.collect.jax.programs import Program

_get_ident = threading.get_ident

Way = Callable[[Any], Any]
# Tags and the arrays with their values.
Arrays = list[tuple[str, Any]]
# Where optax.inject_hyperparams keeps the learning rate.
_HYPERPARAMETERS, _RATE = "hyperparams", "learning_rate"
# Operations whose results are those of the program inside them, one by one.
_CALLS = frozenset(("jit", "pjit", "remat", "remat2", "checkpoint", "closed_call", "core_call"))
_MOST_VALUES = 1024
_DEEPEST = 16


class JaxMetrics:
    def __init__(self, hooks: "JaxHooks", jax: Any, array_type: Any) -> None:
        self._hooks, self._jax, self._array_type = hooks, jax, array_type
        self._ways = Ways(jax.tree_util, array_type)
        self._names = CallNames()
        # Variables of traced programs by id, and the tags of their values.
        self._values: dict[int, tuple[Any, str]] = {}
        self._batch_sizes: dict[int, int] = {}
        self._undo: list[Callable[[], None]] = []
        # Programs that give their results away before they can be read on another thread.
        self._donating: set[Any] = set()

    def install(self) -> Callable[[], None]:
        when_imported("optax", self._wrap_optax)
        return self._uninstall

    def _uninstall(self) -> None:
        while self._undo:
            self._undo.pop()()

    def after_fork_in_child(self) -> None:
        self._batch_sizes.clear()

    def batch_came(self, loader: int, batch: Any) -> None:
        size = batch_size(batch)
        if size != self._batch_sizes.get(loader, 0):
            self._batch_sizes[loader] = size
            name = self._hooks.journal.string("counter", BATCH_SIZE_COUNTER.format(loader))
            self._hooks.journal.mark(Mark.COUNTER, name, size)

    # While programs are traced

    def value_came(self, function: Any, has_aux: bool, out: Any) -> None:
        """jax.value_and_grad of this function has returned, inside of a program."""
        value = _value(out, has_aux)
        name = _plain(getattr(innermost(function), "__name__", ""))
        call = self._hooks.inside.get(_get_ident())
        program = getattr(getattr(call, "program", None), "name", "")
        self._keep(value, Series(LOSS, name, _plain(str(program))).tag)

    def _keep(self, value: Any, tag: str) -> None:
        variable = _variable(value)
        if variable is None or getattr(value, "size", 0) != 1:
            return
        if len(self._values) >= _MOST_VALUES:
            self._values.clear()
        self._values[id(variable)] = variable, tag

    def _wrap_optax(self) -> None:
        optax: Any = sys.modules["optax"]
        original = getattr(optax, "global_norm", None)
        if original is None:
            return

        @functools.wraps(original)
        def global_norm(*args: Any, **kwargs: Any) -> Any:
            norm = original(*args, **kwargs)
            try:
                self._norm_came(norm, sys._getframe(1))
            except Exception as error:
                self._hooks.broke("gradient_norm", error)
            return norm

        optax.global_norm = global_norm
        self._undo.append(lambda: setattr(optax, "global_norm", original))

    def _norm_came(self, norm: Any, frame: Any) -> None:
        tag = self._names.tag(GRADIENT_NORM, frame)
        if isinstance(norm, self._jax.core.Tracer):
            self._keep(norm, tag)
        elif type(norm) is self._array_type and not self._hooks.recorder.is_off:
            value = self._number(norm) if norm.is_ready() else Later(lambda: self._number(norm))
            log = self._hooks.recorder.metrics
            record = functools.partial(log.scalars, {tag: value}, None, AUTOMATIC)
            self._hooks.device.put(Computed(record))

    # Programs

    def ways(self, program: "Program", call: Any, out: Any) -> list[tuple[str, Way]]:
        """What to read of the results of a program, after one of its first calls."""
        found = self._ways.found(out)
        ways: list[tuple[str, Way]] = []
        for place, (path, leaf) in enumerate(found):
            names = names_of(out, path)
            if _HYPERPARAMETERS in names and names[-1] == _RATE and leaf.size == 1:
                group = sum(tag.startswith(LEARNING_RATE) for tag, _ in ways)
                tag = Series(LEARNING_RATE, "", optimizer=program.number, group=group).tag
                ways.append((tag, self._ways.way(out, found, place)))
        if self._values and program.takes_gradient and hasattr(call.function, "trace"):
            places = self._places(call, self._jax.tree_util.tree_leaves(out))
            ways += [(tag, self._ways.way(out, found, place)) for tag, place in places]
        return ways

    def of_gradient(self, function: Any, has_value: bool, has_aux: bool) -> list[tuple[str, Way]]:
        """The same for jax.value_and_grad of this function, which is not part of a program."""
        if not has_value:
            return []
        name = _plain(getattr(innermost(function), "__name__", ""))
        return [(Series(LOSS, name).tag, lambda out: _value(out, has_aux))]

    def _places(self, call: Any, leaves: list[Any]) -> list[tuple[str, int]]:
        """The positions of known values among the arrays of the results.

        jax has cached the trace of the call, so the function does not run again.
        """
        traced = call.function.trace(*call.args, **call.kwargs).jaxpr.jaxpr
        if len(traced.outvars) != len(leaves):
            name = getattr(call.program, "name", "")
            self._hooks.recorder.warn("jax", notice("unmatched-results", program=name))
            return []
        tags = self._tags(traced, _DEEPEST)
        found: dict[str, int] = {}
        place = 0
        for variable, leaf in zip(traced.outvars, leaves, strict=True):
            if type(leaf) is not self._array_type:  # a random key, which is not an array
                continue
            tag = tags.get(id(variable))
            if tag is not None:
                found.setdefault(tag, place)
            place += 1
        return list(found.items())

    def _tags(self, traced: Any, depth: int) -> dict[int, str]:
        """The variables of a traced program whose values are known."""
        tags = {
            id(variable): self._values[id(variable)][1]
            for equation in traced.eqns for variable in equation.outvars
            if id(variable) in self._values
        }  # fmt: skip
        for equation in traced.eqns if depth else ():
            inner = equation.params.get("jaxpr")
            if equation.primitive.name not in _CALLS or inner is None:
                continue
            inner = getattr(inner, "jaxpr", inner)
            inside = self._tags(inner, depth - 1)
            for own, variable in zip(inner.outvars, equation.outvars, strict=False):
                if id(own) in inside:
                    tags.setdefault(id(variable), inside[id(own)])
        return tags

    # Calls

    def values(self, program: "Program", call: Any, out: Any) -> Arrays:
        """Those of a call; they may still be computed."""
        if program.calls == 1 and not program.values:
            program.values = self.ways(program, call, out)
        return self._arrays(program, out) if program.values else []

    def _arrays(self, program: "Program", out: Any) -> Arrays:
        try:
            found = [(tag, way(out)) for tag, way in program.values]
        except (LookupError, AttributeError, TypeError):  # they have another structure than before
            return []
        if program in self._donating:  # too late for those that are not ready now
            return [(tag, self._number(a)) for tag, a in found if a.is_ready()]
        return found

    def record(self, program: "Program", arrays: Arrays, ts_ns: int) -> None:
        """The device is done with a call."""
        values = {}
        for tag, array in arrays:
            try:
                values[tag] = array if isinstance(array, float) else self._number(array)
            except RuntimeError:  # it was an argument of the next call, which may overwrite it
                self._donating.add(program)
        if values:
            self._hooks.recorder.metrics.scalars(values, None, AUTOMATIC, ts_ns)

    def _number(self, array: Any) -> float:
        """Without recording a wait of the script."""
        return float(self._hooks.device.value(array.addressable_data(0)).reshape(-1)[0])


def _value(out: Any, has_aux: bool) -> Any:
    return out[0][0] if has_aux else out[0]


def _variable(value: Any) -> Any:
    """The variable of a tracer in the program that is being traced; None for another tracer."""
    found = getattr(value, "val", None)
    if found is not None:
        return found if type(found).__name__ == "Var" else None
    frame = getattr(getattr(value, "_trace", None), "frame", None)  # before jax 0.7
    return getattr(frame, "tracer_to_var", {}).get(id(value))


def _plain(name: str) -> str:
    return "" if name.startswith("<") else name.replace("\t", " ")
