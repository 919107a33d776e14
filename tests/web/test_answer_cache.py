import asyncio

from strobe.web import answer_cache
from strobe.web.answer_cache import KeptAnswers
from strobe.web.lanes import Reply


def test_what_is_stored_is_there_after_a_restart(tmp_path):
    reply = Reply(200, "text/csv", "a.csv", True, b"\n\0body\n")
    asyncio.run(KeptAnswers(tmp_path).store("key", reply))
    again = KeptAnswers(tmp_path)
    assert again.held("key") is None
    assert asyncio.run(again.stored("key")) == reply
    assert again.held("key") == reply


def test_a_file_that_was_cut_is_no_answer(tmp_path):
    asyncio.run(KeptAnswers(tmp_path).store("key", Reply(body=b"x" * 1000)))
    (tmp_path / "key").write_bytes((tmp_path / "key").read_bytes()[:-1])
    assert asyncio.run(KeptAnswers(tmp_path).stored("key")) is None


def test_memory_is_bounded_but_the_newest_is_there(tmp_path, monkeypatch):
    monkeypatch.setattr(answer_cache, "MEMORY_BYTES", 1000)
    kept = KeptAnswers(tmp_path)
    for number in range(10):
        kept.hold(str(number), Reply(body=b"x" * 300))
    assert [number for number in range(10) if kept.held(str(number))] == [7, 8, 9]
    kept.hold("large", Reply(body=b"x" * 5000))
    assert kept.held("large") and not kept.held("9")


def test_failures_are_told_to_all_who_wait_and_then_forgotten(tmp_path, monkeypatch):
    kept = KeptAnswers(tmp_path)
    kept.hold("failed", Reply(status=422))
    kept.hold("brief", Reply(), briefly=True)
    kept.hold("kept", Reply())
    assert kept.held("failed") and kept.held("brief")
    now = answer_cache.time.monotonic()
    monkeypatch.setattr(answer_cache.time, "monotonic", lambda: now + 60)
    assert kept.held("failed") is None and kept.held("brief") is None and kept.held("kept")


def test_the_oldest_files_make_room(tmp_path, monkeypatch):
    monkeypatch.setattr(answer_cache, "DISK_BYTES", 2500)
    monkeypatch.setattr(answer_cache, "_WRITES", 1)
    kept = KeptAnswers(tmp_path)
    monkeypatch.setattr(kept, "_writes", 0)
    for number in range(6):
        kept._write(str(number), Reply(body=b"x" * 900))
        kept._forget_oldest()
    assert {path.name for path in tmp_path.iterdir()} == {"4", "5"}
