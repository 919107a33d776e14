"""Errors of the summary API: what MindSpore raises as TypeError, ValueError or RuntimeError."""

from collections.abc import Iterable
from typing import Any

from strobe.errors import UsageError
from strobe.messages import message


class WrongType(UsageError, TypeError):
    """A value is of a type that the option does not accept."""


class WrongValue(UsageError, ValueError):
    """A value is of the right type, and not one that the option accepts."""


class WrongState(UsageError, RuntimeError):
    """A call is not possible now."""


def check_type(name: str, value: Any, types: type | tuple[type, ...], accepted: str) -> None:
    """`accepted` is the message `errors/summary.ACCEPTED`. True and False are not integers."""
    types = types if isinstance(types, tuple) else (types,)
    is_bool = isinstance(value, bool) and bool not in types
    if is_bool or not isinstance(value, types):
        raise WrongType.of(
            "errors/summary.wrong-type",
            name=name,
            accepted=message(f"errors/summary.{accepted}"),
            value=f"{value!r} ({type(value).__name__})",
        )


def check_positive(name: str, value: Any, is_optional: bool = False) -> None:
    if is_optional and value is None:
        return
    check_type(name, value, int, "a-positive-integer")
    if value <= 0:
        raise WrongValue.of("errors/summary.not-positive", name=name, value=value)


def check_choice(name: str, value: Any, known: Iterable[Any]) -> None:
    known = list(known)
    if value not in known:
        names = ", ".join(repr(one) for one in known)
        raise WrongValue.of("errors/summary.not-choice", name=name, value=repr(value), known=names)


def check_keys(name: str, given: Iterable[Any], known: Iterable[str]) -> None:
    known = list(known)
    for key in given:
        check_type(f"{name}: {key!r}", key, str, "a-string")
        if key not in known:
            names = ", ".join(known)
            raise WrongValue.of("errors/summary.unknown-key", name=name, key=repr(key), known=names)
