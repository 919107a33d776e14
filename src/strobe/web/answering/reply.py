"""An answer on its way from a worker to the browser."""

import gzip
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from strobe.web.question import JSON


@dataclass
class Reply:
    """Whole, or in pieces that are still coming."""

    status: int = 200
    media_type: str = JSON
    file_name: str = ""
    is_packed: bool = False
    body: bytes = b""
    pieces: AsyncIterator[bytes] | None = None
    is_cached: bool = False

    @property
    def head(self) -> dict[str, Any]:
        """Everything but the body, as a worker sends it and the cache stores it."""
        names = ("status", "media_type", "file_name", "is_packed")
        return {name: getattr(self, name) for name in names}

    @property
    def plain(self) -> bytes:
        return gzip.decompress(self.body) if self.is_packed else self.body


def as_reply(value: dict[str, Any]) -> Reply:
    return Reply(body=json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))


def failure(status: int, what: str, hint: str = "") -> Reply:
    body = json.dumps({"ok": False, "error": what, "hint": hint}, ensure_ascii=False)
    return Reply(status=status, body=body.encode("utf-8", "replace"))


class Refused(Exception):
    """A reply that says no, before any question could be asked."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.body)
        self.reply = reply
