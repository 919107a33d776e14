"""One unusual operator takes a large part of the step.

## What it is
Most of a training step should be the usual work of a network: matrix products, convolutions,
attention, norms and activations. If another operator takes a large part of the step, check whether
it is needed in every step and at that size. Examples are a sort, a singular value decomposition,
all pairwise distances, a scatter, a cumulative sum, a product with a one-hot matrix, and a call
from a compiled program back to Python.

## How it is judged
Strobe groups operators by the call of the model that they belong to: its forward pass, everything
that runs inside it, and its backward pass. In compiled graphs it groups them by their names, if the
names show the origin. The usual work of a network never counts, no matter how long it takes: a
transformer that spends its time in `addmm` is fine. Communication, waits and synchronization never
count either (see `exposed-communication`). Copies, float64 and the update have their own rules.

Any other operator is reported if it takes 20% of a typical step. So is a product with a one-hot
matrix, which is a lookup written as a product, and a dense convolution with a kernel of 15×15 or
more. The expected gain is 90% of the operator's time, because its replacement costs something too.
If the fix is to compute the operator once, and it takes at least 40% of the function around it, the
time of the whole function counts.

## How to fix
Compute it once if its inputs do not change, only every few steps, or on fewer elements (`topk`
instead of `sort`, a sample of the pairs). Or use a specialized form: `embedding` for a one-hot
product, one `index_add_` for many small scatters, power iteration for the largest singular value,
several small or separable convolutions for a large one.
"""

import re
from collections import defaultdict

from strobe.advise.evidence.one_hot import one_hot_products
from strobe.advise.evidence.operator_times import (
    OperatorCost,
    bare,
    operator_costs,
    shapes_of,
    where_called,
    why_not,
)
from strobe.advise.evidence.stack_lines import function_at
from strobe.advise.finding import Clear, Evidence, Finding, Verdict
from strobe.advise.fixes import at_line, fix, is_fix
from strobe.advise.rules.double_precision import takes_double
from strobe.advise.thresholds import speedup
from strobe.advise.training import Lines, Training
from strobe.frameworks import Framework, of_all
from strobe.frameworks.families import family_of
from strobe.frameworks.graph_names import GraphName, graph_name
from strobe.messages import Message, message
from strobe.units import count, duration, percent

NAME = "hot-operator"

# A smaller share of an unusual operator is a choice, not a fault.
SMALLEST_SHARE = 0.20
# The replacement costs something too.
AVOIDABLE_RATIO = 0.9
# A dense convolution from this size on is cheaper as several small ones.
LARGE_KERNEL = 15
# From this part of a function on, the whole function counts: its other operators prepare the input
# of this one, or use its result.
PART_OF_FUNCTION_RATIO = 0.4

# Not the usual work of networks. Views, copies and fills are usual: other rules judge them, or none
# does. So is communication, whose cost depends on other ranks.
_UNUSUAL = (
    "one-hot", "sort", "top-k", "cumulative sum", "scan", "linear algebra", "distance", "scatter",
    "gather", "filter", "special function", "sampling", "fft", "callback",
)  # fmt: skip
# An operator of a graph may combine several primitives, and its name has only one of them. So only
# primitives that are certainly not the usual work count.
_UNUSUAL_IN_GRAPHS = (
    "sort", "top-k", "cumulative sum", "scan", "linear algebra", "special function", "sampling",
    "fft", "callback",
)  # fmt: skip
# An operator of a library, not a span that the framework or a compiler named.
_NAME_OF_OPERATOR = re.compile(r"(?!autograd)\w+::[a-z_][a-z0-9_]*")
_WEIGHT_GRADIENTS = of_all(lambda framework: framework.weight_gradients)

# The id of the message that names a hot operator, if it is not a product or a convolution.
_OPERATOR = "hot-operator.operator"

_Groups = dict[str, list[OperatorCost]]  # by the name of an operator


