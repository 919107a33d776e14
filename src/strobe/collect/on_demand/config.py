"""profiler_config.json: what a user requests while training runs, with MindSpore's keys.

`start_step` and `stop_step` (both recorded) name the window; -1 requests nothing, and for any other
key it means: as the run was started. `generation` is ours and optional: a file with a lower one
than a previous file is an older version that came back.
"""

import difflib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from strobe.collect.on_demand.files import Unreadable, parse, read_text, write_once
from strobe.errors import UsageError
from strobe.messages import Message, message
from strobe.model import option_values
from strobe.model.options import DYNAMIC, NAMES, OPTIONS, WITHOUT_EFFECT, Options

CONFIG_FILE = "profiler_config.json"
LEAVE = -1

# A larger number of steps in full would fill any disk: a mistake.
MOST_STEPS = 10_000
# Beyond any training, and far below values that overflow.
_LARGEST = 10**9

# A file is followed once it has been unchanged for this long: one that is being overwritten is not,
# and a person who edits it does not notice the delay.
SETTLED_S = 0.1

_STEPS = ("start_step", "stop_step")
_DOCUMENTED = (
    *_STEPS, "aicore_metrics", "profiler_level", "profile_framework", "analyse_mode",
    "profile_communication", "parallel_strategy", "with_stack", "data_simplification",
)  # fmt: skip
# In addition to those of MindSpore's file.
_FURTHER = ("profile_memory", "record_shapes", "modules")
# Keys of MindSpore's newer file: those with other names, and those without effect.
_SAME_AS = {"record_shape": "record_shapes"}
_ANALYSE = "analyse"
_PATHS = ("prof_path", "output_path")
_WITHOUT_EFFECT = (*WITHOUT_EFFECT, *_PATHS)
# Values of such keys that request nothing further.
_DEFAULTS: tuple[Any, ...] = (None, LEAVE, 0, False, [], ["CPU", "NPU"], ["CPU"], ["text"])


@dataclass(frozen=True)
class Wish:
    """What the file requests: no window if `start` is None."""

    start: int | None = None
    stop: int | None = None  # the step after the last
    options: dict[str, Any] = field(default_factory=dict)
    generation: int | None = None

    @property
    def key(self) -> str:
        return json.dumps([self.start, self.stop, self.options, self.generation], sort_keys=True)


def first_file(options: Options | None = None) -> dict[str, Any]:
    """With the types of MindSpore's guide; switches as the run was started."""
    run, content = options or Options(), dict.fromkeys(_DOCUMENTED, LEAVE)
    switches = [
        name for name in _DOCUMENTED
        if name in OPTIONS and OPTIONS[name].metadata["kind"] == "bool"
    ]  # fmt: skip
    return {**content, **{name: getattr(run, name) for name in switches}}


def write_first(folder: Path, options: Options | None = None) -> None:
    """Unless there is one already. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    write_once(folder / CONFIG_FILE, first_file(options))


def known_keys() -> tuple[str, ...]:
    offered = (name for name, own in NAMES.items() if DYNAMIC in OPTIONS[own].metadata["ways"])
    return tuple(dict.fromkeys((*_DOCUMENTED, *_FURTHER, *offered, "generation")))


def usable(content: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The usable part of a file, and warnings about the rest.

    A file for another version of MindSpore, or with a mistake in one key, is followed in all
    others.
    """
    known, followed, notes = known_keys(), dict[str, Any](), list[str]()
    for name, value in content.items():
        own = _SAME_AS.get(name, name)
        if own in (_ANALYSE, *_STEPS, "generation") or (own in known and value == LEAVE):
            followed[own] = value
        elif own in known:
            wrong = _wrong(own, value)
            notes += [wrong] if wrong else []
            followed |= {} if wrong else {own: value}
        elif value not in _DEFAULTS or (own not in _WITHOUT_EFFECT and own not in NAMES):
            notes.append(_why_ignored(own, known))
    analyse = followed.pop(_ANALYSE, None)
    if analyse is False:
        followed.pop("analyse_mode", None)
    elif analyse is True and followed.get("analyse_mode", LEAVE) == LEAVE:
        followed["analyse_mode"] = 0
    return followed, notes


def _wrong(name: str, value: Any) -> str:
    try:
        option_values.read({name: value})
    except UsageError as error:
        return message("errors/dynamic.ignored", what=error.what, hint=error.hint)
    return ""


