"""Ways to one array of many; without jax."""

from collections import namedtuple

import pytest

from strobe.collect.jax.array_access import Ways, names_of
from tests.collect.arrays import JAX, Array


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


def test_what_flax_nnx_lists_has_the_names_of_its_attributes():
    """A model of two layers, of which the second is the first again; and the state of optax."""
    Node, Index = namedtuple("Node", "num_attributes"), namedtuple("Index", "idx")
    Name, States = namedtuple("Name", "name"), namedtuple("States", "graph states")
    VariableDef, NodeRef = namedtuple("VariableDef", "index"), namedtuple("NodeRef", "index")
    NodeAttr, LeafAttr, Static = (namedtuple(n, "") for n in ("NodeAttr", "LeafAttr", "Static"))
    graph = namedtuple("GraphDef", "nodes attributes")(
        [Node(3), Node(3), VariableDef(1), NodeRef(1), Node(2), VariableDef(2), VariableDef(3)],
        [("layer", NodeAttr()), ("size", Static()), ("weight", NodeAttr()), ("mean", LeafAttr()),
         ("again", NodeAttr()), ("state", NodeAttr()), ("gradient_step", NodeAttr()),
         ("mini_step", NodeAttr())],
    )  # fmt: skip

    class NodeStates(States):
        _graphdef = graph

    tree = [NodeStates(graph, ([Array() for _ in range(4)],))]
    path = (Index(0), Name("states"), Index(0))
    assert [names_of(tree, (*path, Index(place)))[3:] for place in range(4)] == [
        ("layer", "weight"), ("layer", "mean"), ("state", "gradient_step"), ("state", "mini_step")
    ]  # fmt: skip
