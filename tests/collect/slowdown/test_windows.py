from strobe.collect.on_demand.requests import Request
from strobe.collect.slowdown import windows
from strobe.collect.slowdown.windows import WATCH, Allowance


def request(kind="spike", by=WATCH):
    return Request(None, 5, "key", by, why="slow", kind=kind)


def test_each_kind_of_reason_has_its_turn_and_then_waits(monkeypatch):
    now = 1000.0
    monkeypatch.setattr(windows.time, "monotonic", lambda: now)
    allowance = Allowance()
    assert allowance.why_not(request()) == ""
    assert "less than 60 s ago" in allowance.why_not(request())
    assert allowance.why_not(request("drift")) == ""
    now += 61
    assert allowance.why_not(request()) == ""


def test_a_run_has_so_many_and_no_more(monkeypatch):
    now = 1000.0
    monkeypatch.setattr(windows.time, "monotonic", lambda: now)
    allowance = Allowance()
    for _ in range(20):
        assert allowance.why_not(request()) == ""
        now += 61
    assert "records at most" in allowance.why_not(request())


def test_what_a_person_asks_for_is_always_allowed():
    allowance = Allowance()
    assert [allowance.why_not(request(by="strobe attach")) for _ in range(50)] == [""] * 50
