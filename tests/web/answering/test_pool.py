"""Real processes that die, hang and grow: the pool goes on."""

import asyncio
import contextlib
import time
from pathlib import Path

import pytest

from strobe.web.answering import pool as module
from strobe.web.answering.pool import Size, WorkerDied, WorkerPool

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def odd_workers(monkeypatch):
    start = f"import sys; sys.path.insert(0, {str(ROOT)!r}); "
    monkeypatch.setattr(
        module, "_START", start + "from tests.web.answering.odd_worker import main; main()"
    )


async def messages(pool, what, run="", **more):
    """All of them, the first of which says that a worker has begun."""
    first, *rest = [m async for m in pool.ask({"question": what, "runs": [{"id": run}], **more})]
    assert first == ({"begun": True}, b"")
    return rest


async def ask(pool, what, run="", **more):
    """The body of the answer."""
    return (await messages(pool, what, run, **more))[-1][1]


async def asleep(pool, run="", seconds=30.0):
    """A worker is asleep; returns the task that waits for it."""
    begun = asyncio.Event()

    async def sleep():
        async with contextlib.aclosing(
            pool.ask({"question": "sleep", "runs": [{"id": run}], "seconds": seconds})
        ) as coming:
            async for head, _ in coming:
                if "progress" in head:
                    begun.set()

    task = asyncio.create_task(sleep())
    await begun.wait()
    return task


def with_pool(test, most=4):
    """Run a test with a pool, and end its workers."""

    async def run():
        pool = WorkerPool(Path(), Size(most))
        try:
            return await asyncio.wait_for(test(pool), 60)
        finally:
            await pool.close()

    return asyncio.run(run())


def test_a_worker_that_dies_is_reported_and_replaced():
    async def test(pool):
        with pytest.raises(WorkerDied, match="exit code 7"):
            await ask(pool, "die")
        return await ask(pool, "who")

    assert with_pool(test).isdigit()


def test_a_slow_question_does_not_stand_in_front_of_others():
    async def test(pool):
        slow = await asleep(pool, "a")
        replies = [await ask(pool, "who", run) for run in ("a", "b", "c")]
        assert not slow.done()
        slow.cancel()
        return replies

    assert len(with_pool(test)) == 3


def test_one_run_does_not_take_all_workers(monkeypatch):
    monkeypatch.setattr(module, "MOST_ON_ONE_RUN", 1)

    async def test(pool):
        slow = await asleep(pool, "a")
        same = asyncio.create_task(ask(pool, "who", "a"))
        await ask(pool, "who", "b")
        await asyncio.sleep(0)
        assert not same.done()
        slow.cancel()
        return await same

    assert with_pool(test).isdigit()


def test_a_full_pool_answers_one_after_the_other():
    async def test(pool):
        slow = await asleep(pool, "a", seconds=0.3)
        other = await ask(pool, "who", "b")
        assert slow.done()
        return other, await ask(pool, "who", "c")

    first, second = with_pool(test, most=1)
    assert first == second


def test_the_worker_that_has_the_run_open_is_asked_again():
    async def test(pool):
        both = [asyncio.create_task(ask(pool, "sleep", run, seconds=0.3)) for run in "ab"]
        first = {run: await task for run, task in zip("ab", both, strict=True)}
        again = {run: await ask(pool, "who", run) for run in "ba"}
        return first, again

    first, again = with_pool(test)
    assert first == again and first["a"] != first["b"]


def test_progress_comes_before_the_answer():
    found = with_pool(lambda pool: messages(pool, "sleep", seconds=0.1))
    assert found[0] == ({"progress": {"what": "sleeping", "done": 1, "of": 2}}, b"")
    assert found[-1][0]["reply"]["status"] == 200


def test_a_worker_that_needs_too_much_memory_is_ended(monkeypatch):
    monkeypatch.setattr(module, "_WATCH_EVERY_S", 0.05)
    monkeypatch.setattr(module, "_MEMORY_BYTES", 500_000_000)

    async def test(pool):
        with pytest.raises(WorkerDied, match=r"more than 0\.3 GB of memory"):
            await ask(pool, "eat", bytes=400_000_000)
        return await ask(pool, "who")

    assert with_pool(test).isdigit()


def test_a_worker_that_takes_too_long_is_ended(monkeypatch):
    monkeypatch.setattr(module, "_WATCH_EVERY_S", 0.05)
    monkeypatch.setattr(module, "LONGEST_JOB_S", 0.5)

    async def test(pool):
        with pytest.raises(WorkerDied, match="longer than"):
            await ask(pool, "sleep", seconds=50)

    with_pool(test)


def test_an_answer_in_pieces_is_whole_and_frees_its_worker():
    async def test(pool):
        pieces = await messages(pool, "pieces", count=2000)
        return b"".join(body for _, body in pieces), await ask(pool, "who")

    body, after = with_pool(test, most=1)
    assert len(body) == 2000 and after.isdigit()


def test_a_reader_that_leaves_half_way_frees_the_worker():
    async def test(pool):
        job = {"question": "pieces", "runs": [{"id": ""}], "count": 500_000}
        async with contextlib.aclosing(pool.ask(job)) as coming:
            async for head, _ in coming:
                if "reply" in head:
                    break
        return await ask(pool, "who")

    assert with_pool(test, most=1).isdigit()


def test_idle_workers_end():
    async def test(pool):
        first = await ask(pool, "who")
        pool.retire(idle_s=3600)
        assert await ask(pool, "who") == first
        pool.retire(idle_s=0)
        begun = time.monotonic()
        while Path(f"/proc/{first.decode()}").exists() and time.monotonic() < begun + 10:
            await asyncio.sleep(0.05)
        return first, await ask(pool, "who")

    first, second = with_pool(test)
    assert first != second
