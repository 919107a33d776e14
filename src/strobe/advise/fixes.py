"""What to change, in the words of each framework: `messages/catalogue/fix-FRAMEWORK.toml`.

No other module names a framework's functions. Every fix has neutral words (`fix-any.toml`), for
runs whose framework is unknown or has no better ones.
"""

from strobe.advise.framework import UNKNOWN
from strobe.messages import Message, message, texts_of

ANY = "any"


def fix(name: str, framework: str, line: str | None = None) -> Message:
    """A fix in the framework's own words, or else in neutral ones; `line` is where to apply it."""
    own = f"fix-{ANY if framework == UNKNOWN else framework}"
    area = own if name in texts_of(own) else f"fix-{ANY}"
    return message(f"{area}.{name}", at=at_line(line))


def at_line(line: str | None) -> str:
    """What stands in a sentence for a place in the code: " at train.py:31", or nothing."""
    return message("place.at", line=line) if line else ""


def is_fix(name: str) -> bool:
    return name in texts_of(f"fix-{ANY}")
