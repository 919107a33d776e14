"""From a question to its answer: stored, being worked out, or asked of a worker.

An answer belongs to a question and to what the run contains. Requests for the same answer share
one `_Work`, which first looks into the cache. The tables of a run are built by one worker, and
every other question about the run waits until they are there.
"""

import asyncio
import contextlib
import hashlib
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from strobe.web.answering.cache import AnswerCache
from strobe.web.answering.pool import SIZES, WorkerDied, WorkerPool
from strobe.web.answering.reply import Refused, Reply, failure
from strobe.web.answering.wire import Message
from strobe.web.question import PoolName, Question

# A page asks many questions at once, so what a run contains is read at most this often;
CONTENT_S = 1.0
# less often while it is recorded, because new content means building the tables again,
LIVE_CONTENT_S = 5.0
# and so that working on it takes at most this part of the time.
LIVE_RATIO = 0.25
# A finished answer stays for pages that were answered 202 and ask again.
FETCH_S = 5.0
# Work that still waits for a worker is cancelled when no page has asked for it for this long.
WANTED_S = 10.0
_TEND_EVERY_S = 10.0
_FOREVER = float("inf")

Job = dict[str, Any]


@dataclass
class Progress:
    """How far an answer has come that is being worked out."""

    what: str = "waiting"
    done: int = 0
    of: int = 0

    def update(self, what: str, done: int, of: int) -> None:
        self.what, self.done, self.of = what, done, of


@dataclass(eq=False)
class _Work:
    """An answer that is being worked out, for all requests that want it."""

    runs: tuple[str, ...]
    progress: Progress = field(default_factory=Progress)
    begun: float = 0.0
    wanted: float = 0.0  # when a request last asked for it
    has_worker: bool = False
    task: "asyncio.Task[Reply]" = field(init=False)

    def to_json(self) -> dict[str, Any]:
        seconds = round(time.monotonic() - self.begun, 1)
        return {**vars(self.progress), "seconds": seconds}


@dataclass
class _Content:
    """What a run contains, as a short text, and until when that is taken for granted."""

    text: str
    state: str
    until: float


class Working(Exception):
    """The answer is not there yet; `progress` says how far it has come."""

    def __init__(self, progress: dict[str, Any]) -> None:
        super().__init__(progress)
        self.progress = progress


