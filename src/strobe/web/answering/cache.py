"""Answers on disk, under keys that name what the run contained: also there after a restart.

The system's file cache makes them as fast as a copy in memory would be.
"""

import asyncio
import contextlib
import json
import os
from pathlib import Path

from strobe.web.answering.reply import Reply

# Enough for the overviews of thousands of runs.
MOST_BYTES = 512 << 20
# Counting what is stored takes a look at every file, so it is done once in this many writes.
_WRITES = 200


class AnswerCache:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._writes = 0

    async def read(self, key: str) -> Reply | None:
        return await asyncio.to_thread(self._read, key)

    async def write(self, key: str, reply: Reply) -> None:
        with contextlib.suppress(OSError):  # a full disk costs time, not answers
            await asyncio.to_thread(self._write, key, reply)

    def _read(self, key: str) -> Reply | None:
        path = self._folder / key
        try:
            head, _, body = path.read_bytes().partition(b"\n")
            fields = json.loads(head)
            if fields.pop("bytes") != len(body):
                return None
            os.utime(path)  # the least recently read are removed first
            return Reply(**fields, body=body, is_cached=True)
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _write(self, key: str, reply: Reply) -> None:
        head = json.dumps({**reply.head, "bytes": len(reply.body)})
        temporary = self._folder / f".{key}.{os.getpid()}"
        temporary.write_bytes(head.encode() + b"\n" + reply.body)
        os.replace(temporary, self._folder / key)
        self._writes += 1
        if self._writes % _WRITES == 1:
            self._remove_oldest()

    def _remove_oldest(self) -> None:
        files = []
        for entry in os.scandir(self._folder):
            with contextlib.suppress(OSError):
                status = entry.stat()
                files.append((status.st_mtime, status.st_size, entry.path))
        total = sum(size for _, size, _ in files)
        for _, size, path in sorted(files):
            if total <= MOST_BYTES:
                return
            with contextlib.suppress(OSError):
                os.unlink(path)
            total -= size
