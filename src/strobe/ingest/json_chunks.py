"""A Chrome-trace JSON file, plain or packed, as chunks of whole events with bounded memory.

Cuts fall between two events that open with the same key as the first event of the file; where
there are none, as in files whose metadata is written otherwise than their spans, with one more
of the keys that events have. A file may end anywhere: all events before the cut are given.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from strobe.ingest import packed
from strobe.ingest.problems import Problems

CHUNK_BYTES = 1 << 20
_LONGEST_HEADER = 64 << 20
_ANY_GAP = re.compile(rb'\}\s*,\s*\{\s*("(?:ph|name|cat|pid|tid|ts|dur|args|id)")\s*:')
_TAIL_BYTES = 64 << 10
_OPENING = re.compile(rb'\s*(?:\{.*?"traceEvents"\s*:\s*\[|\[)', re.DOTALL)
_FIRST_KEY = re.compile(rb'\s*\{\s*("[^"\\]{1,40}")\s*:')
_ARRAY_END = re.compile(rb"\s*\]")
_NEXT_EVENT = re.compile(r"\s*(?:,\s*)?\{")
_FILE_END = re.compile(r'\}\s*\]\s*(?:\}|,\s*"\w+"\s*:[^\]]*\})\s*\Z')
_BASE_TIME = re.compile(rb'"baseTimeNanoseconds"\s*:\s*(\d+)')


@dataclass
class EventFile:
    """Reads one file; `header` and `problems` are complete once `chunks` is exhausted."""

    path: Path
    chunk_bytes: int = CHUNK_BYTES
    header: dict[str, Any] = field(default_factory=dict)
    problems: Problems = field(default_factory=Problems)
    first_keys: tuple[bytes, ...] = (b'"ph"',)
    bytes_read: int = 0  # of text, that is after decompression

    def chunks(self) -> Iterator[bytes]:
        """Runs of whole events, comma-separated, without the brackets around them."""
        blocks = self._blocks()
        parts = [self._open(blocks)]
        size = len(parts[0])
        for block in blocks:
            parts.append(block)
            size += len(block)
            if size >= self.chunk_bytes:
                buffer = b"".join(parts)
                cut = self._last_gap(buffer)
                if cut > 0:
                    yield buffer[:cut]
                parts = [buffer[cut:].lstrip(b", \t\r\n")]
                # Without a gap in it, wait for twice as much rather than for one block more.
                size = len(parts[0]) if cut > 0 else 0
        body = self._close(b"".join(parts))
        if body.strip():
            yield body

    def expected_bytes(self) -> int:
        """How much text this file will be, roughly."""
        try:
            size = self.path.stat().st_size
        except OSError:
            return 0
        return size * packed.RATIO if packed.is_packed(self.path) else size

    def say(self, what: str, count: int = 1) -> None:
        self.problems.add(self.path.name, what, count)

    def _blocks(self) -> Iterator[bytes]:
        for block in packed.blocks(self.path, self.say):
            self.bytes_read += len(block)
            yield block

    def _open(self, blocks: Iterator[bytes]) -> bytes:
        """Read the header; what follows the opening bracket of the events."""
        buffer = b""
        for block in blocks:
            buffer += block
            opening = _OPENING.match(buffer)
            # Enough of the first event must be there to know its first key.
            if (opening and len(buffer) > opening.end() + 200) or len(buffer) > _LONGEST_HEADER:
                break
        opening = _OPENING.match(buffer)
        if opening is None:
            self.header = _header(buffer)
            self.say("no list of events in it: it was cut in its header, or is not a trace")
            return self._give_up(blocks)
        self.header = _header(opening.group()[: -len(b"[")].rsplit(b'"traceEvents"', 1)[0])
        body = buffer[opening.end() :]
        key = _FIRST_KEY.match(body)
        if key:
            self.first_keys = (key.group(1),)
        elif len(body) > 200 and not _ARRAY_END.match(body):
            self.say("the entries of its list are not trace events")
            return self._give_up(blocks)
        return body

    def _give_up(self, blocks: Iterator[bytes]) -> bytes:
        for _ in blocks:  # damage further down is still worth a word
            pass
        return b"]"

    def _last_gap(self, buffer: bytes) -> int:
        """Where the last event begins whose predecessor is whole: just after its `}`."""
        gap = gap_before(self.first_keys)
        for start in (max(0, len(buffer) - _TAIL_BYTES), 0):
            places = [found.start() for found in gap.finditer(buffer, start)]
            if places:
                return places[-1] + 1
        others = [found.group(1) for found in _ANY_GAP.finditer(buffer)]
        if not others:
            return 0
        self.first_keys = (*self.first_keys, others[-1])
        return self._last_gap(buffer)

    def _close(self, buffer: bytes) -> bytes:
        """Take the last chunk apart: its whole events, and the rest of the header behind them."""
        cut = self._last_gap(buffer)
        text = buffer[cut:].decode("utf-8", "replace")
        decoder = json.JSONDecoder(strict=False)
        position, whole = 0, [buffer[:cut]] if cut else []
        while event := _NEXT_EVENT.match(text, position):
            try:
                _, position = decoder.raw_decode(text, event.end() - 1)
            except (ValueError, RecursionError):
                return self._cut_inside(b",".join(whole), text[event.end() - 1 :])
            whole.append(text[event.end() - 1 : position].encode())
        return self._end(b",".join(whole), text[position:])

    def _end(self, body: bytes, rest: str) -> bytes:
        tail = rest.encode()
        closing = _ARRAY_END.match(tail)
        if closing:
            self.header.update(_header(b"{" + tail[closing.end() :].lstrip(b", \t\r\n")))
        elif self.bytes_read:
            self.say(f"the file ends at byte {self.bytes_read:,}, before the end of its events")
        return body

    def _cut_inside(self, body: bytes, rest: str) -> bytes:
        """The last event is not whole: either the file ends in it, or it is not valid JSON."""
        closing = _FILE_END.search(rest)
        if closing:
            self.say("an event is not valid JSON and was left out")
            return self._end(body, rest[closing.start() + 1 :])
        self.say(
            f"the file ends at byte {self.bytes_read:,} in the middle of an event:"
            f" its last {len(rest.encode()):,} bytes are lost, every event before them was kept"
        )
        return body


def gap_before(first_keys: tuple[bytes, ...]) -> "re.Pattern[bytes]":
    """What stands between two events, of which the second opens with one of these keys."""
    return re.compile(rb"\}\s*,\s*(?=\{\s*(?:" + b"|".join(map(re.escape, first_keys)) + rb"))")


def _header(text: bytes) -> dict[str, Any]:
    """The keys around the list of events, or at least the one that dates it."""
    whole = text.strip().rstrip(b",")
    for candidate in (whole, whole + b"}"):
        try:
            found = json.loads(candidate.decode("utf-8", "replace"), strict=False)
        except ValueError:
            continue
        return found if isinstance(found, dict) else {}
    base = _BASE_TIME.search(text)
    return {"baseTimeNanoseconds": int(base.group(1))} if base else {}
