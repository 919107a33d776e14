"""Parts of a framework that cannot be recorded: a row for each, one line for the run."""

from types import SimpleNamespace

from strobe.collect.faults import Unseen, fault_text


def recorder(rank: int | None) -> SimpleNamespace:
    made = SimpleNamespace(rank=rank, frameworks={"torch": "9.9"}, lines=[], rows=[])
    made.likely_rank = lambda: made.rank or 0
    made.problem = lambda source, what: made.rows.append((source, what))
    made.say = made.lines.append
    return made


def no_place():
    raise LookupError("renamed")


def test_one_line_for_all_parts_once_the_process_trains():
    first = recorder(None)
    unseen = Unseen(first)
    assert unseen.tried("torch", "updates", no_place) == []
    assert unseen.tried("torch", "waits", no_place) == []
    assert first.lines == []
    first.rank = 0
    unseen.report()
    unseen.add("torch", "more", ValueError("late"))
    (line,) = first.lines
    assert "torch 9.9. Not recorded: updates (LookupError: renamed at " in line
    assert "waits (LookupError: renamed at " in line and "more" not in line
    assert [source for source, _ in first.rows] == ["torch"] * 3
    assert "LookupError: renamed at test_faults.py:" in first.rows[0][1]


def test_other_ranks_keep_their_rows_and_say_nothing():
    second = recorder(1)
    Unseen(second).add("torch", "waits", ValueError("renamed"))
    assert second.lines == [] and len(second.rows) == 1


def test_what_can_be_undone_is_returned():
    def undo() -> None: ...

    assert Unseen(recorder(0)).tried("torch", "waits", lambda: undo) == [undo]


def test_a_fault_without_a_place():
    assert fault_text(ValueError("x")) == "ValueError: x"
