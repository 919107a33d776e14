"""Places of the user's code: numbered, with the one that training uses first."""

from strobe.ingest.recording import journal_reader
from strobe.ingest.recording.places import columns, short
from strobe.model.journal import Mark
from tests.ingest.runs import BOOT_NS, write_raw


def place(what: str, line: int, at_ns: int, **details) -> dict:
    return {
        "type": "place", "what": what, "file": "/job/train.py", "line": line, "function": "fit",
        "details": details, "monotonic_ns": BOOT_NS + at_ns,
    }  # fmt: skip


def rows(tmp_path, *facts: dict) -> list[tuple]:
    raw = write_raw(tmp_path, [(500, Mark.BACKWARD_BEGAN, 0, 0)], facts)
    found = columns(journal_reader.read(raw), rank=3)
    texts = {name: [None if c < 0 else found[name].values[c] for c in found[name].codes]
             for name in ("what", "file", "function", "details")}  # fmt: skip
    numbers = (found["number"].tolist(), found["line"].tolist())
    assert set(found["rank"].tolist()) <= {3}
    return list(zip(texts["what"], *numbers, texts["function"], texts["details"], strict=True))


def test_what_was_seen_last_before_the_first_backward_pass_is_number_one(tmp_path):
    found = rows(
        tmp_path,
        place("data loop", 10, 100), place("update", 30, 600), place("data loop", 20, 400),
        place("data loop", 40, 900),
    )  # fmt: skip
    assert found == [
        ("data loop", 1, 20, "fit", None),
        ("data loop", 2, 10, "fit", None),
        ("data loop", 3, 40, "fit", None),
        ("update", 1, 30, "fit", None),
    ]


def test_a_number_that_the_recorder_gave_is_kept(tmp_path):
    found = rows(tmp_path, {**place("data loader", 5, 100, num_workers=2), "number": 7})
    assert found == [("data loader", 7, 5, "fit", '{"num_workers": 2}')]


def test_a_damaged_place_is_left_out(tmp_path):
    damaged = [{**place("update", 1, 0), "line": "x"}, {"type": "place", "what": "update"}]
    assert rows(tmp_path, *damaged) == []


def test_a_file_is_called_as_its_user_calls_it():
    process = {"argv": ["jobs/train.py", "--fast"], "directory": "/people/me"}
    assert short("/people/me/jobs/train.py", process) == "train.py"
    assert short("/people/me/jobs/nets/cnn.py", process) == "nets/cnn.py"
    assert short("/people/me/library/x.py", process) == "library/x.py"
    assert short("/elsewhere/y.py", process) == "y.py"
    assert short("<stdin>", {}) == "<stdin>"