def check(training: Training) -> Verdict:
    if unknown := why_not(training):
        return unknown
    costs = [c for c in operator_costs(training) if c.direction not in ("gap", "update")]
    step_ns = max(1.0, training.typical_ns)
    nodes = _nodes(training, costs)
    groups = _groups(costs, nodes)
    if not groups:
        return Clear(message("hot-operator.usual"))
    what, group = max(groups.items(), key=lambda item: _total(item[1]))
    time_share = _total(group) / step_ns
    if time_share < SMALLEST_SHARE:
        return Clear(message("hot-operator.small", what=what, share=percent(time_share)))
    share = AVOIDABLE_RATIO * min(time_share, 1.0)
    most_expensive = sorted(group, key=lambda cost: -cost.cost_ns)[:5]
    where = _source_line(nodes, most_expensive) or where_called(training, most_expensive)
    line = where if where != most_expensive[0].scope else None
    fixes = _fixes(what, training.framework, line)
    why = message("hot-operator.why", what=what, step=duration(step_ns),
                  time=duration(min(_total(group), step_ns)))  # fmt: skip
    whole = _whole_function(training, what, line, time_share)
    if whole is not None:
        function, function_share = whole
        share = AVOIDABLE_RATIO * function_share
        why = message("hot-operator.why-function", why=why, function=function,
                      share=percent(function_share))  # fmt: skip
        fixes = (message("hot-operator.keep-result", function=function, line=line), *fixes[1:])
    return Finding(
        title=message("hot-operator.title", what=what, inside=_inside(group),
                      share=percent(min(1.0, time_share))),
        why=why,
        share=share,
        expected_speedup=speedup(share),
        fixes=fixes,
        evidence=(Evidence("operators", tuple(cost.row() for cost in most_expensive)),),
        where=where,
        is_certain=False,
    )  # fmt: skip


def _groups(
    costs: list[OperatorCost], nodes: dict[int, GraphName]
) -> dict[Message, list[OperatorCost]]:
    """Operators that are not the usual work, by the message that names them."""
    unusual = _unusual(costs) | _unusual_nodes(costs, nodes)
    groups = {message(_OPERATOR, name=name): group for name, group in unusual.items()}
    if one_hot := one_hot_products(costs, nodes):
        groups[message("hot-operator.one-hot")] = one_hot
    return groups | _large_convolutions(costs)


def _whole_function(
    training: Training, what: Message, line: str | None, time_share: float
) -> tuple[str, float] | None:
    """The function around the operator and its share of the step, if the fix is to compute the
    operator once, and it is a large part of the function."""
    if line is None or what.id != _OPERATOR or _special_fix(what.values["name"]) is not None:
        return None
    found = function_at(training, line)
    if found is None or not time_share <= found[1] <= time_share / PART_OF_FUNCTION_RATIO:
        return None
    return found


def _total(group: list[OperatorCost]) -> float:
    return sum(cost.cost_ns for cost in group)


def is_waiting(cost: OperatorCost) -> bool:
    """Whether it communicates, waits or synchronizes, or is part of what does."""
    return "communication" in (cost.family, cost.cause_family, cost.root_family)


def _unusual(costs: list[OperatorCost]) -> _Groups:
    """By the name of what the model called, or of its inner operator, whichever is unusual."""
    groups: _Groups = defaultdict(list)
    for cost in costs:
        if is_waiting(cost):
            continue
        called = ((cost.root, cost.root_family), (cost.cause, cost.cause_family))
        unusual = next((bare(name) for name, family in called if _is_unusual(name, family)), None)
        if unusual is not None and not takes_double(cost):
            groups[unusual.strip("_")].append(cost)
    return dict(groups)


def _is_unusual(name: str, family: str | None) -> bool:
    """Whether it is an operator of a library, and not the usual work."""
    return _NAME_OF_OPERATOR.fullmatch(name) is not None and (family is None or family in _UNUSUAL)


def _nodes(training: Training, costs: list[OperatorCost]) -> dict[int, GraphName]:
    """Operators of compiled graphs whose names have the primitive and the line, by event id."""
    rows = training.rows(
        "SELECT event_id, node FROM op_args WHERE node LIKE '%/%' "
        "AND list_contains($ids, event_id)",
        {"ids": [cost.event_id for cost in costs]},
    )
    matches = ((row["event_id"], graph_name(row["node"])) for row in rows)
    return {id: found for id, found in matches if found is not None}


