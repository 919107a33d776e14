import pytest

from strobe.collect.on_demand.requests import ask, drop_into, in_inbox, read
from strobe.errors import UsageError


def test_what_is_dropped_is_taken_in_the_order_it_came(tmp_path):
    keys = [drop_into(tmp_path, ask(steps=n, by="a test")) for n in (1, 2, 3)]
    requests, wrong = in_inbox(tmp_path)
    assert [request.key for request in requests] == keys
    assert [request.count for request in requests] == [1, 2, 3]
    assert not wrong


def test_a_request_for_a_step_and_one_for_now():
    assert read(ask(steps=5, start=100, by="x"), "k").start == 100
    assert read(ask(steps=5, by="x"), "k").start is None
    assert read({"stop": True}, "k").is_stop


def test_options_are_those_of_a_window():
    request = read(ask(steps=5, by="x", options={"with_stack": True, "profiler_level": 0}), "k")
    assert request.options["with_stack"] is True and request.options["record_shapes"] is False
    with pytest.raises(UsageError, match="with_stak"):
        ask(steps=5, by="x", options={"with_stak": True})
    for steps in (0, 10**7):
        with pytest.raises(UsageError):
            ask(steps=steps, by="x")


def test_what_is_no_request_is_told_and_removed(tmp_path):
    (tmp_path / "1.json").write_text('{"steps": ')
    (tmp_path / "2.json").write_text('{"steps": []}')
    (tmp_path / "3.json").symlink_to("/etc/hostname")
    (tmp_path / ".hidden.json").write_text("{}")
    requests, wrong = in_inbox(tmp_path)
    assert not requests and len(wrong) == 3
    assert [path.name for path in tmp_path.iterdir()] == [".hidden.json"]
    assert in_inbox(tmp_path / "absent")[1]
