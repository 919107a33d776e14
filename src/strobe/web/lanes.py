"""The worker processes of the server, in lanes: a slow question never stands before a quick one."""

import asyncio
import contextlib
import gzip
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import strobe
from strobe.web import wire
from strobe.web.question import JSON, Lane

# Workers at most, and how far they stand back for others (nice). A worker takes 150 MB and up.
MOST_WORKERS: dict[Lane, int] = {"files": 2, "quick": 2, "analysis": 6, "background": 1}
NICE: dict[Lane, int] = {"files": 0, "quick": 0, "analysis": 5, "background": 19}
# Of them, those that may work on one run: the others are left to other runs.
MOST_ON_ONE_RUN = 2
# A worker that nobody asks ends, and with it the memory of the runs it holds open.
IDLE_S = 300.0
# Longer than the largest import we know takes; then something is wrong.
LONGEST_JOB_S = 1800.0
# Of the machine's memory: a worker that takes more is ended before the machine suffers.
MEMORY_RATIO = 0.6
_LOOK_EVERY_S = 1.0
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_MEMORY_BYTES = _PAGE_BYTES * os.sysconf("SC_PHYS_PAGES")
_START = "import sys; sys.path.pop(0); from strobe.web.worker import main; main()"

Note = Callable[[dict[str, Any]], None]


class WorkerDied(Exception):
    """The process ended in the middle of a job; the words say why, as far as known."""


class Abandoned(Exception):
    """Nobody waits for this answer any more."""


@dataclass
class Reply:
    """An answer as it came from a worker: whole, or in pieces that are still coming."""

    status: int = 200
    media_type: str = JSON
    file_name: str = ""
    is_packed: bool = False
    body: bytes = b""
    pieces: AsyncIterator[bytes] | None = None

    @property
    def plain(self) -> bytes:
        return gzip.decompress(self.body) if self.is_packed else self.body


@dataclass
class _Worker:
    process: asyncio.subprocess.Process
    run: str = ""  # last asked about, and so held open
    idle_since: float = field(default_factory=time.monotonic)
    why: str = ""  # it was ended, if it was for a reason that others should hear
    is_killed: bool = False  # it takes a moment until it is gone

    async def ask(self, message: dict[str, Any], note: Note) -> Reply:
        watch = asyncio.create_task(self._watch())
        try:
            reply = await self._ask(message, note)
        except BaseException:
            watch.cancel()
            raise
        if reply.pieces is None:
            watch.cancel()
        else:
            reply.pieces = self._until_done(reply.pieces, watch)
        return reply

    async def _until_done(
        self, pieces: AsyncIterator[bytes], watch: "asyncio.Task[None]"
    ) -> AsyncIterator[bytes]:
        try:
            async for piece in pieces:
                yield piece
        finally:
            watch.cancel()

    async def _ask(self, message: dict[str, Any], note: Note) -> Reply:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(wire.pack(message))
            await self.process.stdin.drain()
        except (BrokenPipeError, ConnectionResetError) as error:
            raise await self._death() from error
        while True:
            head, body = await self._next()
            if "progress" in head or "opened" in head:
                note(head)
                continue
            reply = Reply(head["status"], head["type"], head["file_name"], head["is_packed"], body)
            if not head["last"]:
                reply.pieces = self._pieces(body)
            return reply

    async def _pieces(self, first: bytes) -> AsyncIterator[bytes]:
        yield first
        while True:
            head, body = await self._next()
            if "progress" in head or "opened" in head:
                continue
            if head.get("failed"):
                raise WorkerDied("the answer broke off half-way")
            if body:
                yield body
            if head["last"]:
                return

    async def _next(self) -> tuple[dict[str, Any], bytes]:
        assert self.process.stdout is not None
        try:
            lengths = await self.process.stdout.readexactly(wire.LENGTHS.size)
            of_head, of_body = wire.LENGTHS.unpack(lengths)
            head = json.loads(await self.process.stdout.readexactly(of_head))
            return head, await self.process.stdout.readexactly(of_body)
        except asyncio.IncompleteReadError as error:
            raise await self._death() from error

    async def _death(self) -> WorkerDied:
        code = await self.process.wait()
        return WorkerDied(self.why or f"the process that worked on it ended (exit code {code})")

    async def _watch(self) -> None:
        """Ends the process when it takes too long or too much."""
        begun = time.monotonic()
        while True:
            await asyncio.sleep(_LOOK_EVERY_S)
            if time.monotonic() - begun > LONGEST_JOB_S:
                self.why = f"it took longer than {LONGEST_JOB_S / 60:.0f} minutes"
                return self.kill()
            if self._memory_bytes() > _MEMORY_BYTES * MEMORY_RATIO:
                gigabytes = _MEMORY_BYTES * MEMORY_RATIO / 1e9
                self.why = f"it needed more than {gigabytes:.1f} GB of memory"
                return self.kill()

    def _memory_bytes(self) -> int:
        try:
            text = Path(f"/proc/{self.process.pid}/statm").read_text(encoding="ascii")
            return int(text.split()[1]) * _PAGE_BYTES
        except (OSError, IndexError, ValueError):
            return 0

    def kill(self) -> None:
        """The process, and our ends of its pipes: one that is full would stay open for ever."""
        self.is_killed = True
        with contextlib.suppress(ProcessLookupError):
            self.process._transport.close()  # type: ignore[attr-defined]

    @property
    def is_alive(self) -> bool:
        return self.process.returncode is None and not self.is_killed