def _unusual_nodes(costs: list[OperatorCost], nodes: dict[int, GraphName]) -> _Groups:
    """By primitive, with all operators that it consists of and its backward pass."""
    groups: _Groups = defaultdict(list)
    # A function of the user may have the name of a primitive.
    primitives = {node.primitive.lower() for node in nodes.values()}
    unusual = {name for name in primitives if family_of(name) in _UNUSUAL_IN_GRAPHS}
    calls: dict[tuple[str, str], list[OperatorCost]] = defaultdict(list)
    for cost in costs:
        if (node := nodes.get(cost.event_id)) is None:
            continue
        enclosing = node.enclosing
        names = (name.lower() for name in (*enclosing, node.primitive))
        if (name := next((name for name in names if name in unusual), None)) is not None:
            groups[name].append(cost)
        if len(enclosing) > 1 and node.place:
            calls[enclosing[1], node.place].append(cost)
    return dict(groups) | _library_functions(groups, calls)


def _library_functions(
    groups: _Groups, calls: dict[tuple[str, str], list[OperatorCost]]
) -> _Groups:
    """The operators of a library's function, if most of them are unusual: an inverse is `lu` and
    two calls of `triangular_solve`."""
    unusual = {cost.event_id for group in groups.values() for cost in group}
    found: _Groups = defaultdict(list)
    for (function, _), group in calls.items():
        inside = [cost for cost in group if cost.event_id in unusual]
        if function not in groups and inside and 2 * _total(inside) >= _total(group):
            found[function] += group
    return dict(found)


def _source_line(nodes: dict[int, GraphName], costs: list[OperatorCost]) -> str | None:
    """The line that the most expensive of them was compiled from."""
    places = (nodes[cost.event_id].place for cost in costs if cost.event_id in nodes)
    file, _, line = next((place for place in places if place), "").rpartition(":")
    return str(Lines(file, int(line))) if file else None


def _large_convolutions(costs: list[OperatorCost]) -> dict[Message, list[OperatorCost]]:
    groups: dict[Message, list[OperatorCost]] = defaultdict(list)
    for cost in costs:
        images = [shape for shape in shapes_of(cost) if len(shape) == 4]
        if cost.family != "convolution" or cost.type in _WEIGHT_GRADIENTS or len(images) < 2:
            continue
        # The weight is smaller than the input and the gradient.
        _, channels, height, width = min(images, key=lambda shape: shape[2] * shape[3])
        side = max(shape[2] for shape in images)
        # A kernel of one channel is cheap. An image whose side is a multiple of the kernel's is
        # split into patches.
        is_dense = channels > 1 and side % height
        if min(height, width) >= LARGE_KERNEL and is_dense:
            what = message("hot-operator.convolution", height=height, width=width)
            groups[what].append(cost)
    return dict(groups)


def _inside(group: list[OperatorCost]) -> str:
    """The module of the operators, or the number of their modules, as part of a sentence."""
    scopes = {cost.scope for cost in group if cost.scope}
    if len(scopes) > 1:
        return message("hot-operator.in-modules", count=count(len(scopes)))
    return message("place.inside", scope=scopes.pop()) if scopes else ""


# A fix by the operator's family: a message of this rule, or the name of a fix of the frameworks.
_SPECIAL_FIXES = {
    "callback": "compute-callback",
    "sort": "hot-operator.topk",
    "distance": "hot-operator.sample-pairs",
    "linear algebra": "hot-operator.approximate",
    "scatter": "gather-updates",
    "gather": "gather-once",
    "filter": "mask-instead-of-index",
    "cumulative sum": "hot-operator.triangular-product",
    "sampling": "hot-operator.draw-once",
}


def _special_fix(name: str) -> str | None:
    return _SPECIAL_FIXES.get(family_of(name) or "")


def _fixes(what: Message, framework: Framework, line: str | None) -> tuple[Message, ...]:
    at = at_line(line)
    if what.id == "hot-operator.one-hot":
        return (fix("look-rows-up", framework, line),)
    if what.id == "hot-operator.convolution":
        return (message("hot-operator.smaller-kernels", at=at),
                message("hot-operator.compute-convolution-once", at=at))  # fmt: skip
    name = what.values["name"]
    once = message("hot-operator.compute-once", name=name, at=at)
    special = _special_fix(name)
    if special is None:
        return (once,)
    if is_fix(special):
        return (fix(special, framework, line), once)
    return (message(special, name=name, at=at), once)
