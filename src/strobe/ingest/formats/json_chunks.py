"""A Chrome-trace JSON file, plain or packed, as chunks of whole events with bounded memory.

Cuts fall between two events that open with the same key as the first event of the file; where
there are none, as in files whose metadata is written otherwise than their spans, with one more
of the keys that events have. A file may end anywhere: all events before the cut are given.

A plain file is cut without reading all of it: its chunks are ranges, and who decodes one reads it.
"""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from strobe.errors import UnreadableTrace
from strobe.ingest.formats import compressed
from strobe.ingest.trace import progress
from strobe.ingest.trace.problems import Problems

CHUNK_BYTES = 1 << 20
# A range is some chunks long: what is found in it is joined once for all of them.
_RANGE_CHUNKS = 4
_LONGEST_HEADER = 64 << 20
_NO_EVENTS = b"]"
_ANY_GAP = re.compile(rb'\}\s*,\s*\{\s*("(?:ph|name|cat|pid|tid|ts|dur|args|id)")\s*:')
_TAIL_BYTES = 64 << 10
_OPENING = re.compile(rb'\s*(?:\{.*?"traceEvents"\s*:\s*\[|\[)', re.DOTALL)
_FIRST_KEY = re.compile(rb'\s*\{\s*("[^"\\]{1,40}")\s*:')
_ARRAY_END = re.compile(rb"\s*\]")
_NEXT_EVENT = re.compile(r"\s*(?:,\s*)?\{")
_FILE_END = re.compile(r'\}\s*\]\s*(?:\}|,\s*"\w+"\s*:[^\]]*\})\s*\Z')
_BASE_TIME = re.compile(rb'"baseTimeNanoseconds"\s*:\s*(\d+)')


class Gap(NamedTuple):
    """Between two events: from the end of one to the start of the next."""

    start: int
    end: int


class Range(NamedTuple):
    """Whole events of a plain file, where they lie."""

    path: str
    start: int
    end: int
    first_keys: tuple[bytes, ...]
    chunk_bytes: int

    def lists(self) -> Iterator[bytes]:
        """JSON lists of about a chunk each. Copied once: there is a lot of it."""
        at = self.start
        before: list[bytes | memoryview] = []
        with open(self.path, "rb") as file:
            while at < self.end:
                block = os.pread(file.fileno(), min(self.chunk_bytes, self.end - at), at)
                if not block:  # the file was cut meanwhile
                    break
                at += len(block)
                text = memoryview(block)
                gap = last_gap(block, self.first_keys) if at < self.end else None
                if gap is None:
                    before.append(text)
                    continue
                yield b"".join((b"[", *before, text[: gap.start], b"]"))
                before = [text[gap.end :]]
        progress.report(at - self.start)
        if before:
            yield b"".join((b"[", *before, b"]"))


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
                gap = self._last_gap(buffer)
                if gap:
                    yield buffer[: gap.start]
                parts = [buffer[gap.end :] if gap else buffer]
                # Without a gap in it, wait for twice as much rather than for one block more.
                size = len(parts[0]) if gap else 0
        body = self._close(b"".join(parts))
        if body.strip():
            yield body

    def pieces(self) -> Iterator[bytes | Range]:
        """The same as ranges where the file can be cut without unpacking it."""
        if not compressed.is_plain(self.path):
            yield from self.chunks()
            return
        try:
            with self.path.open("rb") as file:
                yield from self._ranges(file)
        except OSError as error:
            raise UnreadableTrace.of(
                "errors/traces.cannot-read", where=str(self.path), reason=error.strerror or error
            ) from error

    def _ranges(self, file: BinaryIO) -> Iterator[bytes | Range]:
        size = self.bytes_read = os.fstat(file.fileno()).st_size
        blocks = iter(lambda: file.read(self.chunk_bytes), b"")
        rest = self._open(blocks)
        if rest == _NO_EVENTS:
            return
        start = file.tell() - len(rest)
        step = self.chunk_bytes * _RANGE_CHUNKS
        end = start + step
        while end < size:
            gap = self._gap_between(file, start, end)
            if gap is None:  # one event that is longer than a range
                end += end - start
                continue
            yield Range(str(self.path), start, gap.start, self.first_keys, self.chunk_bytes)
            start, end = gap.end, gap.end + step
        body = self._close(os.pread(file.fileno(), size - start, start))
        progress.report(size - start)
        compressed.say_if_grown(file, size, self.say)
        if body.strip():
            yield body

    def _gap_between(self, file: BinaryIO, start: int, end: int) -> Gap | None:
        for near in (max(start, end - _TAIL_BYTES), start):
            text = os.pread(file.fileno(), end - near, near)
            gap = self._last_gap(text) if near == start else last_gap(text, self.first_keys)
            if gap:
                return Gap(near + gap.start, near + gap.end)
        return None

    def expected_bytes(self) -> int:
        return compressed.expected_bytes(self.path)

    def say(self, what: str, count: int = 1) -> None:
        self.problems.add(self.path.name, what, count)

    def _blocks(self) -> Iterator[bytes]:
        for block in compressed.blocks(self.path, self.say):
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
        return _NO_EVENTS

    def _last_gap(self, buffer: bytes) -> Gap | None:
        gap = last_gap(buffer, self.first_keys)
        if gap:
            return gap
        others = [found.group(1) for found in _ANY_GAP.finditer(buffer)]
        if not others:
            return None
        self.first_keys = (*self.first_keys, others[-1])
        return last_gap(buffer, self.first_keys)

    def _close(self, buffer: bytes) -> bytes:
        """Take the last chunk apart: its whole events, and the rest of the header behind them."""
        gap = self._last_gap(buffer)
        text = buffer[gap.end if gap else 0 :].decode("utf-8", "replace")
        decoder = json.JSONDecoder(strict=False)
        position, whole = 0, [buffer[: gap.start]] if gap else []
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


def last_gap(buffer: bytes, first_keys: tuple[bytes, ...]) -> Gap | None:
    gap = gap_before(first_keys)
    for start in (max(0, len(buffer) - _TAIL_BYTES), 0):
        places = [found.span() for found in gap.finditer(buffer, start)]
        if places:
            before, after = places[-1]
            return Gap(before + 1, after)
    return None


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
