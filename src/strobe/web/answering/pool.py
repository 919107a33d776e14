"""Worker processes that answer questions, each with a limit of memory and of time."""

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from strobe.processes.process import environment
from strobe.web.answering import wire
from strobe.web.question import PoolName

# Of the workers of a pool, those that may work on one run: the others are left to other runs.
MOST_ON_ONE_RUN = 2
# A worker that nobody asks ends, and frees the memory of the runs that it holds open.
IDLE_S = 300.0
# Longer than the largest known import takes: after that, something is wrong.
LONGEST_JOB_S = 1800.0
# Of the machine's memory: a worker that needs more is ended before the machine suffers.
MEMORY_RATIO = 0.6
_WATCH_EVERY_S = 1.0
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_MEMORY_BYTES = _PAGE_BYTES * os.sysconf("SC_PHYS_PAGES")
_START = "import sys; sys.path.pop(0); from strobe.web.answering.worker import main; main()"


@dataclass(frozen=True)
class Size:
    """The workers of a pool at most (one takes 150 MB and more), and their niceness."""

    most: int
    nice: int = 0


SIZES: dict[PoolName, Size] = {
    "files": Size(2),
    "quick": Size(2),
    "analysis": Size(4, nice=5),
    "background": Size(1, nice=19),
}


class WorkerDied(Exception):
    """The process ended in the middle of a job; the text is the reason, as far as known."""


@dataclass(eq=False)
class _Worker:
    """One process. It is started by its first job."""

    base_dir: Path
    nice: int
    run: str = ""  # that it was last asked about, and so holds open
    process: asyncio.subprocess.Process | None = None
    idle_since: float = field(default_factory=time.monotonic)
    is_killed: bool = False
    reason: str = ""  # why it was killed, if the user should know

    @property
    def is_alive(self) -> bool:
        return not self.is_killed and (self.process is None or self.process.returncode is None)

    async def ask(self, job: dict[str, Any]) -> AsyncGenerator[wire.Message, None]:
        """Messages up to the last one. Raises WorkerDied."""
        process = self.process = self.process or await _started(self.base_dir, self.nice)
        assert process.stdin is not None and process.stdout is not None
        watch = asyncio.create_task(self._watch(process.pid))
        is_over = False
        try:
            process.stdin.write(wire.pack(job))
            await process.stdin.drain()
            while not is_over:
                head, body = await wire.receive(process.stdout)
                is_over = head.get("last", False)
                yield head, body
        except (OSError, asyncio.IncompleteReadError) as error:
            code = await process.wait()
            raise WorkerDied(
                self.reason or f"the process that worked on it ended (exit code {code})"
            ) from error
        finally:
            watch.cancel()
            if not is_over:  # what still comes would be read as the answer to the next job
                self.kill()

    async def _watch(self, pid: int) -> None:
        """Kill the process when it takes too long or needs too much memory."""
        begun = time.monotonic()
        while not self.reason:
            await asyncio.sleep(_WATCH_EVERY_S)
            if time.monotonic() - begun > LONGEST_JOB_S:
                self.reason = f"it took longer than {LONGEST_JOB_S / 60:.0f} minutes"
            elif _memory_bytes(pid) > _MEMORY_BYTES * MEMORY_RATIO:
                gigabytes = _MEMORY_BYTES * MEMORY_RATIO / 1e9
                self.reason = f"it needed more than {gigabytes:.1f} GB of memory"
        self.kill()

    def kill(self) -> None:
        self.is_killed = True
        if self.process is not None:
            # It also closes our ends of the pipes: a full one would keep the transport open.
            with contextlib.suppress(ProcessLookupError):
                self.process._transport.close()  # type: ignore[attr-defined]


class WorkerPool:
    """Workers that are started when there is work and end when there is none."""

    def __init__(self, base_dir: Path, size: Size) -> None:
        self.size = size
        self._base_dir = base_dir
        self._idle: list[_Worker] = []
        self._busy: list[_Worker] = []
        self._ending: set[asyncio.Task[int]] = set()  # killed, until the system confirms it
        self._changed = asyncio.Condition()

    async def ask(self, job: dict[str, Any]) -> AsyncGenerator[wire.Message, None]:
        """Messages about a job: {"begun"}, then those of the worker. Raises WorkerDied.

        Closing the generator before its end kills the worker.
        """
        runs = job.get("runs") or [{"id": ""}]
        worker = await self._take(runs[0]["id"])
        try:
            yield {"begun": True}, b""
            async with contextlib.aclosing(worker.ask(job)) as messages:
                async for message in messages:
                    yield message
        finally:
            await self._give_back(worker)

    async def _take(self, run: str) -> _Worker:
        async with self._changed:
            while (worker := self._choose(run)) is None:
                await self._changed.wait()
            self._idle = [one for one in self._idle if one.is_alive and one is not worker]
            self._busy.append(worker)
            worker.run = run
            return worker

    def _choose(self, run: str) -> _Worker | None:
        """One that has the run open, else the one that was idle longest, else a new one."""
        if run and sum(worker.run == run for worker in self._busy) >= MOST_ON_ONE_RUN:
            return None
        idle = [worker for worker in self._idle if worker.is_alive]
        if idle:
            return next((worker for worker in idle if worker.run == run), idle[0])
        is_full = len(self._busy) >= self.size.most
        return None if is_full else _Worker(self._base_dir, self.size.nice)

    async def _give_back(self, worker: _Worker) -> None:
        async with self._changed:
            self._busy.remove(worker)
            if worker.is_alive:
                worker.idle_since = time.monotonic()
                self._idle.append(worker)
            else:
                self._end(worker)
            self._changed.notify_all()

    def retire(self, idle_s: float = IDLE_S) -> None:
        """End the workers that have been idle for this long."""
        for worker in self._idle:
            if time.monotonic() - worker.idle_since >= idle_s:
                self._end(worker)
        self._idle = [worker for worker in self._idle if worker.is_alive]

    def _end(self, worker: _Worker) -> None:
        worker.kill()
        if worker.process is not None:
            task = asyncio.create_task(worker.process.wait())
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    async def close(self) -> None:
        for worker in (*self._busy, *self._idle):
            self._end(worker)
        if self._ending:
            await asyncio.wait(self._ending, timeout=5)


async def _started(base_dir: Path, nice: int) -> asyncio.subprocess.Process:
    command = [sys.executable, "-c", _START, str(base_dir)]
    return await asyncio.create_subprocess_exec(
        *(["nice", "-n", str(nice)] if nice else []),
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=environment(),
        limit=1 << 20,
        start_new_session=True,
    )


def _memory_bytes(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/statm").read_text(encoding="ascii")
        return int(text.split()[1]) * _PAGE_BYTES
    except (OSError, IndexError, ValueError):
        return 0
