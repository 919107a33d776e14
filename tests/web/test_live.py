"""Steps of a run that grows: what comes is told once, and everything anew when it was revised."""

import json

from strobe.model.journal import RECORD, Mark
from strobe.web import live
from strobe.web.question import Asked
from tests.ingest.runs import BOOT_NS, START_NS, plain_steps
from tests.web.served import STEP_NS, write_run


def ask(run, **params):
    given = Asked(run, "", (), params, open=lambda: None)
    return json.loads(live.answer(given).body)


def grow(run, steps: int, more=()) -> None:
    journal = run / "rank_0" / "raw" / "journal-0001.bin"
    body = journal.read_bytes()[:4096]
    for ts, code, ref, value in [*plain_steps(steps, STEP_NS), *more]:
        body += RECORD.pack(BOOT_NS + ts, value, ref, 0, int(code))
    journal.write_bytes(body)


def test_only_new_steps_are_told(tmp_path):
    run = write_run(tmp_path / "run", ended=None, steps=5)
    first = ask(run)
    assert [row[1] for row in first["rows"]] == [1, 2, 3, 4]  # the newest may still change
    grow(run, 8)
    more = ask(run, since=first["cursor"])
    assert [row[1] for row in more["rows"]] == [5, 6, 7] and not more["reset"]
    assert ask(run, since=more["cursor"])["rows"] == []


def test_everything_is_told_anew_when_the_past_was_decided_otherwise(tmp_path):
    run = write_run(tmp_path / "run", ended=None, steps=5)
    cursor = ask(run)["cursor"]
    rank, count, _ = cursor.split("-")
    told = ask(run, since=f"{rank}-{count}-0")
    assert told["reset"] and len(told["rows"]) == 4
    told = ask(run, since=f"{rank}-100-0")
    assert told["reset"] and len(told["rows"]) == 4


def test_before_anything_was_recorded_there_is_nothing_new(tmp_path):
    run = write_run(tmp_path / "run", ended=None, steps=5)
    (run / "rank_0").rename(tmp_path / "later")
    first = ask(run)
    assert first["reset"] and first["rows"] == [] and first["is_live"]
    again = ask(run, since=first["cursor"])
    assert not again["reset"] and again["rows"] == []
    (tmp_path / "later").rename(run / "rank_0")
    told = ask(run, since=again["cursor"])
    assert len(told["rows"]) == 4 and not told["reset"]


def test_a_new_reading_of_the_clock_is_no_reason_to_tell_all_again(tmp_path):
    run = write_run(tmp_path / "run", ended=None, steps=5)
    first = ask(run)
    grow(run, 5, [(5 * STEP_NS, Mark.CLOCK, 0, START_NS + 5 * STEP_NS + 777)])
    again = ask(run, since=first["cursor"])
    assert again["rows"] == [] and not again["reset"]
    assert ask(run)["rows"][3][2] != first["rows"][3][2]  # though the times did shift


def test_one_rank_of_several(tmp_path):
    run = write_run(tmp_path / "run", ended=None, steps=4, ranks=2)
    assert {row[0] for row in ask(run)["rows"]} == {0, 1}
    assert {row[0] for row in ask(run, rank="1")["rows"]} == {1}


def test_of_very_many_steps_the_newest_are_told(tmp_path, monkeypatch):
    monkeypatch.setattr(live, "MOST_STEPS", 3)
    run = write_run(tmp_path / "run", steps=10)
    assert [row[1] for row in ask(run)["rows"]] == [8, 9, 10]


def test_a_page_may_only_ask_how_many_are_new(tmp_path):
    run = write_run(tmp_path / "run", ended=None, steps=5)
    first = ask(run, rows="no")
    assert (first["new"], first["rows"]) == (4, [])
    grow(run, 8)
    assert ask(run, rows="no", since=first["cursor"])["new"] == 3
    ended = write_run(tmp_path / "ended", steps=5)
    assert ask(ended, rows="no")["new"] == 0
