"""`strobe.scope("name")`: name what happens inside; it shows on the timeline."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from strobe.collect import recorder
from strobe.model.journal import Mark

Function = TypeVar("Function", bound=Callable[..., Any])


class scope:
    """Use as `with strobe.scope("name"):`, or as `@strobe.scope("name")` above a function.

    Outside a recording it does nothing, so it can stay in the script.
    """

    def __init__(self, name: str) -> None:
        self._name = str(name)
        self._open: list[tuple[recorder.Recorder, int] | None] = []

    def __enter__(self) -> "scope":
        self._open.append(self._begin())
        return self

    def __exit__(self, *_: object) -> None:
        began = self._open.pop() if self._open else None
        if began is not None:
            active, reference = began
            active.guarded(active.mark)(Mark.SCOPE_ENDED, reference)

    def __call__(self, function: Function) -> Function:
        @functools.wraps(function)
        def named(*args: Any, **kwargs: Any) -> Any:
            with scope(self._name):
                return function(*args, **kwargs)

        return named  # type: ignore[return-value]

    def _begin(self) -> tuple[recorder.Recorder, int] | None:
        active = recorder.current
        if active is None or active.is_off:
            return None
        try:
            reference = active.journal.string("scope", self._name)
            active.mark(Mark.SCOPE_BEGAN, reference)
        except Exception as error:
            active.broke("scope", error)
            return None
        return active, reference
