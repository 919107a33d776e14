"""The events of any Chrome trace JSON, a batch at a time, whatever order their keys are in.

A batch is cut where one event seems to end and the next to begin. The guess is wrong where
arguments hold lists of objects that look like events: then the batch does not decode, and its
events are stepped through one by one. Memory is bounded by the batch, whatever the file holds.
"""

import codecs
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from strobe.ingest.formats import compressed
from strobe.ingest.trace.problems import Problems

BATCH_BYTES = 4 << 20
_LONGEST_HEADER = 64 << 20
_LONGEST_EVENT = 128 << 20
_EVENTS_KEY = b'"traceEvents"'
_LIST_OPENS = re.compile(rb'"traceEvents"\s*:\s*\[')
_FIRST = re.compile(rb"\s*([\[{])")
_KEYS = "ph|name|cat|pid|tid|ts|dur|args|id|id2|tts|tdur|bp|s|sf|cname|scope|bind_id"
_NEXT = rf'\s*,?\s*\{{\s*"(?:{_KEYS})"\s*:'
_GAP, _AFTER_ANYTHING = re.compile(rf"\}}{_NEXT}".encode()), re.compile(rf"[}}\]]{_NEXT}")
_BETWEEN = re.compile(r"[\s,]*")
_TAILS = (64 << 10, 1 << 20, _LONGEST_EVENT)
_CUT_LITERAL = 10  # characters: as far from the end as a cut `false` or \uXXXX is complained about
_DECODER = json.JSONDecoder(strict=False)


@dataclass
class EventStream:
    """One file; `problems` and `header` are complete once `batches` is exhausted."""

    path: Path
    kind: type[msgspec.Struct]  # what each event is decoded to
    batch_bytes: int = BATCH_BYTES
    problems: Problems = field(default_factory=Problems)
    header: bytes = b""  # the text before the list of events
    bytes_read: int = 0
    _is_over: bool = False  # the list's closing bracket was seen
    _is_bare: bool = False  # a list without an object around it, which need not be closed
    _is_lost: bool = False  # inside something that is no event

    def batches(self) -> Iterator[list[Any]]:
        """Whole events in the order of the file; what is none was counted."""
        self._decode = msgspec.json.Decoder(list[self.kind]).decode  # type: ignore[name-defined]
        blocks = self._blocks()
        parts = [self._open(blocks)]
        size, wanted = len(parts[0]), self.batch_bytes
        for block in blocks:
            if self._is_over:
                continue  # damage further down is still worth a word
            parts.append(block)
            size += len(block)
            if size >= wanted:
                events, rest = self._taken(b"".join(parts))
                yield events
                parts, size = [rest], len(rest)
                wanted = max(self.batch_bytes, 2 * size)
        yield self._last(b"".join(parts))

    def say(self, what: str, count: int = 1) -> None:
        self.problems.add(self.path.name, what, count)

    def _blocks(self) -> Iterator[bytes]:
        for block in compressed.blocks(self.path, self.say):
            self.bytes_read += len(block)
            yield block

    def _open(self, blocks: Iterator[bytes]) -> bytes:
        """What follows the opening bracket of the events."""
        buffer, looked_at = b"", 0
        for block in blocks:
            buffer += block
            first = _FIRST.match(buffer)
            if first and first.group(1) == b"[":
                self._is_bare = True
                return buffer[first.end() :]
            place = buffer.find(_EVENTS_KEY, max(0, looked_at - len(_EVENTS_KEY)))
            opens = _LIST_OPENS.search(buffer, place) if place >= 0 else None
            if opens:
                self.header = buffer[: opens.start()]
                return buffer[opens.end() :]
            looked_at = len(buffer) if place < 0 else place
            if len(buffer) > _LONGEST_HEADER:
                break
        self.say("no list of events in it: it was cut in its header, or is not a trace")
        self._is_over = True
        return b""

    def _taken(self, text: bytes) -> tuple[list[Any], bytes]:
        """The events of a stretch of text, and what of it belongs to the next."""
        cut = 0 if self._is_lost else _last_gap(text)
        if cut:
            try:
                return self._decode(b"[" + text[:cut] + b"]"), text[cut:].lstrip(b", \t\r\n")
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                pass
        return self._stepped(text)

    def _last(self, text: bytes) -> list[Any]:
        if self._is_over:
            return []
        events, rest = self._taken(text)
        if rest and not self._is_over:
            more, rest = self._stepped(rest)
            events += more
        if self._is_over:
            return events
        if rest.strip(b", \t\r\n") and not self._is_lost:
            self.say(
                f"the file ends at byte {self.bytes_read:,} in the middle of an event:"
                f" its last {len(rest):,} bytes are lost, every event before them was kept"
            )
        elif not self._is_bare:
            self.say(f"the file ends at byte {self.bytes_read:,}, before the end of its events")
        return events

    def _stepped(self, text: bytes) -> tuple[list[Any], bytes]:
        """The same event by event, for text that does not decode as a whole."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        whole, split = decoder.decode(text), decoder.getstate()[0]
        found: list[Any] = []
        position = self._found_again(whole) if self._is_lost else 0
        while position < len(whole):
            position = _BETWEEN.match(whole, position).end()  # type: ignore[union-attr]
            if whole.startswith("]", position):
                self._is_over = True
                return found, b""
            try:
                event, end = _DECODER.raw_decode(whole, position)
            except (ValueError, RecursionError) as error:
                if _is_cut(error, whole) and len(text) < _LONGEST_EVENT:
                    break
                self.say("an event is not valid JSON and was left out")
                position = self._found_again(whole, position + 1)
                continue
            self._take_one(event, whole[position:end], found)
            position = end
        return found, whole[position:].encode("utf-8", "replace") + split

    def _found_again(self, text: str, start: int = 0) -> int:
        """Where the next event begins; if there is none, we stay lost until more text comes."""
        gap = _AFTER_ANYTHING.search(text, start)
        self._is_lost = gap is None
        return len(text) if gap is None else text.index("{", gap.start())

    def _take_one(self, event: Any, text: str, found: list[Any]) -> None:
        """One value as an event: as it stands, or else with numbers as text and the like."""
        if event is None or event == {}:
            return
        for strict in (True, False):
            try:
                as_json = text.encode() if strict else _encode(event)
                found.append(msgspec.json.decode(as_json, type=self.kind, strict=strict))
                return
            except (ValueError, RecursionError):  # msgspec's own errors are ValueErrors
                continue
        self.say("an entry of its list is no trace event and was left out")


def _encode(event: Any) -> bytes:
    """As JSON again: infinite and undefined numbers become null, halves of characters `?`."""
    try:
        return msgspec.json.encode(event)
    except UnicodeEncodeError:
        return json.dumps(event, ensure_ascii=False).encode("utf-8", "replace")


def _last_gap(text: bytes) -> int:
    """Just after the last event that another seems to follow; 0 if none does."""
    for tail in _TAILS:
        gaps = [gap.start() for gap in _GAP.finditer(text, max(0, len(text) - tail))]
        if gaps:
            return gaps[-1] + 1
        if tail >= len(text):
            break
    return 0


def _is_cut(error: Exception, text: str) -> bool:
    """Whether JSON is complained about because its end is missing, rather than wrong."""
    if not isinstance(error, json.JSONDecodeError):
        return False
    return error.msg.startswith("Unterminated string") or error.pos >= len(text) - _CUT_LITERAL
