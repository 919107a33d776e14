import json
import random

import numpy as np

from strobe.ingest.recording.journal_reader import Journal, read
from strobe.model.journal import FACTS_FILE, HEADER_BYTES, RECORD, Mark
from tests.ingest.runs import BOOT_NS, START_NS, plain_steps, write_raw


def problems(journal) -> list[str]:
    return [what for _, what in journal.problems.counts]


def test_reads_marks_of_all_segments_in_order_of_time(tmp_path):
    raw = write_raw(tmp_path, [(30, Mark.STEP, 0, 7), (10, Mark.COUNTER, 4, -5, 3)])
    first = (raw / "journal-0001.bin").read_bytes()
    later = first[:HEADER_BYTES] + RECORD.pack(BOOT_NS + 20, 1, 2, 3, int(Mark.STEP))
    (raw / "journal-0010.bin").write_bytes(later)
    journal = read(raw)
    assert (journal.ts_ns - BOOT_NS).tolist() == [10, 20, 30]
    assert journal.code.tolist() == [Mark.COUNTER, Mark.STEP, Mark.STEP]
    assert journal.value.tolist() == [-5, 1, 7]
    assert journal.ref.tolist() == [4, 2, 0] and journal.thread.tolist() == [3, 3, 0]
    assert problems(journal) == []


def test_marks_of_one_moment_keep_the_order_they_were_written_in(tmp_path):
    raw = write_raw(tmp_path, [(5, Mark.STEP, i, 0) for i in range(50)])
    assert read(raw).ref.tolist() == list(range(50))


def test_a_journal_cut_anywhere_keeps_every_whole_mark(tmp_path):
    raw = write_raw(tmp_path, plain_steps(5))
    data = (raw / "journal-0001.bin").read_bytes()[: HEADER_BYTES + 40 * RECORD.size]
    rng = random.Random(5)
    for size in [0, 5, HEADER_BYTES, len(data), *(rng.randrange(len(data)) for _ in range(100))]:
        (raw / "journal-0001.bin").write_bytes(data[:size])
        assert len(read(raw).ts_ns) == max(0, size - HEADER_BYTES) // RECORD.size


def test_a_half_written_mark_does_not_count(tmp_path):
    raw = write_raw(tmp_path, [(1, Mark.STEP, 0, 0)])
    with (raw / "journal-0001.bin").open("r+b") as file:
        file.seek(HEADER_BYTES + RECORD.size)
        file.write(RECORD.pack(99, 1, 2, 3, 0))  # all but the code
    journal = read(raw)
    assert len(journal.ts_ns) == 1 and problems(journal) == []


def test_a_damaged_header_and_unknown_marks_are_told(tmp_path):
    raw = write_raw(tmp_path, [(1, Mark.STEP, 0, 0), (2, 999, 0, 0), (3, 999, 0, 0)])
    with (raw / "journal-0001.bin").open("r+b") as file:
        file.write(b"XXXX")
    journal = read(raw)
    assert len(journal.ts_ns) == 1
    assert journal.problems.counts == {
        ("journal-0001.bin", "the header of this part of the journal is damaged"): 1,
        ("journal-0001.bin", "a mark of an unknown kind was left out"): 2,
    }


def test_facts_survive_a_torn_last_line_and_a_broken_one(tmp_path):
    raw = write_raw(
        tmp_path, strings=[(3, "loader", "前向")],
        facts=[{"type": "problem", "source": "disk", "what": "it was full", "count": 2}],
    )  # fmt: skip
    with (raw / FACTS_FILE).open("ab") as file:
        file.write(b'not json\n{"type": "novel"}\n{"type": "end", "sta')
    journal = read(raw)
    assert journal.strings == {3: ("loader", "前向")}
    assert journal.facts[-1] == {"type": "novel"}
    assert journal.problems.counts == {
        ("disk", "it was full"): 2,
        (FACTS_FILE, "a line is not a fact that can be read, and was left out"): 1,
        (FACTS_FILE, "the last fact was cut short: the process died while writing"): 1,
    }


def test_the_last_word_on_a_window_counts(tmp_path):
    states = ("recording", "exporting", "complete")
    facts = [{"type": "window", "number": 1, "state": state} for state in states]
    assert read(write_raw(tmp_path, facts=facts)).windows()[1]["state"] == "complete"


def test_an_empty_directory_is_an_empty_journal(tmp_path):
    journal = read(tmp_path)
    assert len(journal.ts_ns) == 0 and journal.facts == []
    assert problems(journal) == ["the facts of this rank cannot be read: No such file or directory"]


def with_clock(*pairs: tuple[int, int]) -> Journal:
    """A journal whose clocks were read together at (monotonic, wall) moments."""
    ours, wall = (np.array(c, dtype=np.int64) for c in zip(*pairs, strict=True))
    nothing = np.zeros(len(ours), dtype=np.int64)
    code = np.full(len(ours), int(Mark.CLOCK))
    return Journal(ours, wall, nothing, nothing, code)


def test_time_runs_straight_between_two_readings_of_the_clocks_and_at_one_beyond():
    journal = with_clock((1000, START_NS), (2000, START_NS + 1100))
    moments = np.array([500, 1000, 1500, 2000, 2500])
    assert journal.to_run_time(moments, START_NS).tolist() == [-500, 0, 550, 1100, 1600]


def test_nanoseconds_survive_the_conversion():
    day = 86_400 * 10**9
    journal = with_clock((day, START_NS), (2 * day, START_NS + day + 12_345))
    moments = np.array([day + 1, 2 * day - 1, 2 * day])
    assert journal.to_run_time(moments, START_NS).tolist() == [1, day - 1 + 12_345, day + 12_345]


def test_a_wall_clock_that_is_set_back_does_not_turn_time():
    journal = with_clock((0, START_NS), (1000, START_NS + 1000), (2000, START_NS - 5000))
    times = journal.to_run_time(np.arange(0, 3000, 100), START_NS)
    assert (np.diff(times) >= 0).all()


def test_the_start_of_the_process_is_a_reading_of_both_clocks(tmp_path):
    journal = read(write_raw(tmp_path, [(70, Mark.STEP, 0, 0)]))
    assert journal.to_run_time(journal.ts_ns, START_NS).tolist() == [70]


def test_facts_are_plain_json(tmp_path):
    raw = write_raw(tmp_path)
    lines = (raw / FACTS_FILE).read_text().splitlines()
    assert read(raw).facts == [json.loads(line) for line in lines]
