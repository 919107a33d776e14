"""Which optimizers clear gradients that they never used."""

from collections.abc import Callable
from typing import Any

from strobe.collect.until_deleted import UntilDeleted

# Number of updates per optimizer to examine.
_UPDATES = 32


class _Optimizer:
    """The gradient of an optimizer's first parameter, which represents all of them."""

    def __init__(self) -> None:
        self.updates = 0
        self.discarded = 0
        self.known: tuple[int, int] | None = None  # after the last update, or when cleared


class DiscardedGradients:
    """Detects gradients that change after one update and are cleared before the next.

    That happens, for example, when the loss of a discriminator goes through a generator that is not
    detached.
    """

    def __init__(self) -> None:
        self._by_parameter = UntilDeleted[_Optimizer]()

    def updated(self, optimizer: Any) -> None:
        parameter = _first(optimizer)
        if parameter is None:
            return
        state = self._by_parameter.get(id(parameter))
        if state is None:
            state = _Optimizer()
            self._by_parameter.keep(parameter, state)
        state.updates += 1
        state.known = _version(parameter)

    def clearing(self, owner: Any) -> Callable[[], None] | None:
        """Called before gradients of an optimizer or a module are cleared; the result is called
        afterwards.
        """
        parameter = _first(owner)
        state = self._by_parameter.get(id(parameter)) if parameter is not None else None
        if state is None or state.updates > _UPDATES:
            return None
        state.discarded += _version(parameter) not in (None, state.known)

        def cleared() -> None:
            state.known = _version(parameter)

        return cleared

    def of(self, module: Any) -> dict[str, int] | None:
        """How often gradients of a module were used and discarded, if one optimizer has all of
        them.
        """
        parameters = [one for one in module.parameters() if one.requires_grad]
        found = [self._by_parameter[id(one)] for one in parameters if id(one) in self._by_parameter]
        if len(found) != 1 or not found[0].discarded:
            return None
        return {"updates": found[0].updates, "discarded": found[0].discarded}


def _first(owner: Any) -> Any:
    """The first parameter with a gradient, of an optimizer or of a module."""
    groups = getattr(owner, "param_groups", None)
    parameters = owner.parameters() if groups is None else groups[0]["params"] if groups else ()
    return next((one for one in parameters if one.requires_grad), None)


def _version(parameter: Any) -> tuple[int, int] | None:
    """The identity of a gradient tensor, and how often it was changed."""
    gradient = parameter.grad
    return None if gradient is None else (id(gradient), gradient._version)
