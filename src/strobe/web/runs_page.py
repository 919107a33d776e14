"""The list of runs: what is cheap to know about each, and a digest that comes in the background."""

import asyncio
import contextlib
import dataclasses
import json
import time
from typing import Any

from strobe.web.answering.answers import Answers
from strobe.web.answering.reply import Refused, Reply, as_reply
from strobe.web.questions import named

# A list is this fresh: a live run grows before the reader's eyes, and a thousand readers cost as
# much as one.
FRESH_S = 1.0
# The digest of a live run is made again at most this often, and takes at most this part of the
# time: the training runs on the same machine.
LIVE_EVERY_S = 10.0
LIVE_RATIO = 0.1
_OF_DIGEST = ("steps", "step_ns", "finding", "verdict", "problems")


@dataclasses.dataclass(frozen=True)
class _Digest:
    content: str
    until: float  # of a live run, which has new content all the time
    values: dict[str, Any]


class RunsPage:
    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._list: Reply | None = None
        self._listed_at = float("-inf")
        self._listing: asyncio.Task[Reply] | None = None
        self._digests: dict[str, _Digest] = {}  # by run
        self._missing: dict[str, dict[str, Any]] = {}  # runs of the list without a digest, by id
        self._digesting: asyncio.Task[None] | None = None

    async def listing(self) -> Reply:
        """As fresh as possible without waiting, except for the first."""
        if self._listing is None and time.monotonic() - self._listed_at > FRESH_S:
            self._listing = asyncio.create_task(self._read())
        if self._list is not None:
            if self._listing is not None:  # mostly fast enough to wait for
                await asyncio.wait({self._listing}, timeout=FRESH_S / 2)
            return self._list
        assert self._listing is not None
        return await asyncio.shield(self._listing)

    def forget(self) -> None:
        self._listed_at, self._list = float("-inf"), None

    def verdicts(self) -> dict[str, str]:
        """Those of the runs that have a digest, by the run's id."""
        found = {run: digest.values.get("verdict") for run, digest in self._digests.items()}
        return {run: verdict for run, verdict in found.items() if verdict}

    def close(self) -> None:
        if self._digesting is not None:
            self._digesting.cancel()

    async def _read(self) -> Reply:
        try:
            reply = await self._answers.ask_files({"question": "*listing"})
            if reply.status != 200:
                return reply
            listing = json.loads(reply.plain)
            listing["runs"].sort(key=lambda run: run["started_at"] or "", reverse=True)
            self._missing = {}
            for run in listing["runs"]:
                self._add_digest(run)
            if self._missing and self._digesting is None:
                self._digesting = asyncio.create_task(self._digest_missing())
            self._list, self._listed_at = as_reply(listing), time.monotonic()
            return self._list
        finally:
            self._listing = None

    def _add_digest(self, run: dict[str, Any]) -> None:
        known = self._digests.get(run["id"])
        values = known.values if known is not None else {}
        run.update({name: values.get(name) for name in _OF_DIGEST})
        if "error" in values:
            run["problem"] = values["error"]
            run["state"] = run["state"] if run["state"] == "live" else "broken"
        if run.get("content") and not _is_current(known, run):
            self._missing[run["id"]] = run
        without = "working" if run["id"] in self._missing else "missing"
        run["digest"] = "ready" if values else without

    async def _digest_missing(self) -> None:
        """One after the other, the first of the list first: so that nothing waits in line where a
        page that wants the same answer would have to wait too."""
        try:
            while self._missing:
                run = self._missing.pop(next(iter(self._missing)))
                with contextlib.suppress(Refused):
                    await self._digest(run["id"], run["content"], run["state"] == "live")
        finally:
            self._digesting = None

    async def _digest(self, run: str, content: str, is_live: bool) -> None:
        """Its summary and advice are then in the cache for the reader who opens the run."""
        begun = time.monotonic()
        summary = await self._ask("summary", run)
        advice = await self._ask("advice", run)
        if 404 in (summary.status, advice.status):  # removed: it may come back, and be readable
            return
        answers = {**json.loads(summary.plain), **json.loads(advice.plain)}
        now = time.monotonic()
        until = now + max(LIVE_EVERY_S, (now - begun) / LIVE_RATIO)
        self._digests[run] = _Digest(content, until, _digest_of(answers))
        # That of a live run would soon be old; what comes from the cache was followed by one.
        if answers.get("ok") and not is_live and not advice.is_cached:
            await self._ask("timeline/index", run)

    async def _ask(self, name: str, run: str) -> Reply:
        question = dataclasses.replace(named(name), pool="background")
        return (await self._answers.ask(question, (run,), (), {}, None))[0]


def _is_current(digest: _Digest | None, run: dict[str, Any]) -> bool:
    if digest is None:
        return False
    is_recent = run["state"] == "live" and time.monotonic() < digest.until
    return is_recent or digest.content == run["content"]


def _digest_of(answers: dict[str, Any]) -> dict[str, Any]:
    if not answers.get("ok"):
        return {"error": answers.get("error", "")}
    summary = answers["summary"]
    whole_step: dict[str, Any] = next(iter(summary["steps"]["parts"]), {})
    finding = next(iter(answers["findings"]), None)
    shown = ("rule", "title", "share", "expected_speedup")
    return {
        "steps": summary["recorded"]["steps"],
        "step_ns": whole_step.get("median_ns"),
        "finding": None if finding is None else {name: finding[name] for name in shown},
        "verdict": answers["verdict"],
        "problems": sum(problem["count"] for problem in summary["problems"]),
    }
