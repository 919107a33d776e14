"""The list of runs: one look for many readers, and digests from the background."""

import asyncio
import json

from strobe.web.answering.reply import Reply
from strobe.web.runs_page import RunsPage

SUMMARY = {
    "ok": True,
    "summary": {
        "recorded": {"steps": 7}, "steps": {"parts": [{"median_ns": 5}]},
        "problems": [{"count": 2}, {"count": 3}],
    },
}  # fmt: skip
FINDING = {"rule": "r", "title": "t", "share": 0.5, "expected_speedup": 2.0, "fixes": ["f"]}
ADVICE = {"ok": True, "verdict": "v", "findings": [FINDING]}


class Answers:
    """Stands for the workers."""

    def __init__(self, *runs: dict) -> None:
        self.runs, self.looks, self.asked = list(runs), 0, []
        self.is_cached = False
        self.told = {"summary": SUMMARY, "advice": ADVICE, "timeline/index": {"ok": True}}

    async def ask_files(self, job):
        self.looks += 1
        await asyncio.sleep(0.05)
        body = json.dumps({"ok": True, "base_dir": "b", "runs": self.runs})
        return Reply(body=body.encode())

    async def ask(self, question, runs, words, params, wait_s):
        assert question.pool == "background"
        self.asked.append((question.name, runs[0]))
        told = self.told[question.name]
        status = 200 if told["ok"] else told.get("status", 422)
        is_cached = self.is_cached and question.keep == "disk"
        reply = Reply(status=status, body=json.dumps(told).encode(), is_cached=is_cached)
        return reply, "key"


def run(name, state="finished", content="c", started="2026"):
    return {"id": name, "state": state, "content": content, "started_at": started, "problem": None}


def listed(reply):
    return json.loads(reply.body)["runs"]


def test_many_readers_cost_one_look_and_the_newest_run_is_first():
    async def test():
        answers = Answers(run("old", started="2025", content="a"), run("new", content="b"))
        page = RunsPage(answers)
        replies = await asyncio.gather(*(page.listing() for _ in range(50)))
        return answers.looks, [[r["id"] for r in listed(reply)] for reply in replies]

    looks, names = asyncio.run(test())
    assert looks == 1 and names == [["new", "old"]] * 50


def test_digests_come_in_the_background_once_for_each_content():
    async def test():
        answers = Answers(run("a"))
        page = RunsPage(answers)
        first = listed(await page.listing())
        await asyncio.sleep(0.05)
        page.forget()
        second = listed(await page.listing())
        page.forget()
        await page.listing()
        return first[0], second[0], answers.asked

    first, second, asked = asyncio.run(test())
    assert first["digest"] == "working" and first["steps"] is None
    assert second["digest"] == "ready" and (second["steps"], second["step_ns"]) == (7, 5)
    assert second["finding"] == {k: v for k, v in FINDING.items() if k != "fixes"}
    assert second["problems"] == 5
    assert asked == [("summary", "a"), ("advice", "a"), ("timeline/index", "a")]


def test_a_run_that_cannot_be_read_is_broken_and_says_why():
    async def test():
        answers = Answers(run("a"))
        answers.told["summary"] = {"ok": False, "error": "cut in half", "hint": ""}
        answers.told["advice"] = {"ok": False, "error": "cut in half", "hint": ""}
        page = RunsPage(answers)
        await page.listing()
        await asyncio.sleep(0.05)
        page.forget()
        return listed(await page.listing())[0]

    told = asyncio.run(test())
    assert told["state"] == "broken" and told["problem"] == "cut in half"


def test_nothing_is_held_against_a_run_that_was_removed_and_comes_back():
    async def test():
        answers = Answers(run("a"))
        gone = {"ok": False, "error": "no such run", "status": 404}
        answers.told |= {"summary": gone, "advice": gone}
        page = RunsPage(answers)
        await page.listing()
        await asyncio.sleep(0.05)
        answers.told |= {"summary": SUMMARY, "advice": ADVICE}
        answers.runs = [run("b")]  # under another name, with the same content
        page.forget()
        first = listed(await page.listing())[0]
        await asyncio.sleep(0.05)
        page.forget()
        return first, listed(await page.listing())[0]

    first, second = asyncio.run(test())
    assert (first["state"], first["digest"], first["problem"]) == ("finished", "working", None)
    assert second["digest"] == "ready"


def test_a_live_run_keeps_its_last_digest_for_a_while():
    async def test():
        answers = Answers(run("a", "live", "c1"))
        page = RunsPage(answers)
        await page.listing()
        await asyncio.sleep(0.05)
        answers.runs = [run("a", "live", "c2")]
        page.forget()
        told = listed(await page.listing())[0]
        return told, len(answers.asked)

    told, asked = asyncio.run(test())
    assert told["digest"] == "ready" and told["steps"] == 7 and asked == 2


def test_the_timeline_is_prepared_only_for_runs_that_were_not_digested_before():
    async def test():
        answers = Answers(run("a"))
        answers.is_cached = True
        page = RunsPage(answers)
        await page.listing()
        await asyncio.sleep(0.05)
        return answers.asked

    assert asyncio.run(test()) == [("summary", "a"), ("advice", "a")]


def test_runs_are_digested_one_after_the_other_the_newest_first():
    class Slow(Answers):
        most = now = 0

        async def ask(self, *asked):
            self.now += 1
            self.most = max(self.most, self.now)
            await asyncio.sleep(0)
            self.now -= 1
            return await super().ask(*asked)

    async def test():
        answers = Slow(*(run(str(n), content=str(n), started=str(2000 + n)) for n in range(20)))
        page = RunsPage(answers)
        await page.listing()
        await asyncio.sleep(0.05)
        page.forget()
        return answers, listed(await page.listing())

    answers, runs = asyncio.run(test())
    assert answers.most == 1 and all(told["digest"] == "ready" for told in runs)
    first = [name for question, name in answers.asked if question == "summary"]
    assert first == [str(n) for n in reversed(range(20))]
