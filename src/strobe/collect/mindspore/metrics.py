"""The loss and learning rate of an unmodified MindSpore training.

The loss is the first result of a cell that trains (as in Model.train), of a function whose gradient
is taken, or what a compiled function returns of that. It is read on the thread that writes, since
training would wait for it. A learning rate is recorded where that needs neither a graph nor a wait:
each value of a list, otherwise that of the first update. What Model.eval returns is recorded, too.
"""

import ast
import atexit
import functools
import inspect
import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from strobe.collect.metrics.batch_size import batch_size
from strobe.collect.metrics.numbers import Later
from strobe.collect.mindspore.calls import (
    OPTIMIZER,
    TRAINING,
    TRAINS,
    Call,
    optimizer_in,
    takes_gradient,
)
from strobe.collect.mindspore.source_analysis import named_values, optimizer_named
from strobe.collect.until_deleted import UntilDeleted
from strobe.model.automatic_metrics import (
    BATCH_SIZE_COUNTER,
    EVALUATION,
    LEARNING_RATE,
    LOSS,
    Series,
)
from strobe.model.metric_tables import AUTOMATIC

if TYPE_CHECKING:
    from strobe.collect.mindspore.hooks import MindSporeHooks

# Types of elements that can be read as numbers of numpy.
_FLOATS = frozenset(("Float16", "Float32", "Float64"))


class _Rate:
    """The learning rate of an optimizer."""

    __slots__ = ("first", "tag", "updates", "values")

    def __init__(self, tag: str, first: float | None, values: Any, start: int) -> None:
        self.tag, self.first, self.values, self.updates = tag, first, values, start


class _Place:
    """Where the loss is among the results of a compiled function."""

    __slots__ = ("is_first_of", "name")

    def __init__(self, name: str, is_first_of: int | None) -> None:
        """`is_first_of`: its position in a tuple; None if it is the result itself."""
        self.name, self.is_first_of = name, is_first_of


class MindSporeMetrics:
    def __init__(self, hooks: "MindSporeHooks") -> None:
        self._hooks = hooks
        self._tags: dict[str, str] = {}
        self._places = UntilDeleted[list[_Place]]()
        self._rates = UntilDeleted[_Rate]()
        # The optimizer of a cell or a compiled function that trains, if it has one.
        self._optimizers = UntilDeleted[Any]()
        self._batch_sizes: dict[int, int] = {}

    def install(self) -> Callable[[], None]:
        from mindspore import Tensor

        self._tensor = Tensor
        # Not ours, which would take it for the script waiting for its update.
        self._asnumpy = inspect.unwrap(Tensor.asnumpy)
        # MindSpore frees its devices at exit.
        settle = functools.partial(_settle, self._hooks)
        atexit.register(settle)
        undo_eval = self._wrap_eval()

        def undo() -> None:
            atexit.unregister(settle)
            undo_eval()

        return undo

    def _wrap_eval(self) -> Callable[[], None]:
        """Results of Model.eval, by the names of its metrics."""
        from mindspore.train import Model

        original = Model.eval

        @functools.wraps(original)
        def evaluate(*args: Any, **kwargs: Any) -> Any:
            results = original(*args, **kwargs)
            try:
                self._evaluated(results)
            except Exception as error:
                self._hooks.broke("Model.eval", error)
            return results

        Model.eval = evaluate

        def undo() -> None:
            Model.eval = original

        return undo

    def _evaluated(self, results: Any) -> None:
        if isinstance(results, dict) and not self._hooks.recorder.is_off:
            numbers = {f"{EVALUATION}/{name}": value for name, value in results.items()
                       if name and getattr(value, "shape", ()) == ()}  # fmt: skip
            self._hooks.recorder.metrics.scalars(numbers, None, AUTOMATIC)

    def after_fork_in_child(self) -> None:
        self._batch_sizes.clear()
        self._rates.clear()

    def batch_came(self, loader: int, number: int, batch: Any) -> int:
        """The name of the counter to mark with the size of this batch; 0 if it has not changed."""
        size = batch_size(batch)
        if size == self._batch_sizes.get(loader, 0):
            return 0
        self._batch_sizes[loader] = size
        return self._hooks.journal.string("counter", BATCH_SIZE_COUNTER.format(number))

    def size(self, loader: int) -> int:
        return self._batch_sizes[loader]

    # Loss

    def result_came(self, begun: Call, thing: Any, result: Any) -> None:
        """An outermost call of a cell or of a compiled function has returned."""
        try:
            if begun[0] is TRAINING:
                self._lose(type(thing).__name__, result)
            elif begun[0] == "graph":
                _, kind, _, _, function = begun[2]
                if kind == OPTIMIZER:
                    self.updating(thing, is_over=True)
                elif kind == TRAINS:
                    self._updates(thing, lambda: optimizer_in(thing, self._hooks.is_optimizer))
                    self._lose(type(thing).__name__, result)
                elif function is not None:
                    self._compiled(function, result)
        except Exception as error:
            self._hooks.broke("result", error)

    def forward_came(self, function: Any, result: Any, around: str | None) -> None:
        """Of a function whose gradient is taken, without graphs: its arguments and its result."""
        if around is not None:  # it is what a cell that trains will return
            return
        try:
            if isinstance(result, tuple) and len(result) == 2 and isinstance(result[0], tuple):
                result = result[1]
            self._lose(getattr(function, "__name__", type(function).__name__), result)
        except Exception as error:
            self._hooks.broke("loss", error)

    def _lose(self, name: str, result: Any) -> None:
        while isinstance(result, (tuple, list)) and result:
            result = result[0]
        if not isinstance(result, self._tensor) or result.size != 1:
            return
        if str(result.dtype) not in _FLOATS:
            return
        tag = self._tags.get(name)
        if tag is None:
            plain = "" if name.startswith("<") else name.replace("\t", " ")
            tag = self._tags[name] = Series(LOSS, plain).tag
        value = Later(lambda: self._numbers(result)[0])
        self._hooks.recorder.metrics.scalars({tag: value}, None, AUTOMATIC)

    def _compiled(self, function: Any, result: Any) -> None:
        function = getattr(function, "__func__", function)
        places = self._places.get(id(function))
        if places is None:
            is_gradient = takes_gradient(function)
            places = [_Place("", 0)] if is_gradient and _returns_value(function) else []
            places = places if is_gradient else _places(function)
            self._places.keep(function, places)
        if not places:
            return
        self._updates(function, lambda: optimizer_named(function, self._hooks.is_optimizer))
        for place in places:
            if place.is_first_of is None:
                self._lose(place.name, result)
            elif isinstance(result, (tuple, list)) and place.is_first_of < len(result):
                self._lose(place.name, result[place.is_first_of])

    def _numbers(self, tensor: Any) -> Any:
        return [float(value) for value in self._asnumpy(tensor).reshape(-1)]

    # Learning rate

    def _updates(self, thing: Any, find: Callable[[], Any]) -> None:
        """A graph of this cell or function has made an update."""
        if id(thing) not in self._optimizers:
            self._optimizers.keep(thing, None if _may_skip(thing) else find())
        optimizer = self._optimizers[id(thing)]
        if optimizer is not None:
            self.updating(optimizer, is_over=True)

    def updating(self, optimizer: Any, is_over: bool = False) -> None:
        """An optimizer is about to update, or has done so."""
        rate = self._rates.get(id(optimizer))
        if rate is None:
            rate = self._know(optimizer)
            rate.updates -= is_over
        number, rate.updates = rate.updates, rate.updates + 1
        metrics = self._hooks.recorder.metrics
        if rate.values is not None:
            value = rate.values[max(0, min(number, len(rate.values) - 1))]
            metrics.scalars({rate.tag: value}, None, AUTOMATIC)
        elif rate.first is not None:
            metrics.scalars({rate.tag: rate.first}, None, AUTOMATIC)
            rate.first = None

    def _know(self, optimizer: Any) -> _Rate:
        """This reads its parameters, once."""
        tag = Series(LEARNING_RATE, "", optimizer=len(self._rates), group=0).tag
        groups = getattr(optimizer, "param_groups", None)
        given: Any = getattr(optimizer, "learning_rate", None)
        given = groups[0].get("lr") if groups else given
        is_several = len(groups) > 1 if groups else bool(getattr(optimizer, "is_group_lr", False))
        first, values, start = None, None, 0
        if is_several:
            given = None
        elif type(given).__name__ == "_IteratorLearningRate":
            values = self._numbers(given.learning_rate)
            start = int(self._numbers(optimizer.global_step)[0])
        elif isinstance(given, self._tensor) and given.size == 1:
            first = self._numbers(given)[0]
        elif isinstance(given, float):
            first = given
        rate = _Rate(tag, first, values, start)
        self._rates.keep(optimizer, rate)
        return rate


