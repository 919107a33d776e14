"""From a question to its answer: kept, being worked out, or asked of a worker."""

import asyncio
import contextlib
import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from strobe.web.answer_cache import KeptAnswers
from strobe.web.lanes import MOST_WORKERS, Abandoned, LaneOfWorkers, Reply, WorkerDied
from strobe.web.question import Lane, Question

# A run is looked at anew after so long: a page asks many questions at once of one content.
CONTENT_S = 1.0
# A live run changes all the time: it is read anew at most so often, and reading it takes at most
# a part of the time.
LIVE_CONTENT_S = 5.0
LIVE_READING_RATIO = 0.25
# While somebody waits for an answer about a live run, and for as long as it may take to fetch it,
# the run counts as unchanged: else a slow question would be begun anew for ever. But not longer:
LONGEST_UNCHANGED_S = 120.0
FETCHING_S = 3.0
# What waits in line and was not asked for again so long is given up.
WANTED_S = 30.0
_LOOK_EVERY_S = 30.0

# What is said of an answer whose turn has not come.
WAITING = "waiting"


@dataclass
class Working:
    """The answer is being worked out; so far it has come so far."""

    what: str = WAITING
    done: int = 0
    of: int = 0
    begun: float = field(default_factory=time.monotonic)

    def to_json(self) -> dict[str, Any]:
        seconds = round(time.monotonic() - self.begun, 1)
        return {"what": self.what, "done": self.done, "of": self.of, "seconds": seconds}


@dataclass
class _InWork:
    task: "asyncio.Task[Reply]"
    working: Working
    wanted: float
    runs: tuple[str, ...]  # that somebody waits for an answer about
    lane: Lane

    def is_too_late_for(self, question: Question) -> bool:
        """Whether it waits in line behind other runs, and who asks now waits before a page."""
        is_in_line = self.lane == "background" and self.working.what == WAITING
        return is_in_line and question.lane != "background"


@dataclass
class _Content:
    text: str
    state: str
    until: float


class _Opening(NamedTuple):
    """Who opens a run, or waits in line to."""

    is_over: asyncio.Event
    working: Working
    lane: Lane


