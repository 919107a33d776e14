"""Answers kept for the next who asks the same: some in memory, those worth it also on disk."""

import asyncio
import contextlib
import json
import os
import time
from collections import OrderedDict
from pathlib import Path

from strobe.web.lanes import Reply

# Enough for the pages of a few runs and the parts of a timeline that somebody moves about in.
MEMORY_BYTES = 96 << 20
# Enough for the overviews of thousands of runs.
DISK_BYTES = 512 << 20
# Failures, and what must not be kept, are there for all who wait for them, and then gone.
BRIEFLY_S = 5.0
# Between two looks at how much lies on disk.
_WRITES = 200


class KeptAnswers:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._held: OrderedDict[str, tuple[Reply, float]] = OrderedDict()  # with its last moment
        self._bytes = 0
        self._writes = 0

    def held(self, key: str) -> Reply | None:
        """What is in memory."""
        found = self._held.get(key)
        if found is None:
            return None
        reply, until = found
        if time.monotonic() > until:
            self._drop(key)
            return None
        self._held.move_to_end(key)
        return reply

    async def stored(self, key: str) -> Reply | None:
        """What is on disk; it is then in memory too."""
        reply = await asyncio.to_thread(self._read, key)
        if reply is not None:
            self.hold(key, reply)
        return reply

    def hold(self, key: str, reply: Reply, briefly: bool = False) -> None:
        """The newest stays whatever its size: somebody is about to fetch it."""
        self._drop(key)
        is_brief = briefly or reply.status >= 400
        until = time.monotonic() + BRIEFLY_S if is_brief else float("inf")
        self._held[key] = (reply, until)
        self._bytes += len(reply.body)
        while self._bytes > MEMORY_BYTES and len(self._held) > 1:
            self._drop(next(iter(self._held)))

    async def store(self, key: str, reply: Reply) -> None:
        with contextlib.suppress(OSError):  # a full disk costs time, not answers
            await asyncio.to_thread(self._write, key, reply)

    def _drop(self, key: str) -> None:
        found = self._held.pop(key, None)
        if found is not None:
            self._bytes -= len(found[0].body)

    def _read(self, key: str) -> Reply | None:
        path = self._folder / key
        try:
            head, _, body = path.read_bytes().partition(b"\n")
            told = json.loads(head)
            if told["bytes"] != len(body):
                return None
            os.utime(path)
            return Reply(told["status"], told["type"], told["file_name"], told["is_packed"], body)
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _write(self, key: str, reply: Reply) -> None:
        head = {
            "status": reply.status, "type": reply.media_type, "file_name": reply.file_name,
            "is_packed": reply.is_packed, "bytes": len(reply.body),
        }  # fmt: skip
        beside = self._folder / f".{key}.{os.getpid()}"
        beside.write_bytes(json.dumps(head).encode() + b"\n" + reply.body)
        os.replace(beside, self._folder / key)
        self._writes += 1
        if self._writes % _WRITES == 1:
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        files = []
        for entry in os.scandir(self._folder):
            with contextlib.suppress(OSError):
                status = entry.stat()
                files.append((status.st_mtime, status.st_size, entry.path))
        total = sum(size for _, size, _ in files)
        for _, size, path in sorted(files):
            if total <= DISK_BYTES:
                return
            with contextlib.suppress(OSError):
                os.unlink(path)
            total -= size
