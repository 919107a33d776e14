"""What to change, in the words of each framework: `messages/catalogue/fix-FRAMEWORK.toml`.

Every fix has neutral words (`fix-any.toml`), for runs whose framework is unknown or has no better
ones.
"""

import functools

from strobe.frameworks import Framework
from strobe.messages import Message, areas, message, texts_of

ANY = "any"


def fix(name: str, framework: Framework, line: str | None = None, **values: str | int) -> Message:
    """A fix in the framework's own words, or else in neutral ones; `line` is where to apply it."""
    has_own = framework.name in _frameworks() and name in texts_of(f"fix-{framework.name}")
    area = framework.name if has_own else ANY
    return message(f"fix-{area}.{name}", at=at_line(line), line=line or "", **values)


@functools.cache
def _frameworks() -> frozenset[str]:
    """Those with words of their own, by name."""
    found = (area.removeprefix("fix-") for area in areas() if area.startswith("fix-"))
    return frozenset(found) - {ANY}


def at_line(line: str | None) -> str:
    """A place in the code as a part of a sentence: " at train.py:31", or nothing."""
    return message("place.at", line=line) if line else ""


def is_fix(name: str) -> bool:
    return name in texts_of(f"fix-{ANY}")