class LaneOfWorkers:
    """Workers that are started when there is work and end when there is none."""

    def __init__(self, name: Lane, base_dir: Path) -> None:
        self.name = name
        self._base_dir = base_dir
        self._idle: list[_Worker] = []
        self._busy: list[_Worker] = []
        self._ending: set[asyncio.Task[int]] = set()  # ended, until the system says so
        self._starting = 0
        self._changed = asyncio.Condition()

    async def ask(
        self, message: dict[str, Any], note: Note = lambda head: None,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> Reply:  # fmt: skip
        """Raises WorkerDied, or Abandoned where nobody wants it by the time it is its turn."""
        runs = message.get("runs") or [{"id": ""}]
        worker = await self._take(runs[0]["id"], is_wanted)
        note({"progress": {"what": "working it out", "done": 0, "of": 0}})
        reply = None
        try:
            reply = await worker.ask(message, note)
            return reply
        except asyncio.CancelledError:
            worker.kill()  # in the middle of something that nobody will fetch
            raise
        finally:
            if reply is not None and reply.pieces is not None:
                reply.pieces = self._then_give_back(reply.pieces, worker)
            else:
                await self._give_back(worker)

    async def _then_give_back(
        self, pieces: AsyncIterator[bytes], worker: _Worker
    ) -> AsyncIterator[bytes]:
        is_over = False
        try:
            async for piece in pieces:
                yield piece
            is_over = True
        finally:
            if not is_over:
                worker.kill()  # the reader left: what is still coming would mix with the next
            await self._give_back(worker)

    async def _take(self, run: str, is_wanted: Callable[[], bool]) -> _Worker:
        async with self._changed:
            while is_wanted():
                worker = self._choose(run)
                if worker is not None:
                    self._idle.remove(worker)
                    worker.run = run
                    self._busy.append(worker)
                    return worker
                if self._may_start(run):
                    self._starting += 1
                    break
                await self._changed.wait()
            else:
                raise Abandoned
        try:
            worker = await self._start()
            worker.run = run
            self._busy.append(worker)
            return worker
        finally:
            async with self._changed:
                self._starting -= 1
                self._changed.notify_all()

    def _choose(self, run: str) -> _Worker | None:
        """One that has the run open, or else the one that was idle longest."""
        for worker in [worker for worker in self._idle if not worker.is_alive]:
            self._idle.remove(worker)
            self._end(worker)
        if not self._idle or self._is_crowded(run):
            return None
        return next((worker for worker in self._idle if worker.run == run), self._idle[0])

    def _may_start(self, run: str) -> bool:
        count = len(self._busy) + len(self._idle) + self._starting
        return count < MOST_WORKERS[self.name] and not self._is_crowded(run)

    def _is_crowded(self, run: str) -> bool:
        return bool(run) and sum(w.run == run for w in self._busy) >= MOST_ON_ONE_RUN

    async def _start(self) -> _Worker:
        package = str(Path(strobe.__file__).parents[1])
        paths = [package, os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        niceness = NICE[self.name]
        process = await asyncio.create_subprocess_exec(
            *(["nice", "-n", str(niceness)] if niceness else []),
            sys.executable, "-c", _START, str(self._base_dir),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, env=environment,
            limit=1 << 20, start_new_session=True,
        )  # fmt: skip
        return _Worker(process)

    async def _give_back(self, worker: _Worker) -> None:
        async with self._changed:
            self._busy.remove(worker)
            if worker.is_alive:
                worker.idle_since = time.monotonic()
                self._idle.append(worker)
            else:
                self._end(worker)
            self._changed.notify_all()

    def _end(self, worker: _Worker) -> None:
        worker.kill()
        task = asyncio.create_task(worker.process.wait())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def retire(self, idle_s: float = IDLE_S) -> None:
        """End workers that nobody asked for so long."""
        now = time.monotonic()
        old = [worker for worker in self._idle if now - worker.idle_since >= idle_s]
        for worker in old:
            self._idle.remove(worker)
            self._end(worker)

    async def close(self) -> None:
        for worker in (*self._busy, *self._idle):
            self._end(worker)
        if self._ending:
            await asyncio.wait(self._ending, timeout=5)
