"""Read and check the values of options as users give them."""

import difflib
import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from strobe.errors import UsageError
from strobe.messages import Message, message
from strobe.model.options import NAMES, OPTIONS, WITHOUT_EFFECT, doc

if TYPE_CHECKING:
    from strobe.model.options import Options

# Each of these selects the steps to record in full, so they exclude each other.
WHICH_STEPS = ("light", "steps", "every", "whole", "schedule")

# Defaults that a level, or recording types only, sets for options that were not given.
_LEVELS: dict[int, dict[str, Any]] = {
    0: {"record_shapes": False, "with_flops": False, "modules": False},
    1: {},
    2: {"profile_memory": True, "hardware_metrics": "all"},
}
_TYPES_ONLY = {"record_shapes": False, "with_flops": False, "modules": False}


def read(given: Mapping[str, Any]) -> dict[str, Any]:
    """Values by the options' own names, including what follows from a level."""
    values: dict[str, Any] = {}
    given_as: dict[str, str] = {}
    for name, value in given.items():
        own = own_name(name)
        if own is None:
            continue
        read_value = one(own, value, name)
        if own in values and values[own] != read_value:
            raise UsageError.of(
                "errors/options.given-twice", first=given_as[own], second=name, own=own
            )
        values[own], given_as[own] = read_value, name
    _refuse_contradictions(values)
    return {**_implied(values), **values}


def own_name(name: str) -> str | None:
    """The option behind a name; None for one that is accepted and has no effect."""
    if name in WITHOUT_EFFECT:
        return None
    if name not in NAMES:
        raise unknown(name, (*NAMES, *WITHOUT_EFFECT))
    return NAMES[name]


def without_effect(given: Iterable[str]) -> list[str]:
    """Warnings about options that were given and have no effect."""
    return [no_effect(name) for name in given if name in WITHOUT_EFFECT]


def no_effect(name: str) -> Message:
    return message("options.no-effect", name=name, why=message(f"options.no-effect-{name}"))


