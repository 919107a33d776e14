"""Ways to one array of many; without jax."""

from collections import namedtuple

import pytest
from tests.collect.arrays import JAX, Array

from strobe.collect.jax_ways import Ways, names_of


@pytest.fixture
def ways():
    return Ways(JAX.tree_util, Array)


def test_a_way_leads_to_the_same_place_of_other_results(ways):
    first, second = ((Array(), [Array(), 3]), ((Array(), [Array(), 4])))
    way = ways.way(first, ways.found(first), 1)
    assert way(first) is first[1][0] and way(second) is second[1][0]


def test_what_cannot_be_indexed_is_searched(ways):
    class Odd(tuple):
        def __getitem__(self, index):
            return ("path", index)

    first, second = Odd([Array(), Array()]), Odd([Array(), Array()])
    way = ways.way(first, ways.found(first), 1)
    assert way(second) is list(second)[1]


def test_names_are_those_of_attributes_and_indices():
    Name, Index = namedtuple("Name", "name"), namedtuple("Index", "idx")
    State = namedtuple("State", "mini_step")
    assert names_of([State(Array())], (Index(0), Name("mini_step"))) == ("0", "mini_step")
