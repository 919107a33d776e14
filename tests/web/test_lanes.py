"""Real processes that die, hang and grow: the lane goes on."""

import asyncio
import time
from pathlib import Path

import pytest

from strobe.web import lanes
from strobe.web.lanes import Abandoned, LaneOfWorkers, WorkerDied

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def odd_workers(monkeypatch):
    start = f"import sys; sys.path.insert(0, {str(ROOT)!r}); "
    monkeypatch.setattr(lanes, "_START", start + "from tests.web.odd_worker import main; main()")


def ask(lane, what, run="", **more):
    return lane.ask({"question": what, "runs": [{"id": run}], **more})


def with_lane(test, name="analysis"):
    """Run a test with a lane, and end its workers."""

    async def run():
        lane = LaneOfWorkers(name, Path())
        try:
            return await asyncio.wait_for(test(lane), 60)
        finally:
            await lane.close()

    return asyncio.run(run())


def test_a_worker_that_dies_is_told_of_and_replaced():
    async def test(lane):
        with pytest.raises(WorkerDied, match="exit code 7"):
            await ask(lane, "die")
        return (await ask(lane, "who")).body

    assert with_lane(test).isdigit()


def test_a_slow_question_does_not_stand_before_others():
    async def test(lane):
        slow = asyncio.create_task(ask(lane, "sleep", "a", seconds=30))
        await asyncio.sleep(0.2)
        replies = [await ask(lane, "who", run) for run in ("a", "b", "c")]
        assert not slow.done()
        slow.cancel()
        return replies

    assert len(with_lane(test)) == 3


def test_one_run_does_not_take_all_workers(monkeypatch):
    monkeypatch.setattr(lanes, "MOST_ON_ONE_RUN", 1)

    async def test(lane):
        slow = asyncio.create_task(ask(lane, "sleep", "a", seconds=30))
        await asyncio.sleep(0.3)
        same = asyncio.create_task(ask(lane, "who", "a"))
        await ask(lane, "who", "b")
        await asyncio.wait({same}, timeout=1.5)
        assert not same.done()
        slow.cancel()
        return await same

    assert with_lane(test).status == 200


def test_who_has_the_run_open_is_asked_again():
    async def test(lane):
        both = [asyncio.create_task(ask(lane, "sleep", run, seconds=0.3)) for run in "ab"]
        first = {run: (await task).body for run, task in zip("ab", both, strict=True)}
        again = {run: (await ask(lane, "who", run)).body for run in "ba"}
        return first, again

    first, again = with_lane(test)
    assert first == again and first["a"] != first["b"]


def test_progress_is_told():
    notes = []

    async def test(lane):
        await lane.ask({"question": "sleep", "seconds": 0.1}, notes.append)

    with_lane(test)
    assert notes[-1] == {"progress": {"what": "sleeping", "done": 1, "of": 2}}


def test_a_worker_that_takes_too_much_memory_is_ended(monkeypatch):
    monkeypatch.setattr(lanes, "_LOOK_EVERY_S", 0.05)
    monkeypatch.setattr(lanes, "_MEMORY_BYTES", 500_000_000)

    async def test(lane):
        with pytest.raises(WorkerDied, match="more than 0.3 GB of memory"):
            await ask(lane, "eat", bytes=400_000_000)
        return await ask(lane, "who")

    assert with_lane(test).status == 200


def test_a_worker_that_takes_too_long_is_ended(monkeypatch):
    monkeypatch.setattr(lanes, "_LOOK_EVERY_S", 0.05)
    monkeypatch.setattr(lanes, "LONGEST_JOB_S", 0.5)

    async def test(lane):
        with pytest.raises(WorkerDied, match="longer than"):
            await ask(lane, "sleep", seconds=50)

    with_lane(test)


def test_an_answer_in_pieces_is_whole_and_frees_its_worker(monkeypatch):
    monkeypatch.setitem(lanes.MOST_WORKERS, "analysis", 1)

    async def test(lane):
        reply = await ask(lane, "pieces", count=2000)
        body = b"".join([piece async for piece in reply.pieces])
        return body, await ask(lane, "who")

    body, after = with_lane(test)
    assert len(body) == 2000 and after.status == 200


def test_a_reader_who_leaves_half_way_frees_the_worker(monkeypatch):
    monkeypatch.setitem(lanes.MOST_WORKERS, "analysis", 1)

    async def test(lane):
        reply = await ask(lane, "pieces", count=500_000)
        async for _ in reply.pieces:
            break
        await reply.pieces.aclose()
        return await ask(lane, "who")

    assert with_lane(test).body.isdigit()


def test_what_nobody_waits_for_any_more_is_not_begun(monkeypatch):
    monkeypatch.setitem(lanes.MOST_WORKERS, "analysis", 1)

    async def test(lane):
        slow = asyncio.create_task(ask(lane, "sleep", seconds=0.5))
        await asyncio.sleep(0.2)
        with pytest.raises(Abandoned):
            await lane.ask({"question": "who"}, is_wanted=lambda: not slow.done())

    with_lane(test)


def test_idle_workers_end():
    async def test(lane):
        first = (await ask(lane, "who")).body
        await lane.retire(idle_s=3600)
        assert (await ask(lane, "who")).body == first
        await lane.retire(idle_s=0)
        begun = time.monotonic()
        while Path(f"/proc/{first.decode()}").exists() and time.monotonic() < begun + 10:
            await asyncio.sleep(0.05)
        return first, (await ask(lane, "who")).body

    first, second = with_lane(test)
    assert first != second
