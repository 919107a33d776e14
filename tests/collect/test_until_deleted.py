import gc

from strobe.collect.until_deleted import UntilDeleted


class Thing:
    def __eq__(self, other):
        raise AssertionError("things are not to be compared")


class Slotted:
    __slots__ = ()


def test_what_is_known_goes_with_the_thing():
    known = UntilDeleted()
    thing, other = Thing(), Thing()
    known.keep(thing, 1)
    known.keep(other, 2)
    assert known.get(id(thing)) == 1
    address = id(thing)
    del thing
    assert address not in known
    assert list(known.values()) == [2]


def test_a_thing_in_a_cycle_goes_when_the_collector_takes_it():
    known = UntilDeleted()
    thing = Thing()
    thing.itself = thing
    known.keep(thing, 1)
    del thing
    gc.collect()
    assert not known


def test_a_thing_that_comes_to_the_same_address_is_not_taken_for_the_first():
    known = UntilDeleted()
    for number in range(200):  # CPython gives the address of the last one out again
        thing = Thing()
        assert id(thing) not in known
        known.keep(thing, number)
        del thing


def test_a_new_value_replaces_the_old_one_and_goes_as_well():
    known = UntilDeleted()
    thing = Thing()
    known.keep(thing, 1)
    known.keep(thing, 2)
    assert known[id(thing)] == 2
    del thing
    assert not known


def test_what_cannot_be_watched_is_held():
    known = UntilDeleted()
    known.keep(Slotted(), 1)
    assert list(known.values()) == [1]
    known.clear()
    assert not known


def test_others_are_told_of_what_was_deleted():
    deleted = []
    known = UntilDeleted(deleted.append)
    thing = Thing()
    known.keep(thing, 1)
    address = id(thing)
    del thing
    assert deleted == [address]


def test_what_was_cleared_tells_nobody():
    deleted = []
    known = UntilDeleted(deleted.append)
    thing = Thing()
    known.keep(thing, 1)
    known.clear()
    del thing
    assert not deleted