class Answers:
    """Everything that the server knows about runs comes through here."""

    def __init__(self, base_dir: Path, cache: Path) -> None:
        self.pools = {name: WorkerPool(base_dir, size) for name, size in SIZES.items()}
        self._cache = AnswerCache(cache)
        self._contents: dict[str, asyncio.Task[_Content]] = {}  # by run
        self._works: dict[str, _Work] = {}  # by key
        self._built: dict[str, str] = {}  # by run: the content that its tables were built from

    async def content(self, run: str) -> str:
        """What the run contains now. Raises Refused where there is no such run."""
        known = self._contents.get(run)
        if known is None or (known.done() and not self._is_fresh(run, known)):
            known = self._contents[run] = asyncio.create_task(self._read_content(run))
        return (await asyncio.shield(known)).text

    def _is_fresh(self, run: str, known: "asyncio.Task[_Content]") -> bool:
        """While an answer about a live run is worked out, the content of the run stays: else a
        page that asks for a slow answer again would start the work again each time."""
        if known.exception() is not None:
            return False
        content = known.result()
        is_live = content.state == "live"
        return time.monotonic() < content.until or (is_live and self._is_worked_on(run))

    def _is_worked_on(self, run: str) -> bool:
        return any(run in work.runs and not work.task.done() for work in self._works.values())

    async def _read_content(self, run: str) -> _Content:
        reply = await self.ask_files({"question": "*content", "id": run})
        if reply.status != 200:
            self._contents.pop(run, None)
            raise Refused(reply)
        answer = json.loads(reply.plain)
        fresh_s = LIVE_CONTENT_S if answer["state"] == "live" else CONTENT_S
        return _Content(answer["content"], answer["state"], time.monotonic() + fresh_s)

    def forget_contents(self) -> None:
        self._contents.clear()

    async def ask_files(self, job: Job) -> Reply:
        """Ask about the base directory itself."""
        try:
            return await _whole(self._asked("files", job, _Work(())))
        except WorkerDied as error:
            return failure(503, f"the runs could not be looked at: {error}", "try again")

    async def ask(
        self,
        question: Question,
        runs: tuple[str, ...],
        words: tuple[str, ...],
        params: Mapping[str, str],
        wait_s: float | None,
    ) -> tuple[Reply, str]:
        """The answer, and its key. Raises Working if it takes longer than `wait_s`, or Refused."""
        contents = [{"id": run, "content": await self.content(run)} for run in runs]
        job = {"question": question.name, "runs": contents, "words": words, "params": dict(params)}
        if question.keep == "no":
            return await self._answer(question, job, _Work(runs)), ""
        key = hashlib.sha256(json.dumps(job, sort_keys=True).encode()).hexdigest()
        work = self._works.get(key)
        if work is None:
            work = _Work(runs)
            self._begin(key, work, self._cached_answer(key, question, job, work))
        work.wanted = max(work.wanted, _FOREVER if wait_s is None else time.monotonic())
        done, _ = await asyncio.wait({work.task}, timeout=wait_s)
        if not done:
            raise Working(work.to_json())
        return work.task.result(), key

    def _begin(self, key: str, work: _Work, answer: Coroutine[Any, Any, Reply]) -> None:
        def end(task: "asyncio.Task[Reply]") -> None:
            self._let_rest(work)
            if task.cancelled() or task.exception() is not None:
                self._works.pop(key)
            else:
                asyncio.get_running_loop().call_later(FETCH_S, self._works.pop, key)

        self._works[key] = work
        work.begun = time.monotonic()
        work.task = asyncio.create_task(answer)
        work.task.add_done_callback(end)

    def _let_rest(self, work: _Work) -> None:
        """The longer an answer about a live run took, the longer its content stays afterwards."""
        until = work.begun + (time.monotonic() - work.begun) / LIVE_RATIO
        for run in work.runs:
            known = self._contents.get(run)
            if known is not None and known.done() and known.exception() is None:
                content = known.result()
                if content.state == "live":
                    content.until = max(content.until, until)

    async def _cached_answer(self, key: str, question: Question, job: Job, work: _Work) -> Reply:
        if question.keep == "disk":
            cached = await self._cache.read(key)
            if cached is not None:
                return cached
        reply = await self._answer(question, job, work)
        if question.keep == "disk" and reply.status == 200:
            await self._cache.write(key, reply)
        return reply

    async def _answer(self, question: Question, job: Job, work: _Work) -> Reply:
        try:
            if question.pool != "quick":
                refusal = await self._build_tables(question.pool, job, work)
                if refusal is not None:
                    return refusal
            messages = self._asked(question.pool, job, work)
            return await (_in_pieces if question.keep == "no" else _whole)(messages)
        except WorkerDied as error:
            return failure(503, f"this could not be worked out: {error}",
                            "try again; if it happens again, please report it")  # fmt: skip

    async def _build_tables(self, pool: PoolName, job: Job, work: _Work) -> Reply | None:
        """Let one worker open each run, which builds its tables. Returns the reply if it fails."""
        for run in job["runs"]:
            if self._built.get(run["id"]) == run["content"]:
                continue
            key = f"*open {run['id']} {run['content']}"
            opening = self._works.get(key)
            if opening is None:
                opening = _Work(work.runs, wanted=_FOREVER)
                open_job = {"question": "*open", "runs": [run], "words": (), "params": {}}
                self._begin(key, opening, _whole(self._asked(pool, open_job, opening)))
            work.progress = opening.progress
            reply = await asyncio.shield(opening.task)
            if reply.status != 200:
                return reply
            self._built[run["id"]] = run["content"]
        work.progress = Progress()
        return None

    async def _asked(self, pool: PoolName, job: Job, work: _Work) -> AsyncGenerator[Message, None]:
        """Messages of a worker, from the answer's head on."""
        async with contextlib.aclosing(self.pools[pool].ask(job)) as messages:
            async for head, body in messages:
                if "begun" in head:
                    work.has_worker = True
                    work.progress.update("working it out", 0, 0)
                elif "progress" in head:
                    work.progress.update(**head["progress"])
                else:
                    yield head, body

    async def tend(self) -> None:
        """As long as the server runs: cancel what nobody wants, and end idle workers."""
        while True:
            await asyncio.sleep(_TEND_EVERY_S)
            self.cancel_unwanted()
            for pool in self.pools.values():
                pool.retire()

    def cancel_unwanted(self) -> None:
        """A page that was left asks for nothing any more; what waits in line for it can go."""
        for work in list(self._works.values()):
            if not work.has_worker and time.monotonic() - work.wanted > WANTED_S:
                work.task.cancel()

    async def close(self) -> None:
        for work in list(self._works.values()):
            work.task.cancel()
        for pool in self.pools.values():
            await pool.close()


async def _whole(messages: AsyncGenerator[Message, None]) -> Reply:
    reply = await _in_pieces(messages)
    if reply.pieces is not None:
        reply.body = b"".join([piece async for piece in reply.pieces])
        reply.pieces = None
    return reply


async def _in_pieces(messages: AsyncGenerator[Message, None]) -> Reply:
    """The reply as soon as its head is there."""
    head, body = await anext(messages)
    reply = Reply(**head["reply"], body=body)
    if head["last"]:
        await messages.aclose()
    else:
        reply.pieces = _pieces(body, messages)
    return reply


async def _pieces(first: bytes, messages: AsyncGenerator[Message, None]) -> AsyncIterator[bytes]:
    """Closing it early ends the worker, which would go on sending."""
    async with contextlib.aclosing(messages):
        yield first
        async for head, body in messages:
            if head.get("failed"):
                raise WorkerDied("the answer broke off half-way")
            yield body
