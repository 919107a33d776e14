"""The list of runs: what is cheaply known of each, and what was worked out in the background."""

import asyncio
import contextlib
import dataclasses
import json
import time
from typing import Any

from strobe.web.answers import Answers, Refused
from strobe.web.lanes import Reply
from strobe.web.questions import named

# A listing is that fresh: a live run is seen to grow, and a thousand readers cost one look.
FRESH_S = 1.0
# Runs whose digest is being worked out at once; the next follow when the list is next asked for.
MOST_IN_WORK = 16
# The digest of a live run is worked out anew at most so often, and takes at most that part of the
# time: the training runs on the same machine.
LIVE_EVERY_S = 10.0
LIVE_RATIO = 0.1
_OF_DIGEST = ("steps", "step_ns", "finding", "verdict", "problems")


class RunsPage:
    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._looked = float("-inf")
        self._listed: Reply | None = None
        self._looking: asyncio.Task[Reply] | None = None
        self._digests: dict[str, dict[str, Any]] = {}  # by content
        self._newest: dict[str, tuple[str, float]] = {}  # run: content of its last digest, until
        self._in_work: dict[str, asyncio.Task[None]] = {}  # by content

    async def listing(self) -> Reply:
        """As fresh as it can be without waiting, but for the very first."""
        if self._looking is None and time.monotonic() - self._looked > FRESH_S:
            self._looking = asyncio.create_task(self._look())
        if self._listed is not None:
            if self._looking is not None:  # most looks are quick: wait for those
                await asyncio.wait({self._looking}, timeout=FRESH_S / 2)
            return self._listed
        assert self._looking is not None
        return await asyncio.shield(self._looking)

    def forget(self) -> None:
        self._looked, self._listed = float("-inf"), None

    def close(self) -> None:
        for task in self._in_work.values():
            task.cancel()

    async def _look(self) -> Reply:
        try:
            reply = await self._answers.of_files({"question": "*listing"})
            if reply.status != 200:
                return reply
            told = json.loads(reply.plain)
            told["runs"].sort(key=lambda run: run["started_at"] or "", reverse=True)
            for run in told["runs"]:
                self._add_digest(run)
            body = json.dumps(told, ensure_ascii=False).encode("utf-8", "replace")
            self._listed = Reply(body=body)
            self._looked = time.monotonic()
            return self._listed
        finally:
            self._looking = None

    def _add_digest(self, run: dict[str, Any]) -> None:
        content = run.get("content", "")
        known, until = self._newest.get(run["id"], ("", float("-inf")))
        is_live = run["state"] == "live"
        is_fresh = content in self._digests or (is_live and known and time.monotonic() < until)
        digest = self._digests.get(content) or self._digests.get(known, {})
        run.update({name: digest.get(name) for name in _OF_DIGEST})
        if "error" in digest:
            run["problem"] = digest["error"]
            run["state"] = run["state"] if is_live else "broken"
        run["digest"] = "ready" if digest else "missing"
        if not content or is_fresh:
            return
        run["digest"] = "ready" if digest else "working"
        if content not in self._in_work and len(self._in_work) < MOST_IN_WORK:
            task = asyncio.create_task(self._digest(run["id"], content, is_live))
            self._in_work[content] = task
            task.add_done_callback(lambda _: self._in_work.pop(content, None))

    async def _digest(self, run: str, content: str, is_live: bool) -> None:
        """Its summary and advice, which are then there at once for who opens it."""
        told: dict[str, Any] = {}
        begun = time.monotonic()
        try:
            for name in ("summary", "advice"):
                question = dataclasses.replace(named(name), lane="background")
                reply, _ = await self._answers.ask(question, (run,), (), {}, None)
                assert isinstance(reply, Reply)
                if reply.status == 404:  # removed: if it comes back, nothing is known against it
                    return
                told |= json.loads(reply.plain)
        except Refused:
            return
        self._digests[content] = _digest_of(told)
        old, _ = self._newest.get(run, ("", 0.0))
        if old != content:
            self._digests.pop(old, None)
        now = time.monotonic()
        self._newest[run] = (content, now + max(LIVE_EVERY_S, (now - begun) / LIVE_RATIO))
        if told.get("ok") and not is_live:  # the timeline of one that still grows would soon be old
            question = dataclasses.replace(named("timeline/index"), lane="background")
            with contextlib.suppress(Refused):
                await self._answers.ask(question, (run,), (), {}, None)


def _digest_of(told: dict[str, Any]) -> dict[str, Any]:
    if not told.get("ok"):
        return {"error": told.get("error", "")}
    summary = told["summary"]
    whole_step: dict[str, Any] = next(iter(summary["steps"]["parts"]), {})
    finding = next(iter(told["findings"]), None)
    shown = ("rule", "title", "share", "expected_speedup")
    return {
        "steps": summary["recorded"]["steps"],
        "step_ns": whole_step.get("median_ns"),
        "finding": None if finding is None else {name: finding[name] for name in shown},
        "verdict": told["verdict"],
        "problems": sum(problem["count"] for problem in summary["problems"]),
    }
