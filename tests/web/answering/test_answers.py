"""Requests share work: one opens a run for all, and the same answer is worked out once."""

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from strobe.ingest.building.opening import open_run_dir
from strobe.web.answering import answers as module
from strobe.web.answering import pool
from strobe.web.answering.answers import Answers, Working
from strobe.web.answering.pool import WorkerDied
from strobe.web.answering.reply import Refused
from strobe.web.question import Question
from strobe.web.questions import named
from tests.web.served import write_run

ROOT = Path(__file__).parents[3]
TABLE = Question("table", "", keep="briefly")
STORED = Question("summary", "", keep="disk")
TILES = Question("tiles", "", pool="quick", keep="no")


class Pool:
    """Stands for workers: builds and answers when the test says so, and records its jobs."""

    def __init__(self) -> None:
        self.opened: list[str] = []
        self.asked: list[dict] = []
        self.has_worker = asyncio.Event()
        self.build = asyncio.Event()
        self.answer = asyncio.Event()
        self.states = {"live": "live"}
        self.content = 1
        self.has_worker.set()

    async def ask(self, job):
        if job["question"] == "*content":
            yield self._content(job["id"])
            return
        asked = self.opened if job["question"] == "*open" else self.asked
        asked.append(job)
        await self.has_worker.wait()
        yield {"begun": True}, b""
        yield {"progress": {"what": "reading", "done": 1, "of": 9}}, b""
        await (self.build if asked is self.opened else self.answer).wait()
        if job["words"] == ("dies",):
            raise WorkerDied("it was too much")
        yield whole(200, json.dumps(job["words"]).encode())

    def _content(self, run):
        if run == "nothing":
            return whole(404, b"{}")
        state = self.states.get(run, "finished")
        return whole(200, json.dumps({"content": f"{run}{self.content}", "state": state}).encode())

    async def close(self) -> None: ...


def whole(status, body):
    reply = {
        "status": status, "media_type": "application/json", "file_name": "", "is_packed": False,
    }  # fmt: skip
    return {"reply": reply, "last": True}, body


@pytest.fixture
def ask(tmp_path):
    """Run a test with answers that come from one pretended pool."""

    def run(test):
        async def inside():
            answers, pool = Answers(Path(), tmp_path), Pool()
            answers.pools = dict.fromkeys(answers.pools, pool)
            try:
                return await asyncio.wait_for(test(answers, pool), 20)
            finally:
                await answers.close()

        return asyncio.run(inside())

    return run


