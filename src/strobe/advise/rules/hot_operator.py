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
from strobe.frameworks import Framework
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

# The usual work of networks, by the name that a model calls. Views, copies and fills are included:
# other rules judge them, or none does.
_USUAL = re.compile(
    r"""_*(
    linear | matmul | mm | bmm | addmm | baddbmm | addbmm | addmv | mv | dot | einsum | bilinear
    | \w*sparse_\w*mm\w* | tensordot | inner | outer | ger | vdot | chain_matmul | linalg_multi_dot
    | \w*conv\w* | \w*norm\w* | \w*pool\w* | \w*dropout\w* | bernoulli_? | \w*softmax\w*
    | relu6?_? | \w*elu\w* | gelu_? | silu_? | sigmoid_? | log_sigmoid\w* | tanh_? | hard\w+
    | mish_?     | softplus | softsign | threshold\w* | glu | \w*clamp\w* | clip_?
    | (lstm|gru|rnn)\w* | \w*rnn\w* | \w*attention\w* | \w*multi_head\w* | \w*transformer\w*
    | embedding\w* | \w*loss\w* | \w*cross_entropy\w* | kl_div | cosine_similarity
    | (add|sub|rsub|mul|div|neg|abs|sqrt|rsqrt|square|exp|expm1|log|log1p|log2|reciprocal|sign
       |sin|cos|pow|addcmul|addcdiv|lerp|where|masked_fill|maximum|minimum|floor|ceil|round|remainder)_?
    | eq | ne | lt | le | gt | ge | isnan | isinf | isfinite | (bitwise|logical)_\w+
    | sum | mean | amax | amin | max | min | any | all | argmax | argmin | var | std | var_mean
    | std_mean | logsumexp | prod
    | zeros\w* | ones\w* | empty\w* | full\w* | new_\w+ | arange | linspace | zero_ | fill_
    | rand\w*     | normal_? | uniform_ | triu | tril | tensor | scalar_tensor
    | view\w* | reshape\w* | flatten | unflatten | permute | transpose | t | numpy_T | unsqueeze_?
    | squeeze_? | expand\w* | repeat | chunk | split\w* | unbind | select | slice | narrow | cat
    | concat | stack | clone | contiguous | copy_ | to | to_copy | type_as | detach_? | alias | item
    | lift\w* | index_select | pad | constant_pad\w*
    | reflection_pad\w* | replication_pad\w* | pixel_\w+ | foreach_\w+ | fused_\w+
    | unsafe_view | resolve_\w+ | set_ | local_scalar_dense | is_\w+ | requires_grad_
    | retain_grad | result_type | can_cast
    | record\w*
    )""",
    re.VERBOSE,
)
# Communication, waits and synchronization: their cost depends on other ranks and threads, and the
# rules about communication judge it.
_WAITING = re.compile(
    r"""(_?c10d\w*|_dtensor|fsdp|symm_mem|gloo|nccl|hccl|mpi|ucc)::.*
    | (\w+::)?_*(
        all_?reduce\w* | all_?gather\w* | all_?to_?all\w* | reduce_?scatter\w* | broadcast_?
        | (i?send|i?recv)(_any_source)?_? | barrier | monitored_barrier | (\w+_)?wait(_\w+)?
        | \w*synchroni[sz]e\w* | record_param_comms | pmean | psum\w* | ppermute
    )""",
    re.VERBOSE | re.IGNORECASE,
)
# An operator of a library, not a span that the framework or a compiler named.
_NAME_OF_OPERATOR = re.compile(r"(?!autograd)\w+::[a-z_][a-z0-9_]*")
# An operator of a compiled graph, with the scopes, the primitive and the line that it was compiled
# from: jit(train_step)/jvp(Net)/svd (train.py:7), Default/network-Net/Sort-op3.
_NODE = re.compile(
    r"(?P<scopes>.*)/(?P<primitive>\w+)(?:-op\d+)?(?: \((?P<place>[^()]*:\d+)\))?", re.DOTALL
)
# The primitive or gradient that such an operator is part of: Net/Grad_Sort/TopK-op0,
# jit(train_step)/transpose(jvp(jit(svd)))/dot_general.
_ENCLOSING = re.compile(r"(?:\bGrad_|\bjit\()(\w+)")
# An operator of a graph may combine several primitives, and its name has only one of them. So only
# primitives that are certainly not the usual work count.
_UNUSUAL_PRIMITIVES = {
    "sort", "topk", "top_k", "approx_top_k", "cumsum", "cumprod", "cummax", "cummin",
    "cumlogsumexp", "fft",
    "svd", "eig", "eigh", "cholesky", "lu", "qr", "geqrf", "householder_product", "schur",
    "triangular_solve", "tridiagonal_solve", "hessenberg", "tridiagonal", "erf_inv", "igamma",
    "lgamma", "digamma", "random_gamma",
    "pure_callback", "io_callback", "debug_callback",
}  # fmt: skip

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
    costs: list[OperatorCost], nodes: dict[int, re.Match[str]]
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


