import asyncio

from strobe.web.answering import cache as module
from strobe.web.answering.cache import AnswerCache
from strobe.web.answering.reply import Reply


def test_what_is_stored_is_there_after_a_restart(tmp_path):
    reply = Reply(200, "text/csv", "a.csv", True, b"\n\0body\n")
    asyncio.run(AnswerCache(tmp_path).write("key", reply))
    again = asyncio.run(AnswerCache(tmp_path).read("key"))
    assert again.is_cached and (again.head, again.body) == (reply.head, reply.body)
    assert asyncio.run(AnswerCache(tmp_path).read("other")) is None


def test_a_file_that_was_cut_is_not_an_answer(tmp_path):
    asyncio.run(AnswerCache(tmp_path).write("key", Reply(body=b"x" * 1000)))
    (tmp_path / "key").write_bytes((tmp_path / "key").read_bytes()[:-1])
    assert asyncio.run(AnswerCache(tmp_path).read("key")) is None


def test_a_folder_that_cannot_be_written_costs_no_answer(tmp_path):
    cache = AnswerCache(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    asyncio.run(cache.write("key", Reply(body=b"x")))
    assert asyncio.run(cache.read("key")) is None


def test_the_answers_read_longest_ago_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MOST_BYTES", 2500)
    monkeypatch.setattr(module, "_WRITES", 1)
    cache = AnswerCache(tmp_path)
    for number in range(6):
        cache._write(str(number), Reply(body=b"x" * 900))
        cache._remove_oldest()
    assert {path.name for path in tmp_path.iterdir()} == {"4", "5"}