def _why_ignored(name: str, known: tuple[str, ...]) -> str:
    if name in _PATHS:
        return message("errors/dynamic.path-ignored", name=name)
    if name in WITHOUT_EFFECT:
        return option_values.no_effect(name)
    if name in NAMES:
        return message("errors/dynamic.fixed-option", name=name)
    near = difflib.get_close_matches(name, known, n=1)
    if near:
        return message("errors/dynamic.unknown-key-near", name=name, near=near[0])
    return message("errors/dynamic.unknown-key", name=name)


def wish(content: dict[str, Any]) -> Wish:
    """Raises UsageError for anything that cannot be followed."""
    known = known_keys()
    for name in content:
        if name not in known:
            raise option_values.unknown(name, known)
    start, stop = (_whole(content, name) for name in _STEPS)
    generation = None if "generation" not in content else _whole(content, "generation", least=0)
    given = {
        name: value
        for name, value in content.items()
        if name not in (*_STEPS, "generation") and value != LEAVE
    }
    options = option_values.read(given)
    if start == stop == LEAVE:
        return Wish(options=options, generation=generation)
    if LEAVE in (start, stop):
        missing = _STEPS[(start, stop).index(LEAVE)]
        raise UsageError.of("errors/dynamic.missing-step", name=missing)
    if stop < start:
        raise UsageError.of("errors/dynamic.reversed", start=start, stop=stop)
    if start == 0:
        raise UsageError.of("errors/dynamic.step-zero")
    if stop - start >= MOST_STEPS:
        raise UsageError.of(
            "errors/dynamic.too-long", count=f"{stop - start + 1:,}", most=f"{MOST_STEPS:,}"
        )
    return Wish(start, stop + 1, options, generation)


def _whole(content: dict[str, Any], name: str, least: int = LEAVE) -> int:
    value = content.get(name, LEAVE)
    if not isinstance(value, int) or isinstance(value, bool):
        raise UsageError.of("errors/dynamic.not-int", name=name, value=repr(value))
    if not least <= value <= _LARGEST:
        raise UsageError.of(
            "errors/dynamic.out-of-range", name=name, value=value, least=least, most=_LARGEST
        )
    return value


def unreadable(error: Unreadable) -> Message:
    return message("errors/dynamic.unreadable", file=CONFIG_FILE, reason=error.args[0])


def invalid(error: UsageError) -> Message:
    return message("errors/dynamic.invalid", file=CONFIG_FILE, what=error.what, hint=error.hint)


class ConfigFile:
    """The file, checked repeatedly; an error in it is reported and never ends the channel."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.path, self._clock = folder / CONFIG_FILE, clock
        self.reason = ""
        # Warnings about keys that are not followed, of the newest file that is.
        self.notes: list[str] = []
        # Whether it must be checked again soon, because it was being written a moment ago.
        self.is_unsettled = False
        self._text: str | None = None
        # Its content at the last check, and since when.
        self._new_text, self._new_since = "", 0.0
        self._generation = -1

    def look(self) -> Wish | None:
        """The request, if it is new and valid."""
        try:
            text = read_text(self.path)
            if text == self._text:
                self.is_unsettled = False
                return None
            content = parse(text)
        except Unreadable as error:
            self.reason = unreadable(error)
            self._text, self.is_unsettled = None, False
            return None
        if not self._is_settled(text):
            return None
        self._text = text
        return self._understood(content)

    def _is_settled(self, text: str) -> bool:
        """A file that is overwritten in place may be a mix of old and new and still be valid JSON,
        so it must be unchanged for a while.
        """
        if text != self._new_text:
            self._new_text, self._new_since = text, self._clock()
        self.is_unsettled = self._clock() - self._new_since < SETTLED_S
        return not self.is_unsettled

    def _understood(self, content: dict[str, Any]) -> Wish | None:
        content, self.notes = usable(content)
        try:
            found = wish(content)
        except UsageError as error:
            self.reason = invalid(error)
            return None
        if found.generation is not None and found.generation < self._generation:
            self.reason = message(
                "errors/dynamic.old-generation", file=CONFIG_FILE, found=found.generation,
                newest=self._generation,
            )  # fmt: skip
            return None
        self._generation = max(self._generation, found.generation or -1)
        self.reason = ""
        return found