def is_usual(name: str) -> bool:
    return _USUAL.fullmatch(name) is not None


def is_waiting(cost: OperatorCost) -> bool:
    """Whether it communicates, waits or synchronises, or is part of what does."""
    return any(_WAITING.fullmatch(name) for name in (cost.name, cost.cause, cost.root))


def _unusual(costs: list[OperatorCost]) -> _Groups:
    """By the name of what the model called, or of its inner operator, whichever is unusual."""
    groups: _Groups = defaultdict(list)
    for cost in costs:
        if is_waiting(cost):
            continue
        names = [bare(n) for n in (cost.root, cost.cause) if _NAME_OF_OPERATOR.fullmatch(n)]
        unusual = next((name for name in names if not is_usual(name)), None)
        if unusual is not None and not takes_double(cost):
            groups[unusual.strip("_")].append(cost)
    return dict(groups)


def _nodes(training: Training, costs: list[OperatorCost]) -> dict[int, re.Match[str]]:
    """Operators of compiled graphs whose names have the primitive and the line, by event id."""
    rows = training.rows(
        "SELECT event_id, node FROM op_args WHERE node LIKE '%/%' "
        "AND list_contains($ids, event_id)",
        {"ids": [cost.event_id for cost in costs]},
    )
    matches = ((row["event_id"], _NODE.fullmatch(row["node"])) for row in rows)
    return {id: found for id, found in matches if found is not None}


def _unusual_nodes(costs: list[OperatorCost], nodes: dict[int, re.Match[str]]) -> _Groups:
    """By primitive, with all operators that it consists of and its backward pass."""
    groups: _Groups = defaultdict(list)
    found: set[str] = set()
    calls: dict[tuple[str, str], list[OperatorCost]] = defaultdict(list)
    for cost in costs:
        if (node := nodes.get(cost.event_id)) is None:
            continue
        enclosing = _ENCLOSING.findall(node["scopes"])
        names = [*enclosing, node["primitive"]]
        unusual = next((n.lower() for n in names if n.lower() in _UNUSUAL_PRIMITIVES), None)
        if unusual is not None:
            groups[unusual].append(cost)
        found.add(node["primitive"].lower())
        if len(enclosing) > 1 and node["place"]:
            calls[enclosing[1], node["place"]].append(cost)
    # A function of the user may have the name of a primitive.
    primitives = {name: group for name, group in groups.items() if name in found}
    return primitives | _library_functions(primitives, calls)


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


def _source_line(nodes: dict[int, re.Match[str]], costs: list[OperatorCost]) -> str | None:
    """The line that the most expensive of them was compiled from."""
    places = (nodes[cost.event_id]["place"] for cost in costs if cost.event_id in nodes)
    file, _, line = next((place for place in places if place), "").rpartition(":")
    return str(Lines(file, int(line))) if file else None


def _large_convolutions(costs: list[OperatorCost]) -> dict[Message, list[OperatorCost]]:
    groups: dict[Message, list[OperatorCost]] = defaultdict(list)
    for cost in costs:
        images = [shape for shape in shapes_of(cost) if len(shape) == 4]
        if "conv" not in cost.type or len(images) < 2:
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


# A fix by the operator's name: a message of this rule, or the name of a fix of the frameworks.
_SPECIAL_FIXES = (
    (r"callback", "compute-callback"),
    (r"sort|argsort|msort|median|quantile|kthvalue|mode", "hot-operator.topk"),
    (r"cdist|pdist|pairwise", "hot-operator.sample-pairs"),
    (r"linalg|svd|eig|inv|det|cholesky|qr|lu|solve|matrix", "hot-operator.approximate"),
    (r"scatter|index_put|index_add|index_copy|put|bincount|histc", "gather-updates"),
    (r"index|gather|take", "gather-once"),
    (r"unique|nonzero|masked_select|argwhere", "mask-instead-of-index"),
    (r"cum|logcumsumexp", "hot-operator.triangular-product"),
    (r"multinomial|randperm|poisson|geometric|exponential", "hot-operator.draw-once"),
)


def _special_fix(name: str) -> str | None:
    return next((fix_id for pattern, fix_id in _SPECIAL_FIXES if re.search(pattern, name)), None)


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
