"""The text of a MegEngine profile as sections of undecoded entries, whole or cut short."""

import json
import re
from dataclasses import dataclass, field
from functools import cache
from math import isfinite
from pathlib import Path
from typing import Any

import msgspec

from strobe.errors import UnreadableTrace
from strobe.ingest.formats import compressed
from strobe.ingest.trace.problems import Problems

# A graph of a million operators is 2 GB of text; no profile comes near.
LARGEST_BYTES = 1 << 30
_DEEPEST = 500
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\],]', re.DOTALL)
_CLOSING = {b"{": b"}", b"[": b"]"}
_ODD = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError)

Section = dict[str, msgspec.Raw]


@dataclass
class Document:
    """Sections are decoded once, entries when they are asked for."""

    path: Path
    said: Problems
    whole: Section = field(default_factory=dict)
    known: dict[str, Section] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.path.name

    def say(self, what: str, count: int = 1) -> None:
        self.said.add(self.name, what, count)

    def sections(self, part: str) -> Section:
        """`graph_exec` or `profiler`; nothing where it is missing or no object."""
        return self._object(part, self.whole.get(part))

    def section(self, part: str, name: str) -> Section:
        return self._object(f"{part}.{name}", self.sections(part).get(name))

    def decoded(self, raw: msgspec.Raw | None) -> dict[str, Any]:
        """One entry, with whatever it holds; nothing if it is no object."""
        found = _decoded(bytes(raw), Any) if raw is not None else None
        return found if isinstance(found, dict) else {}

    def _object(self, name: str, raw: msgspec.Raw | None) -> Section:
        if name not in self.known:
            found = _decoded(bytes(raw), Section) if raw is not None else {}
            if found is None:
                self.say(f"its part {name} is no object and was left out")
            self.known[name] = found or {}
        return self.known[name]


def open_document(path: Path, said: Problems) -> Document:
    """Raises UnreadableTrace where not even the beginning is JSON."""
    text = _text(path, said)
    whole = _decoded(text, Section)
    if whole is None:
        repaired = completed(text)
        whole = _decoded(repaired, Section) if repaired else None
        if whole is not None:
            lost = len(text) - len(repaired)
            said.add(path.name, f"the file is cut or damaged: of its {len(text):,} bytes what"
                     f" comes after byte {len(text) - max(lost, 0):,} is lost")  # fmt: skip
    if whole is None:
        raise UnreadableTrace.of("errors/traces.not-json-object", where=str(path))
    return Document(path, said, whole)


def completed(text: bytes) -> bytes:
    """Text cut anywhere, up to its last whole entry and with its brackets closed."""
    open_brackets: list[bytes] = []
    cut, closing = 0, b""
    for token in _TOKEN.finditer(text):
        word = token.group()
        if len(open_brackets) > _DEEPEST:
            break
        if word in (b"{", b"["):
            open_brackets.append(_CLOSING[word])
        elif word in (b"}", b"]"):
            if not open_brackets or open_brackets.pop() != word:
                break
            cut, closing = token.end(), b"".join(reversed(open_brackets))
        elif word == b",":
            cut, closing = token.start(), b"".join(reversed(open_brackets))
    return text[:cut] + closing


def _text(path: Path, said: Problems) -> bytes:
    parts, size = [], 0
    for block in compressed.blocks(path, lambda what: said.add(path.name, what)):
        parts.append(block)
        size += len(block)
        if size > LARGEST_BYTES:
            raise UnreadableTrace.of(
                "errors/traces.too-large-megengine", where=str(path), most=LARGEST_BYTES >> 30
            )
    return b"".join(parts)


def _decoded(text: bytes, kind: Any) -> Any:
    """None if it is not of this kind; NaN and odd characters in text are forgiven."""
    try:
        return _decoder(kind).decode(text)
    except _ODD:
        pass
    try:
        loose = json.loads(
            text.decode("utf-8", "replace"), strict=False, parse_float=_finite,
            parse_constant=_nothing,
        )  # fmt: skip
        strict = json.dumps(loose, ensure_ascii=False).encode("utf-8", "replace")
        return _decoder(kind).decode(strict)
    except _ODD:
        return None


def _finite(text: str) -> float | None:
    number = float(text)
    return number if isfinite(number) else None


def _nothing(_: str) -> None:
    return None


@cache
def _decoder(kind: Any) -> "msgspec.json.Decoder[Any]":
    return msgspec.json.Decoder(kind)