class Answers:
    """Everything the server knows of runs it knows through here."""

    def __init__(self, base_dir: Path, cache: Path) -> None:
        self.lanes: dict[Lane, LaneOfWorkers] = {
            name: LaneOfWorkers(name, base_dir) for name in MOST_WORKERS
        }
        self.kept = KeptAnswers(cache)
        self._in_work: dict[str, _InWork] = {}
        self._contents: dict[str, _Content] = {}
        self._asked_contents: dict[str, asyncio.Task[_Content]] = {}
        self._ready: set[str] = set()  # contents whose tables are known to be built
        self._opening: dict[str, _Opening] = {}
        self._reading_s: dict[str, float] = {}  # how long it took to open a run
        self._answered: dict[str, float] = {}  # when a question about a run was last answered

    async def content(self, run: str) -> tuple[str, str]:
        """What the run contains now, and its state. Raises Refused where there is no such run."""
        known = self._contents.get(run)
        if known is None or not self._is_fresh(run, known):
            task = self._asked_contents.get(run)
            if task is None:
                task = asyncio.create_task(self._look_at(run))
                self._asked_contents[run] = task
                task.add_done_callback(lambda _: self._asked_contents.pop(run, None))
            known = await asyncio.shield(task)
        return known.text, known.state

    def _is_fresh(self, run: str, known: _Content) -> bool:
        late_s = time.monotonic() - known.until
        if late_s < 0:
            return True
        if known.state != "live" or late_s > LONGEST_UNCHANGED_S:
            return False
        is_awaited = any(run in work.runs for work in self._in_work.values())
        return is_awaited or time.monotonic() - self._answered.get(run, -1e9) < FETCHING_S

    def forget_contents(self) -> None:
        self._contents.clear()

    async def ask(
        self,
        question: Question,
        runs: tuple[str, ...],
        words: tuple[str, ...],
        params: Mapping[str, str],
        wait_s: float | None,
    ) -> tuple[Reply | Working, str]:
        """The answer, or how far it has come, and the key that it is kept under."""
        contents = [(await self.content(run))[0] for run in runs]
        asked = [question.name, list(words), sorted(params.items()), list(runs), contents]
        key = hashlib.sha256(json.dumps(asked).encode()).hexdigest()
        if question.keep == "no":  # and never shared: its pieces can be read once
            message = _message(question, list(zip(runs, contents, strict=True)), words, params)
            return await self._work("", question, message, Working()), ""
        reply = self.kept.held(key)
        if reply is not None:
            return reply, key
        work = self._joinable(key, question)
        if work is None:
            if question.keep == "disk":
                reply = await self.kept.stored(key)
                if reply is not None:
                    return reply, key
            work = self._joinable(key, question) or self._begin(
                key, question, list(zip(runs, contents, strict=True)), words, params
            )
        work.wanted = time.monotonic()
        done, _ = await asyncio.wait({work.task}, timeout=wait_s)
        if not done:
            return work.working, key
        if isinstance(work.task.exception(), Abandoned):  # just when we began to want it
            return await self.ask(question, runs, words, params, wait_s)
        return work.task.result(), key

    def _joinable(self, key: str, question: Question) -> _InWork | None:
        """The work on the same answer, if it is worth waiting for."""
        work = self._in_work.get(key)
        return None if work is None or work.is_too_late_for(question) else work

    def _begin(
        self,
        key: str,
        question: Question,
        runs: list[tuple[str, str]],
        words: tuple[str, ...],
        params: Mapping[str, str],
    ) -> _InWork:
        message = _message(question, runs, words, params)
        working = Working()
        task = asyncio.create_task(self._work(key, question, message, working))
        waited_for = () if question.lane == "background" else tuple(run for run, _ in runs)
        work = self._in_work[key] = _InWork(
            task, working, time.monotonic(), waited_for, question.lane
        )

        def is_done(task: "asyncio.Task[Reply]") -> None:
            if self._in_work.get(key) is work:  # else a page has gone past what waited in line
                del self._in_work[key]
            if not task.cancelled():
                task.exception()  # looked at, lest asyncio complains of one that nobody wants
            self._answered |= dict.fromkeys(waited_for, time.monotonic())

        task.add_done_callback(is_done)
        return work

    async def _work(
        self, key: str, question: Question, message: dict[str, Any], working: Working
    ) -> Reply:
        def is_wanted() -> bool:
            work = self._in_work.get(key)
            if question.lane == "background":
                return self.kept.held(key) is None  # a page may have got the answer meanwhile
            return work is None or time.monotonic() - work.wanted < WANTED_S

        try:
            if question.lane == "quick" and question.keep == "no":
                reply = await self.lanes[question.lane].ask(message)
            else:
                reply = await self._ask_opened(question, message, working, is_wanted)
        except WorkerDied as error:
            reply = failure(503, f"this could not be worked out: {error}",
                            "try again; if it happens again, please report it")  # fmt: skip
        if reply.pieces is None and question.keep != "no":
            self.kept.hold(key, reply, briefly=question.keep == "briefly")
            if question.keep == "disk" and reply.status == 200:
                await self.kept.store(key, reply)
        return reply

    async def _ask_opened(
        self, question: Question, message: dict[str, Any], working: Working, is_wanted: Any
    ) -> Reply:
        """Several questions that find a run's tables missing must not all build them."""
        contents = {run["content"] for run in message["runs"]}
        while (busy := self._busy_one(contents, question)) is not None:
            event, theirs, _ = self._opening[busy]
            working.what, working.done, working.of = theirs.what, theirs.done, theirs.of
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(event.wait(), 0.2)
        opening = contents - self._ready
        for content in opening:
            self._opening[content] = _Opening(asyncio.Event(), working, question.lane)
        begun = time.monotonic()

        def note(head: dict[str, Any]) -> None:
            if "progress" in head:
                told = head["progress"]
                working.what, working.done, working.of = told["what"], told["done"], told["of"]
            elif "opened" in head and len(contents) == 1:
                self._is_open(opening, message, time.monotonic() - begun)

        try:
            reply = await self.lanes[question.lane].ask(message, note, is_wanted)
            if reply.status == 200:
                self._is_open(opening, message, None)
            return reply
        finally:
            self._let_others_in({c for c in opening if self._is_opening(c, working)})

    def _is_opening(self, content: str, working: Working) -> bool:
        """Another may have gone past who did not want to wait."""
        return content in self._opening and self._opening[content].working is working

    def _busy_one(self, contents: set[str], question: Question) -> str | None:
        """One that another question opens, and that is worth waiting for. A page does not wait for
        work in the background that itself still waits in line, behind other runs."""
        for content in contents & self._opening.keys():
            theirs = self._opening[content]
            is_in_line = theirs.lane == "background" and theirs.working.what == WAITING
            if not is_in_line or question.lane == "background":
                return content
        return None

    def _is_open(self, opening: set[str], message: dict[str, Any], seconds: float | None) -> None:
        self._ready |= opening
        self._let_others_in(opening)
        if seconds is not None:
            self._reading_s[message["runs"][0]["id"]] = seconds

    def _let_others_in(self, opening: set[str]) -> None:
        for content in opening:
            waiting = self._opening.pop(content, None)
            if waiting is not None:
                waiting.is_over.set()

    async def of_files(self, message: dict[str, Any]) -> Reply:
        """What the lane "files" answers: about the base directory itself."""
        try:
            return await self.lanes["files"].ask(message)
        except WorkerDied as error:
            return failure(503, f"the runs could not be looked at: {error}", "try again")

    async def _look_at(self, run: str) -> _Content:
        reply = await self.of_files({"question": "*content", "id": run})
        if reply.status != 200:
            self._contents.pop(run, None)
            raise Refused(reply)
        told = json.loads(reply.plain)
        kept_s = CONTENT_S
        if told["state"] == "live":
            kept_s = max(LIVE_CONTENT_S, self._reading_s.get(run, 0.0) / LIVE_READING_RATIO)
        content = _Content(told["content"], told["state"], time.monotonic() + kept_s)
        self._contents[run] = content
        return content

    async def tend(self) -> None:
        """For as long as the server runs: end workers that nobody needs."""
        while True:
            await asyncio.sleep(_LOOK_EVERY_S)
            for lane in self.lanes.values():
                await lane.retire()

    async def close(self) -> None:
        for work in list(self._in_work.values()):
            work.task.cancel()
        for lane in self.lanes.values():
            await lane.close()


class Refused(Exception):
    """An answer that says no, before any question could be asked."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.body)
        self.reply = reply


def _message(
    question: Question,
    runs: list[tuple[str, str]],
    words: tuple[str, ...],
    params: Mapping[str, str],
) -> dict[str, Any]:
    return {
        "question": question.name,
        "runs": [{"id": run, "content": content} for run, content in runs],
        "words": list(words),
        "params": dict(params),
    }


def failure(status: int, what: str, hint: str = "") -> Reply:
    body = json.dumps({"ok": False, "error": what, "hint": hint}, ensure_ascii=False)
    return Reply(status=status, body=body.encode("utf-8", "replace"))
