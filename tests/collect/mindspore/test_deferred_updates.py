"""When an update ended, by what comes next; times are given."""

import pytest

from strobe.collect.mindspore.deferred_updates import Pending

MS = 1_000_000


@pytest.mark.parametrize(
    ("asked_ms", "came_ms", "ended_ms"),
    [
        (101, 140, 140),  # it was waited for
        (101, 101.05, 100),  # it was there
        (160, 160.5, 100),  # a checkpoint lies between: it was there long before
        (160, 190, 190),  # and here it was not
    ],
)
def test_an_update_ends_when_its_value_came_if_somebody_waited_for_it(asked_ms, came_ms, ended_ms):
    told: list[tuple[str, int]] = []
    pending = Pending(recorder=None)
    pending.hold(100 * MS, lambda of, ended_ns, _: told.append((of, ended_ns)), "update")
    pending._came(int(asked_ms * MS), int(came_ms * MS))
    assert told == [("update", ended_ms * MS)]
    assert pending.tell is None
