"""Who asks when: one opens a run for all, and what is being worked out is asked for once."""

import asyncio
import json
from pathlib import Path

import pytest

from strobe.ingest.building.opening import open_run_dir
from strobe.web import lanes
from strobe.web.answers import Answers, Refused, Working
from strobe.web.lanes import Abandoned, Reply, WorkerDied
from strobe.web.question import Question
from strobe.web.questions import named
from tests.web.served import write_run

ROOT = Path(__file__).parents[2]
TABLE = Question("table", "", keep="memory")


class Lane:
    """Stands for workers: answers when it is told to, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[dict] = []
        self.go_on = asyncio.Event()
        self.open_now = asyncio.Event()
        self.states = {"live": "live"}
        self.content = 1
        self.abandons = 0

    async def ask(self, message, note=lambda head: None, is_wanted=lambda: True):
        if message["question"] == "*content":
            if message["id"] == "nothing":
                return Reply(status=404, body=b"{}")
            state = self.states.get(message["id"], "finished")
            return Reply(body=json.dumps({"content": f"{message['id']}{self.content}",
                                          "state": state}).encode())  # fmt: skip
        self.asked.append(message)
        if self.abandons:
            self.abandons -= 1
            raise Abandoned
        note({"progress": {"what": "reading", "done": 1, "of": 9}})
        await self.open_now.wait()
        note({"opened": True})
        await self.go_on.wait()
        if message["words"] == ["dies"]:
            raise WorkerDied("it was too much")
        return Reply(body=json.dumps(message["words"]).encode())

    async def close(self) -> None: ...


@pytest.fixture
def ask(tmp_path):
    """Run a test with answers that come from one pretended lane."""

    def run(test):
        async def inside():
            answers, lane = Answers(Path(), tmp_path), Lane()
            answers.lanes = dict.fromkeys(answers.lanes, lane)
            return await asyncio.wait_for(test(answers, lane), 20)

        return asyncio.run(inside())

    return run


def test_the_same_question_is_worked_out_once(ask):
    async def test(answers, lane):
        lane.open_now.set()
        many = [answers.ask(TABLE, ("a",), ("steps",), {}, 5) for _ in range(20)]
        tasks = [asyncio.create_task(one) for one in many]
        await asyncio.sleep(0.1)
        lane.go_on.set()
        replies = await asyncio.gather(*tasks)
        again, _ = await answers.ask(TABLE, ("a",), ("steps",), {}, 5)
        return replies, again, lane.asked

    replies, again, asked = ask(test)
    assert len(asked) == 1 and len({key for _, key in replies}) == 1
    assert all(reply.body == b'["steps"]' for reply, _ in replies) and again.body == b'["steps"]'


def test_one_opens_a_run_and_the_others_wait_and_see_how_far_it_is(ask):
    async def test(answers, lane):
        names = ("steps", "operators", "kernels")
        tasks = [
            asyncio.create_task(answers.ask(TABLE, ("a",), (name,), {}, None)) for name in names
        ]
        await asyncio.sleep(0.5)
        begun = len(lane.asked)
        seen, _ = await answers.ask(TABLE, ("a",), ("operators",), {}, 0.05)
        lane.open_now.set()
        await asyncio.sleep(0.5)
        together = len(lane.asked)
        lane.go_on.set()
        await asyncio.gather(*tasks)
        return begun, seen, together

    begun, seen, together = ask(test)
    assert begun == 1 and together == 3
    assert isinstance(seen, Working) and (seen.what, seen.done, seen.of) == ("reading", 1, 9)


def test_an_answer_that_takes_long_tells_how_far_it_is_and_is_there_later(ask):
    async def test(answers, lane):
        lane.open_now.set()
        early, _ = await answers.ask(TABLE, ("a",), ("steps",), {}, 0.05)
        lane.go_on.set()
        await asyncio.sleep(0.1)
        late, _ = await answers.ask(TABLE, ("a",), ("steps",), {}, 0.05)
        return early, late, lane.asked

    early, late, asked = ask(test)
    assert isinstance(early, Working) and early.to_json()["what"] == "reading"
    assert late.body == b'["steps"]' and len(asked) == 1


def test_a_worker_that_died_is_told_in_words(ask):
    async def test(answers, lane):
        lane.open_now.set()
        lane.go_on.set()
        return await answers.ask(TABLE, ("a",), ("dies",), {}, 5)

    reply, _ = ask(test)
    assert reply.status == 503 and b"it was too much" in reply.body


def test_what_was_given_up_is_begun_anew_for_who_wants_it(ask):
    async def test(answers, lane):
        lane.open_now.set()
        lane.go_on.set()
        lane.abandons = 1
        return (await answers.ask(TABLE, ("a",), ("steps",), {}, 5))[0], len(lane.asked)

    reply, asked = ask(test)
    assert reply.status == 200 and asked == 2


def test_a_run_that_is_not_there_is_refused_before_any_worker_is_asked(ask):
    async def test(answers, lane):
        with pytest.raises(Refused) as refused:
            await answers.ask(TABLE, ("nothing",), ("steps",), {}, 5)
        return refused.value.reply.status, lane.asked

    assert ask(test) == (404, [])


def test_a_live_run_is_read_anew_only_now_and_then(ask, monkeypatch):
    from strobe.web import answers as module

    now = [1000.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])

    async def test(answers, lane):
        seen = []
        for moved, name in ((0, "live"), (2, "live"), (4, "live"), (0, "done"), (2, "done")):
            now[0] += moved
            lane.content += 1
            seen.append((await answers.content(name))[0])
        return seen

    assert ask(test) == ["live2", "live2", "live4", "done5", "done6"]


def test_a_live_run_counts_as_unchanged_while_somebody_waits_for_an_answer(ask, monkeypatch):
    """Else a page that asks again would begin a slow question anew, for ever."""
    from strobe.web import answers as module

    monkeypatch.setattr(module, "LIVE_CONTENT_S", 0.0)
    monkeypatch.setattr(module, "FETCHING_S", 0.2)

    async def test(answers, lane):
        lane.open_now.set()
        for _ in range(5):
            lane.content += 1
            await answers.ask(TABLE, ("live",), ("steps",), {}, 0.05)
        lane.go_on.set()
        await asyncio.sleep(0.05)
        lane.content += 1
        reply, _ = await answers.ask(TABLE, ("live",), ("steps",), {}, 0.05)
        await asyncio.sleep(0.3)
        return reply, len(lane.asked), (await answers.content("live"))[0]

    reply, asked, content = ask(test)
    assert reply.body == b'["steps"]' and asked == 1 and content == "live7"


def test_kept_answers_are_of_one_content(ask):
    async def test(answers, lane):
        lane.open_now.set()
        lane.go_on.set()
        await answers.ask(TABLE, ("a",), ("steps",), {}, 5)
        lane.content = 2
        answers.forget_contents()
        await answers.ask(TABLE, ("a",), ("steps",), {}, 5)
        return [message["runs"][0]["content"] for message in lane.asked]

    assert ask(test) == ["a1", "a2"]


def test_a_page_does_not_wait_for_background_work_that_is_still_in_line(ask):
    class InLine(Lane):
        """Its turn does not come."""

        async def ask(self, message, note=lambda head: None, is_wanted=lambda: True):
            self.asked.append(message)
            await asyncio.Event().wait()

    async def test(answers, lane):
        answers.lanes["background"] = behind = InLine()
        index = Question("index", "", keep="memory", lane="background")
        await answers.ask(index, ("run",), (), {}, 0)
        await asyncio.sleep(0)
        lane.open_now.set()
        lane.go_on.set()
        reply, _ = await answers.ask(TABLE, ("run",), ("steps",), {}, 5)
        assert isinstance(reply, Reply) and len(behind.asked) == len(lane.asked) == 1
        await answers.close()

    ask(test)


def test_nor_for_the_same_answer_that_is_still_in_line(ask):
    class InLine(Lane):
        """Its turn comes late; nobody wants it then."""

        async def ask(self, message, note=lambda head: None, is_wanted=lambda: True):
            self.asked.append(message)
            await self.go_on.wait()
            assert not is_wanted()
            raise Abandoned

    async def test(answers, lane):
        answers.lanes["background"] = behind = InLine()
        for_later = Question("index", "", keep="memory", lane="background")
        later = asyncio.create_task(answers.ask(for_later, ("run",), (), {}, None))
        await asyncio.sleep(0.1)
        lane.open_now.set()
        lane.go_on.set()
        now = Question("index", "", keep="memory")
        reply, _ = await answers.ask(now, ("run",), (), {}, 5)
        assert isinstance(reply, Reply) and len(behind.asked) == len(lane.asked) == 1
        behind.go_on.set()
        assert (await later)[0] is reply  # kept, and not worked out twice
        await answers.close()

    ask(test)


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
from strobe.web.worker import main; main()"""
    monkeypatch.setattr(lanes, "_START", start)

    async def test():
        answers = Answers(run.parent, tmp_path / "cache")
        try:
            reply, _ = await answers.ask(named(question), ("run",), words, {}, None)
            answers.forget_contents()
            with pytest.raises(Refused) as again:
                await answers.ask(named(question), ("run",), words, {}, None)
            listing = await answers.of_files({"question": "*listing"})
        finally:
            await answers.close()
        return reply, again.value.reply, json.loads(listing.plain)["runs"]

    reply, again, listed = asyncio.run(asyncio.wait_for(test(), 60))
    assert reply.status == 404 and "removed while it was read" in json.loads(reply.plain)["error"]
    assert again.status == 404
    assert [entry["id"] for entry in listed] == ["run, removed"]
    assert not run.exists()
