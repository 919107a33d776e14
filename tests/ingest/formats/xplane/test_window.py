"""Windows of recordings made here: drawn profiles on the clock of a run."""

import gzip

from strobe.ingest.formats.kinds import KIND
from strobe.ingest.recording import windows
from strobe.ingest.trace.problems import Problems
from strobe.ingest.trace.spans import Vocabulary
from tests.ingest.formats.xplane.test_reader import host, steps_of_two, trained
from tests.ingest.formats.xplane.xspace import START_NS, space, task_plane

# The run began so long before the profile.
EARLIER_NS = 5_000


def read(path, options=None):
    words, said = Vocabulary(), Problems()
    (number, found), *_ = windows.files(path.parent).items()
    window = windows.read(found, number, START_NS - EARLIER_NS, words, said, options or {})
    return window, words, said


def drawn(folder, data):
    path = folder / "window-0003.xplane.pb.gz"
    path.write_bytes(gzip.compress(data))
    return path


def test_operators_lie_on_the_clock_of_the_run_and_tell_their_part(tmp_path):
    whole = space(trained(), host(*steps_of_two()), task_plane())
    window, words, said = read(drawn(tmp_path, whole))
    assert window.number == 3
    spans = window.spans
    names = list(words.names)
    told = [
        (names[name], ts - EARLIER_NS, part)
        for name, ts, part in zip(
            spans.name.tolist(), spans.ts_ns.tolist(), spans.arg("part").tolist(), strict=True
        )
    ]
    # 1 forward, 2 backward, 3 what is around them; 0 what does not say.
    assert told[:5] == [
        ("dot.1", 1000, 1), ("fusion.2", 1100, 2), ("all-reduce.3", 1250, 3), ("add.4", 1350, 3),
        ("copy.5", 1450, 0),
    ]  # fmt: skip
    assert set(spans.arg("window").tolist()) == {3}
    assert not said.counts


def test_options_leave_out_what_was_not_asked_for(tmp_path):
    whole = space(trained(), host(*steps_of_two()), task_plane())
    window, _, _ = read(drawn(tmp_path, whole), {"profile_communication": False})
    assert KIND["collective"] not in window.spans.kind.tolist()


def test_a_window_that_cannot_be_read_is_a_problem_and_no_more(tmp_path):
    window, _, said = read(drawn(tmp_path, b"no profile"))
    assert len(window.spans) == 0
    assert any("window-0003" in source for source, _ in said.counts)
