from types import SimpleNamespace

from strobe.collect.host.debug_modes import DebugModes, in_environment, is_set


class Recorded:
    """What a recorder would write."""

    def __init__(self):
        self.at_looks, self.counts, self.names = [], [], []
        self.journal = SimpleNamespace(string=self._string, mark=self._mark)

    def _string(self, kind, text):
        self.names.append(text)
        return len(self.names)

    def _mark(self, code, ref, value):
        self.counts.append((self.names[ref - 1], value))


def test_a_mode_is_recorded_from_when_it_is_first_on():
    recorded, flags = Recorded(), {"on": False}
    modes = DebugModes(recorded, {"checks": lambda: flags["on"]})
    modes.begin()
    assert recorded.counts == []
    flags["on"] = True
    recorded.at_looks[0]()
    flags["on"] = False
    recorded.at_looks[0]()
    assert recorded.counts == [("debug_mode_checks", 1), ("debug_mode_checks", 0)]


def test_a_mode_that_cannot_be_read_is_asked_once():
    asked = []

    def broken():
        asked.append(1)
        raise AttributeError("no such mode")

    recorded = Recorded()
    modes = DebugModes(recorded, {"gone": broken, "there": lambda: True})
    modes.begin()
    modes.look()
    assert len(asked) == 1
    assert recorded.counts == [("debug_mode_there", 1)] * 2


def test_variables_of_the_environment(monkeypatch):
    readers = in_environment("STROBE_TEST_A", "STROBE_TEST_B")
    monkeypatch.setenv("STROBE_TEST_A", "1")
    monkeypatch.setenv("STROBE_TEST_B", "0")
    assert readers["STROBE_TEST_A"]() and not readers["STROBE_TEST_B"]()
    assert not is_set("STROBE_TEST_C")
