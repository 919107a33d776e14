import errno
import json
import os
import threading
from pathlib import Path

import numpy as np
import pytest

from strobe.collect import journal as writer
from strobe.collect.journal import Journal
from strobe.model.journal import HEADER_BYTES, JOURNAL_GLOB, Mark

RECORD = np.dtype(
    [("ts", "<i8"), ("value", "<i8"), ("ref", "<u4"), ("thread", "<u2"), ("code", "<u2")]
)


def records(raw: Path) -> np.ndarray:
    parts = []
    for file in sorted(raw.glob(JOURNAL_GLOB)):
        body = file.read_bytes()[HEADER_BYTES:]
        parts.append(np.frombuffer(body, RECORD, count=len(body) // RECORD.itemsize))
    every = np.concatenate(parts)
    return every[every["code"] != 0]


def facts(raw: Path) -> list[dict]:
    return [json.loads(line) for line in (raw / "facts.jsonl").read_text().splitlines()]


def test_marks_made_before_it_was_opened_are_there(tmp_path: Path):
    journal = Journal()
    ref = journal.string("module", '网络 "x" \U0001f600')
    journal.mark(Mark.FORWARD_BEGAN, ref, 3, ts_ns=5)
    journal.open(tmp_path)
    journal.mark(Mark.FORWARD_ENDED, ref, 1, ts_ns=9)
    found = records(tmp_path)
    assert found[["ts", "value", "ref", "code"]].tolist() == [(5, 3, 1, 3), (9, 1, 1, 4)]
    assert facts(tmp_path)[0]["text"] == '网络 "x" \U0001f600'


def test_a_long_prologue_keeps_its_later_part(tmp_path: Path):
    journal = Journal()
    count = writer._PROLOGUE_RECORDS * 3 + 7
    for number in range(1, count + 1):
        journal.mark(Mark.DATA_ASKED, ts_ns=number)
    journal.open(tmp_path)
    kept = records(tmp_path)["ts"]
    assert kept[-1] == count and np.array_equal(kept, np.arange(kept[0], count + 1))
    assert len(kept) >= writer._PROLOGUE_RECORDS // 2


def test_nothing_is_lost_across_segments_and_threads(tmp_path: Path):
    journal = Journal()
    journal.open(tmp_path)
    each, threads = 30_000, 8

    def work(number: int) -> None:
        for value in range(each):
            journal.mark(Mark.COUNTER, number, value)

    workers = [threading.Thread(target=work, args=(n,)) for n in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    found = records(tmp_path)
    assert len(list(tmp_path.glob(JOURNAL_GLOB))) > 3
    for number in range(threads):
        assert np.array_equal(np.sort(found["value"][found["ref"] == number]), np.arange(each))


def test_a_full_disk_ends_it_once_and_keeps_what_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    journal = Journal()
    said: list[OSError] = []
    journal.on_disk_error = said.append
    journal.open(tmp_path)

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    for number in range(1, 60_001):
        journal.mark(Mark.STEP, ts_ns=number)
    kept = records(tmp_path)["ts"]
    assert np.array_equal(kept, np.arange(1, len(kept) + 1)) and len(kept) > 40_000
    assert len(said) == 1 and journal.dropped >= 60_000 - len(kept) - 1
    assert len(list(tmp_path.glob(JOURNAL_GLOB))) == 1


def test_hushed_it_writes_facts_but_no_marks(tmp_path: Path):
    journal = Journal()
    journal.open(tmp_path)
    journal.mark(Mark.STEP, ts_ns=1)
    journal.hush()
    journal.mark(Mark.STEP, ts_ns=2)
    journal.fact(type="problem")
    assert records(tmp_path)["ts"].tolist() == [1]
    assert facts(tmp_path)[-1] == {"type": "problem"} and journal.dropped == 1


def test_a_disk_that_is_full_for_a_while_loses_no_fact(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(writer, "_PATIENT_FOR_NS", 0)
    journal, refused = Journal(), []
    journal.on_disk_error = refused.append
    journal.open(tmp_path)
    write, is_full = os.write, True

    def full_or_not(handle: int, line: bytes) -> int:
        if is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(handle, line)

    monkeypatch.setattr(writer.os, "write", full_or_not)
    with journal.patient():
        journal.fact(type="place", number=1)
        journal.fact(type="place", number=2)
    is_full = False
    journal.fact(type="place", number=3)
    assert [fact["number"] for fact in facts(tmp_path)] == [1, 2, 3] and not refused
    is_full = True
    journal.fact(type="place", number=4)
    assert len(refused) == 1, "nobody gives the room back"
