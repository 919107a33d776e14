"""Lines on stderr: what the user of a training process should know of its recording."""

import sys
from typing import Any

from strobe.messages import in_language, message, users_language


def notice(id: str, **values: Any) -> str:
    """The message `recording.ID`.

    Never raises: a process without file handles left cannot read the catalogue.
    """
    try:
        return message(f"recording.{id}", **values)
    except OSError:
        return f"{id} ({', '.join(f'{name}: {value}' for name, value in values.items())})"


def write(text: str) -> None:
    """One line, in the user's language."""
    try:
        sys.stderr.write(f"strobe: {in_language(text, users_language())}\n")
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):  # stderr is closed
        return
