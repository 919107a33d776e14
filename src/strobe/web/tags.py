"""The words that a user puts on a run, in a file beside its manifest."""

import json
from pathlib import Path
from typing import Any

from strobe.errors import UsageError
from strobe.model.manifest import write_json

TAGS_FILE = "tags.json"
MOST_TAGS, LONGEST_TAG = 32, 60


def read(run: Path) -> list[str]:
    try:
        return checked(json.loads((run / TAGS_FILE).read_text(encoding="utf-8")))
    except (OSError, ValueError, UsageError):
        return []


def write(run: Path, tags: list[str]) -> None:
    write_json(run / TAGS_FILE, tags)


def checked(tags: Any) -> list[str]:
    """The tags, each once. Raises UsageError."""
    limits: dict[str, Any] = {"most": MOST_TAGS, "longest": LONGEST_TAG}
    if not isinstance(tags, list) or len(tags) > MOST_TAGS:
        raise UsageError.of("errors/pages.bad-tags", **limits)
    for tag in tags:
        if not isinstance(tag, str) or not 0 < len(tag.strip()) <= LONGEST_TAG:
            raise UsageError.of("errors/pages.bad-tag", **limits)
        if not tag.isprintable():
            raise UsageError.of("errors/pages.bad-tag-character", tag=repr(tag))
    return list(dict.fromkeys(tag.strip() for tag in tags))