def with_known_formats(given: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The options without unknown formats, and a warning about those.

    For recordings that start inside the user's script: no file is worth ending it.
    """
    usable, notes = dict(given), list[str]()
    for name, value in given.items():
        if NAMES.get(name) != "formats" or not isinstance(value, str | list | tuple):
            continue
        known = OPTIONS["formats"].metadata["choices"]
        words = value.split(",") if isinstance(value, str) else value
        usable[name] = [word for word in words if word in known]
        notes += [
            message("errors/options.unknown-format", name=name, format=repr(word),
                    known=", ".join(known))
            for word in words if word not in known
        ]  # fmt: skip
    return usable, notes


def asked_for(given: Mapping[str, Any]) -> frozenset[str]:
    """The options that are turned on explicitly, not by default."""
    return frozenset(NAMES[name] for name, value in given.items() if name in NAMES and value)


def unknown(name: str, known: Iterable[str]) -> UsageError:
    names = sorted(known)
    close = difflib.get_close_matches(str(name), names, n=1)
    hint = message("errors/options.did-you-mean", near=close[0]) if close else ""
    return UsageError.of("errors/options.unknown", name=name, names=", ".join(names), hint=hint)


def one(own: str, value: Any, given_as: str = "") -> Any:
    """The value of one option; older spellings are accepted."""
    meta = OPTIONS[own].metadata
    is_word = isinstance(value, str | int) and not isinstance(value, bool)
    if is_word and value not in meta["choices"]:
        value = meta["old_values"].get(value, value)
    if value is None and OPTIONS[own].default is None:
        return None
    return _READERS[meta["kind"]](value, given_as or own, meta)


def _wrong(id: str, name: str, value: Any, **values: Any) -> UsageError:
    """A value of the wrong type; the hint is what the option does."""
    own = NAMES.get(name.lstrip("-").replace("-", "_"))
    hint = doc(own) if own else ""
    return UsageError.of(f"errors/options.{id}", name=name, value=repr(value), hint=hint, **values)


def _bool(value: Any, name: str, meta: Any) -> bool:
    if isinstance(value, bool) or (isinstance(value, int) and value in (0, 1)):
        return bool(value)
    raise _wrong("not-bool", name, value)


def _int(value: Any, name: str, meta: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _wrong("not-int", name, value)
    if value < meta["least"]:
        raise _wrong("too-small", name, value, least=meta["least"])
    return value


def _path(value: Any, name: str, meta: Any) -> str:
    import os

    if not isinstance(value, str | os.PathLike) or not os.fspath(value):
        raise _wrong("not-path", name, value)
    return str(os.fspath(value))


def _choice(value: Any, name: str, meta: Any) -> Any:
    choices = meta["choices"]
    if value in choices and not isinstance(value, bool):
        return value
    names = ", ".join("null" if choice is None else str(choice) for choice in choices)
    close = difflib.get_close_matches(str(value), [str(choice) for choice in choices], n=1)
    hint = message("errors/options.near-choice", near=close[0], choices=names) if close else ""
    raise UsageError.of(
        "errors/options.not-choice", name=name, value=repr(value), choices=names, hint=hint
    )


def _list(value: Any, name: str, meta: Any) -> tuple[str, ...]:
    given = value.split(",") if isinstance(value, str) else value
    if not isinstance(given, list | tuple):
        raise _wrong("not-list", name, value)
    return tuple(_choice(entry, name, meta) for entry in given)


# A larger number is a typing error.
_LAST_RANK = 1_000_000


def _ranks(value: Any, name: str, meta: Any) -> tuple[int, ...]:
    """Numbers, or text of numbers and ranges such as 8-15, both ends included."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = [value]
    words = value.split(",") if isinstance(value, str) else value
    try:
        found: set[int] = set()
        for word in words:
            first, dash, last = str(word).strip().partition("-")
            found.update(range(int(first), min(int(last if dash else first), _LAST_RANK) + 1))
    except (TypeError, ValueError):
        found = set()
    if not found and words != []:
        hint = message("errors/options.example", name=name, value="0,8-15")
        raise UsageError.of("errors/options.not-ranks", name=name, value=repr(value), hint=hint)
    return tuple(sorted(found))


def _numbers(value: Any, name: str, meta: Any, least: int, most: int) -> tuple[int, ...]:
    words = value.split(":") if isinstance(value, str) else value
    try:
        numbers = tuple(int(word) for word in words)
        is_well = least <= len(numbers) <= most and not isinstance(value, bytes)
    except (TypeError, ValueError):
        is_well = False
    if not is_well:
        hint = message("errors/options.example", name=name, value=_EXAMPLES[name.lstrip("-")])
        id = "errors/options.not-two-numbers" if most == 2 else "errors/options.not-numbers"
        raise UsageError.of(id, name=name, value=repr(value), hint=hint)
    return numbers


_EXAMPLES = {"steps": "10:20", "every": "500:5", "schedule": "2:1:5:3"}


def _pair(value: Any, name: str, meta: Any) -> tuple[int, ...]:
    return _numbers(value, name, meta, 2, 2)


def _schedule(value: Any, name: str, meta: Any) -> tuple[int, ...]:
    if isinstance(value, Mapping):
        known = ("wait", "warmup", "active", "repeat", "skip_first")
        for key in value:
            if key not in known:
                raise unknown(key, known)
        value = [value.get(key, 0) for key in known]
    numbers = _numbers(value, name, meta, 3, 5)
    return (*numbers, *(0,) * (5 - len(numbers)))


_READERS: dict[str, Any] = {
    "bool": _bool, "int": _int, "path": _path, "choice": _choice, "list": _list, "pair": _pair,
    "schedule": _schedule, "ranks": _ranks,
}  # fmt: skip


def _implied(values: Mapping[str, Any]) -> dict[str, Any]:
    implied = dict(_LEVELS[values.get("profiler_level", 1)])
    if not values.get("is_detail", True):
        implied.update(_TYPES_ONLY)
    if not values.get("record_shapes", True):
        implied["with_flops"] = False
    if values.get("light") or not values.get("op_time", True):
        implied.pop("profile_memory", None)
    return implied


def _refuse_contradictions(values: Mapping[str, Any]) -> None:
    """Only options that were given explicitly: a default contradicts nothing."""
    if values.get("light"):
        _refuse_windows(values, "light=True")
    if not values.get("op_time", True):
        _refuse_windows(values, "op_time=False")
    for name in _TYPES_ONLY:
        if values.get(name) and not values.get("is_detail", True):
            raise _contradiction(f"{name}=True", "is_detail=False", "needs-operators")
    if values.get("with_flops") and not values.get("record_shapes", True):
        raise _contradiction("with_flops=True", "record_shapes=False", "needs-shapes")


def _refuse_windows(values: Mapping[str, Any], because: str) -> None:
    for name, value in values.items():
        if OPTIONS[name].metadata["needs_full"] and value not in (False, 0, "all"):
            raise _contradiction(f"{name}={value}", because, "needs-window")
        if because == "op_time=False" and name in WHICH_STEPS[1:] and value:
            raise _contradiction(name, because, "is-window")


def _contradiction(one: str, other: str, reason: str) -> UsageError:
    return UsageError.of("errors/options.contradiction", one=one, other=other,
                         reason=message(f"errors/options.{reason}", option=one))  # fmt: skip


def check(options: "Options") -> None:
    """What must hold regardless of how the options were created."""
    chosen = [name for name in WHICH_STEPS if getattr(options, name)]
    if len(chosen) > 1:
        raise UsageError.of(
            "errors/options.several-choices", names=", ".join(chosen), known=", ".join(WHICH_STEPS)
        )
    for name, option in OPTIONS.items():
        if option.metadata["least"] is not None:
            _int(getattr(options, name), name, option.metadata)
    steps, every, schedule = options.steps, options.every, options.schedule
    if steps and not 1 <= steps[0] < steps[1]:
        raise UsageError.of("errors/options.empty-steps", first=steps[0], end=steps[1])
    if every and not 1 <= every[1] <= every[0]:
        raise UsageError.of("errors/options.bad-period", period=every[0], count=every[1])
    if schedule and (min(schedule) < 0 or not schedule[2]):
        raise UsageError.of("errors/options.bad-schedule")


def parsed(text: str, where: str) -> dict[str, Any]:
    """The JSON of STROBE_OPTIONS or of a file."""
    try:
        data = json.loads(text)
    except ValueError as error:
        raise UsageError.of(
            "errors/options.not-json", where=text[:80], source=where, reason=error
        ) from None
    if not isinstance(data, dict):
        raise UsageError.of("errors/options.not-object", where=text[:80], source=where)
    return data