@pytest.fixture
def clock(monkeypatch):
    """A time that moves only when the test moves it."""
    now = [1000.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


async def idle(turns=20):
    """Lets every task come as far as it can."""
    for _ in range(turns):
        await asyncio.sleep(0)


async def asking(answers, name="steps", run="a", question=TABLE, wait_s=5.0):
    return (await answers.ask(question, (run,), (name,), {}, wait_s))[0]


def go_on(pool):
    pool.build.set()
    pool.answer.set()


def test_the_same_question_is_worked_out_once(ask):
    async def test(answers, pool):
        tasks = [asyncio.create_task(asking(answers)) for _ in range(20)]
        await idle()
        go_on(pool)
        replies = await asyncio.gather(*tasks)
        return [*replies, await asking(answers)], pool

    replies, pool = ask(test)
    assert len(pool.asked) == len(pool.opened) == 1
    assert [reply.body for reply in replies] == [b'["steps"]'] * 21


def test_one_worker_opens_a_run_and_other_questions_see_its_progress(ask):
    async def test(answers, pool):
        names = ("steps", "operators", "kernels")
        tasks = [asyncio.create_task(asking(answers, name)) for name in names]
        await idle()
        before = len(pool.opened), len(pool.asked)
        with pytest.raises(Working) as working:
            await asking(answers, "operators", wait_s=0)
        pool.build.set()
        await idle()
        after = len(pool.opened), len(pool.asked)
        pool.answer.set()
        await asyncio.gather(*tasks)
        return before, working.value.progress, after

    before, progress, after = ask(test)
    assert before == (1, 0) and after == (1, 3)
    assert (progress["what"], progress["done"], progress["of"]) == ("reading", 1, 9)


def test_a_quick_question_does_not_wait_for_tables(ask):
    async def test(answers, pool):
        slow = asyncio.create_task(asking(answers))
        await idle()
        pool.answer.set()
        reply = await asking(answers, question=TILES)
        assert not slow.done() and len(pool.asked) == 1
        return reply

    assert ask(test).body == b'["steps"]'


def test_an_answer_that_takes_long_is_there_later(ask):
    async def test(answers, pool):
        pool.build.set()
        with pytest.raises(Working):
            await asking(answers, wait_s=0)
        await idle()
        with pytest.raises(Working) as working:
            await asking(answers, wait_s=0)
        pool.answer.set()
        await idle()
        return working.value.progress, await asking(answers), len(pool.asked)

    progress, reply, asked = ask(test)
    assert progress["what"] == "reading" and reply.body == b'["steps"]' and asked == 1


def test_a_worker_that_died_is_an_answer_in_words(ask):
    async def test(answers, pool):
        go_on(pool)
        return await asking(answers, "dies"), await asking(answers, "steps")

    died, other = ask(test)
    assert died.status == 503 and b"it was too much" in died.body and other.status == 200


def test_a_failure_is_shared_for_a_while_and_then_tried_again(ask, monkeypatch):
    monkeypatch.setattr(module, "FETCH_S", 0.05)

    async def test(answers, pool):
        go_on(pool)
        await asking(answers, "dies", question=STORED)
        await asking(answers, "dies", question=STORED)
        shared = len(pool.asked)
        await asyncio.sleep(0.1)
        await asking(answers, "dies", question=STORED)
        return shared, len(pool.asked)

    assert ask(test) == (1, 2)


def test_a_stored_answer_is_not_worked_out_again(ask, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "FETCH_S", 0.0)

    async def test(answers, pool):
        go_on(pool)
        first = await asking(answers, question=STORED)
        await asyncio.sleep(0.01)
        return first, await asking(answers, question=STORED), len(pool.asked)

    first, second, asked = ask(test)
    assert asked == 1 and second.body == first.body
    assert second.is_cached and not first.is_cached


def test_work_that_no_page_asks_for_any_more_is_cancelled_while_it_waits_in_line(ask, clock):
    async def test(answers, pool):
        pool.build.set()
        await asking_without_waiting(answers, "left")
        await asking_without_waiting(answers, "wanted")
        in_background = asyncio.create_task(asking(answers, "digest", wait_s=None))
        await idle()
        clock[0] += module.WANTED_S
        await asking_without_waiting(answers, "wanted")
        clock[0] += 1
        answers.cancel_unwanted()
        await idle()
        pool.has_worker.set()
        go_on(pool)
        return await asking(answers, "wanted"), await in_background, len(answers._works)

    async def asking_without_waiting(answers, name):
        with pytest.raises(Working):
            await asking(answers, name, wait_s=0)

    async def in_line(answers, pool):
        pool.has_worker.clear()
        return await test(answers, pool)

    wanted, digest, works = ask(in_line)
    assert wanted.status == digest.status == 200
    assert works == 3  # these two, and the opening of the run


def test_a_run_that_is_not_there_is_refused_before_any_worker_is_asked(ask):
    async def test(answers, pool):
        with pytest.raises(Refused) as refused:
            await asking(answers, run="nothing")
        return refused.value.reply.status, pool.asked

    assert ask(test) == (404, [])


def test_a_live_run_is_read_again_only_now_and_then(ask, clock):
    async def test(answers, pool):
        contents = []
        for moved, name in ((0, "live"), (2, "live"), (4, "live"), (0, "done"), (2, "done")):
            clock[0] += moved
            pool.content += 1
            contents.append(await answers.content(name))
        return contents

    assert ask(test) == ["live2", "live2", "live4", "done5", "done6"]


def test_a_live_run_stays_unchanged_while_an_answer_about_it_is_worked_out(ask, clock):
    """Else a page that asks again would start a slow answer again each time."""

    async def test(answers, pool):
        for _ in range(5):
            clock[0] += 4
            pool.content += 1
            with pytest.raises(Working):
                await asking(answers, run="live", wait_s=0)
            await idle()
        go_on(pool)
        await idle()
        clock[0] += 3 * 16 - 1  # it took 16 s, so working on the run is a quarter of the time
        reply = await asking(answers, run="live", wait_s=0.1)
        clock[0] += 2
        return reply, len(pool.opened), await answers.content("live")

    reply, opened, content = ask(test)
    assert reply.body == b'["steps"]' and opened == 1 and content == "live6"


def test_answers_belong_to_one_content(ask):
    async def test(answers, pool):
        go_on(pool)
        await asking(answers)
        pool.content = 2
        answers.forget_contents()
        await asking(answers)
        return [job["runs"][0]["content"] for job in (*pool.opened, *pool.asked)]

    assert ask(test) == ["a1", "a2", "a1", "a2"]


@pytest.mark.parametrize(
    ("question", "words", "is_built"),
    [("table", ("steps",), False), ("timeline/index", (), True)],
    ids=["tables", "timeline"],
)
def test_a_run_that_is_removed_while_it_is_read_is_gone_and_stays_so(
    tmp_path, monkeypatch, question, words, is_built
):
    """Asked of real workers, which remove it when they are about to make a folder in it."""
    run = write_run(tmp_path / "base" / "run", steps=3)
    if is_built:
        open_run_dir(run).close()
    start = f"""import sys; sys.path.insert(0, {str(ROOT)!r})
from pathlib import Path
from tests.removing import Removal
Removal(Path({str(run)!r}), touches=("os.mkdir",)).begin()
from strobe.web.answering.worker import main; main()"""
    monkeypatch.setattr(pool, "_START", start)

    async def test():
        answers = Answers(run.parent, tmp_path / "cache")
        try:
            reply, _ = await answers.ask(named(question), ("run",), words, {}, None)
            answers.forget_contents()
            with pytest.raises(Refused) as again:
                await answers.ask(named(question), ("run",), words, {}, None)
            listing = await answers.ask_files({"question": "*listing"})
        finally:
            await answers.close()
        return reply, again.value.reply, json.loads(listing.plain)["runs"]

    reply, again, listed = asyncio.run(asyncio.wait_for(test(), 60))
    assert (
        reply.status == 404
        and "removed while Strobe was reading it" in json.loads(reply.plain)["error"]
    )
    assert again.status == 404
    assert [entry["id"] for entry in listed] == ["run, removed"]
    assert not run.exists()
