"""Products with a one-hot matrix: lookups that are written as products."""

import math

from strobe.advise.evidence.operator_times import OperatorCost, bare, shapes_of
from strobe.frameworks import of_all
from strobe.frameworks.graph_names import GraphName

# A product with a one-hot matrix of fewer classes is as fast as a lookup.
FEWEST_CLASSES = 64
_ONE_HOT_SCOPES = of_all(lambda framework: framework.one_hot_scope)
# The names of products in programs that use it.
_PROGRAM_PRODUCTS = ("dot_general", "transpose")


def one_hot_products(costs: list[OperatorCost], nodes: dict[int, GraphName]) -> list[OperatorCost]:
    """The operators that make the matrix, and the products that use it. `nodes` are names in
    compiled graphs, by event."""
    return _of_programs(costs, nodes) or _of_graphs(costs) or _of_functions(costs)


def _of_functions(costs: list[OperatorCost]) -> list[OperatorCost]:
    """Operators that make one-hot vectors, and products in the same module with a dimension of as
    many elements as there are classes."""
    made = [cost for cost in costs if cost.root_family == "one-hot"]
    sizes = {shape[-1] for cost in made for shape in shapes_of(cost)[:1] if len(shape) > 1}
    classes = {size for size in sizes if size >= FEWEST_CLASSES}
    found: list[OperatorCost] = []
    for scope in {cost.scope for cost in made}:
        products = [
            cost for cost in costs
            if cost.scope == scope and cost.root_family == "matmul"
            and any(classes & set(shape) for shape in shapes_of(cost))
        ]  # fmt: skip
        if products:
            converted = [
                cost for cost in costs
                if cost.scope == scope and bare(cost.root) == "to"
                and any(shape[-1:] and shape[-1] in classes for shape in shapes_of(cost))
            ]  # fmt: skip
            found += [cost for cost in made if cost.scope == scope] + converted + products
    return found


def _of_graphs(costs: list[OperatorCost]) -> list[OperatorCost]:
    """The same in graphs that have the shapes of inputs only: n indices become n
    rows with as many columns as there are classes, which are multiplied in the same module."""
    group: dict[int, OperatorCost] = {}
    for made in (c for c in costs if c.family == "one-hot" and bare(c.name) == c.name):
        rows = math.prod(next(iter(shapes_of(made)), []))
        products = [cost for cost in costs if cost.root_family == "matmul"]
        classes = {
            shapes[0][-1]: cost.event_id for cost in reversed(products)
            if (cost.scope == made.scope or made.scope is None) and (shapes := shapes_of(cost))
            and len(shapes[0]) > 1 and math.prod(shapes[0][:-1]) == rows
            and shapes[0][-1] >= FEWEST_CLASSES
        }  # fmt: skip
        if made.scope is None:  # any layer may have as many rows: the first product after it
            later = [size for size in classes if classes[size] > made.event_id]
            classes = {size: 0 for size in sorted(later, key=classes.__getitem__)[:1]}
        # The backward pass has the scope of the module that follows. Without graphs, a product of
        # more than two dimensions first copies the whole table for each sample.
        used = [
            cost for cost in products if any([rows, size] in shapes_of(cost) for size in classes)
        ]
        if made.scope is None:
            used = [c for c in costs if any(classes.keys() & {*shape} for shape in shapes_of(c))]
        group |= {cost.event_id: cost for cost in ([made, *used] if used else [])}
    return [*group.values()]


def _of_programs(costs: list[OperatorCost], nodes: dict[int, GraphName]) -> list[OperatorCost]:
    """The same in compiled programs: a product at the line that makes the vectors, or another one
    with a matrix of their shape, such as its backward pass."""
    node = {cost.event_id: nodes[cost.event_id] for cost in costs if cost.event_id in nodes}
    found = [cost for cost in costs if cost.event_id in node]
    products = [c for c in found if node[c.event_id].primitive in _PROGRAM_PRODUCTS]
    group: dict[int, OperatorCost] = {}
    for made in (c for c in found if _is_one_hot(node[c.event_id])):
        rows = math.prod(next(iter(shapes_of(made)), []))
        matrices = {
            tuple(shape)
            for cost in products
            if node[cost.event_id].place == node[made.event_id].place
            for shape in shapes_of(cost)
            if shape[-1] >= FEWEST_CLASSES and math.prod(shape[:-1]) == rows
        }
        used = [c for c in products if any(tuple(shape) in matrices for shape in shapes_of(c))]
        group |= {cost.event_id: cost for cost in ([made, *used] if used else [])}
    return [*group.values()]


def _is_one_hot(node: GraphName) -> bool:
    return any(scope in node.scopes for scope in _ONE_HOT_SCOPES)