def _may_skip(cell: Any) -> bool:
    """Whether its updates are left out if gradients overflow, so that they cannot be counted."""
    return any("LossScal" in base.__name__ for base in type(cell).__mro__)


def _settle(hooks: "MindSporeHooks") -> None:
    hooks.recorder.metrics.flush()


def _places(function: Any) -> list[_Place]:
    """The results of a compiled function that are values of functions whose gradient it takes: the
    names that are assigned once, from such a call, and returned.
    """
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):  # it was typed, or is generated
        return []
    taking = {name for name, value in named_values(function) if _returns_value(value)}
    assigned: dict[str, int] = {}
    losses: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            assigned[node.id] = assigned.get(node.id, 0) + 1
        if isinstance(node, ast.Assign) and _calls_one_of(node.value, taking):
            losses |= _first_name(node.targets[0])
    losses = {name for name in losses if assigned[name] == 1}
    returns = [node.value for node in ast.walk(tree) if isinstance(node, ast.Return)]
    if len(returns) != 1:
        return []
    given = returns[0]
    if isinstance(given, ast.Tuple):
        return [
            _Place(one.id, place) for place, one in enumerate(given.elts)
            if isinstance(one, ast.Name) and one.id in losses
        ]  # fmt: skip
    is_one = isinstance(given, ast.Name) and given.id in losses
    return [_Place(given.id, None)] if is_one else []  # type: ignore[union-attr]


def _returns_value(value: Any) -> bool:
    """Whether it is made by value_and_grad, rather than by grad."""
    if not takes_gradient(value):
        return False
    inner = inspect.unwrap(value)
    cells = [cell.cell_contents for cell in getattr(inner, "__closure__", None) or ()]
    return any(getattr(cell, "get_value", False) for cell in cells)


def _calls_one_of(node: ast.AST, names: set[str]) -> bool:
    if not isinstance(node, ast.Call):
        return False
    function = node.func
    name = getattr(function, "id", None) or getattr(function, "attr", None)
    return name in names


def _first_name(target: ast.AST) -> set[str]:
    if not isinstance(target, (ast.Tuple, ast.List)) or not target.elts:
        return set()
    first = target.elts[0]
    while isinstance(first, (ast.Tuple, ast.List)) and first.elts:
        first = first.elts[0]
    return {first.id} if isinstance(first, ast.Name) else set()
