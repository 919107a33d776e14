"""One unusual operator takes a large part of the step.

## What it is
Most of a training step should be what networks are made of: products of matrices, convolutions,
attention, norms, activations. Where an operator of another sort (a sort, a singular value
decomposition, all pairwise distances, a scatter, a cumulative sum, a one-hot vector times a matrix,
a call from a compiled program back to Python) takes a large part, it is worth asking whether it
must be there, at that size, at every step.

## How it is judged
Operators are put together by what the model called: its forward, all that runs inside it, and its
backward; in compiled graphs as far as their names tell. The usual work of a network never counts,
however long it takes: a transformer that spends its time in `addmm` is well. Of the rest, whatever
takes 20% of an ordinary step is reported. Communication, waits and synchronisation never count:
see `exposed-communication`. So is a product with a one-hot matrix, which is a lookup
written as a product, and a dense convolution with a kernel of 15 by 15 or more. Copies, float64 and
the update have rules of their own. The gain counts nine tenths of the operator's time; what
replaces it costs something too. Where the operator is to be computed once, and takes at least 40%
of the function around it, the time of the whole function counts.

## How to fix
Compute it once where its inputs do not change, on fewer elements (`topk` instead of `sort`, a
sample of the pairs), every few steps, or with a form made for it: `embedding` for a one-hot
product, one `index_add_` for many small scatters, a power iteration for the largest singular value,
several small or separable convolutions for a large one.
"""

import json
import math
import re
from collections import defaultdict

from strobe.advise.evidence.operator_times import (
    OperatorCost,
    bare,
    operator_costs,
    where_called,
    why_not,
)
from strobe.advise.evidence.stack_lines import function_at
from strobe.advise.finding import Clear, Evidence, Finding, Verdict, speedup
from strobe.advise.fixes import fix, is_fix
from strobe.advise.rules.double_precision import takes_double
from strobe.advise.training import Lines, Training
from strobe.units import percent

NAME = "hot-operator"

# Less of an unusual operator is a choice, not a fault.
WORTH_TELLING_RATIO = 0.20
# What replaces it costs something too.
AVOIDABLE_RATIO = 0.9
# A dense convolution from this size on is cheaper as several small ones.
LARGE_KERNEL = 15
# An operator that takes this part of a function stands for it: what else is computed there
# prepares the operator's input, or uses its result.
PART_OF_FUNCTION_RATIO = 0.4
# A one-hot matrix of fewer classes is as quick as a lookup.
FEWEST_CLASSES = 64

# The usual work of networks, by the name that a model calls. Views, copies and fills are here too:
# what they cost is another rule's affair, or nobody's.
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
# Communication, waits and synchronisation: what they cost depends on other ranks and threads, and
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
# An operator of a library, as against a span that the framework or a compiler named.
_NAME_OF_OPERATOR = re.compile(r"(?!autograd)\w+::[a-z_][a-z0-9_]*")
# An operator of a compiled graph, by the scopes and the primitive it was compiled from, and its
# line: jit(train_step)/jvp(Net)/svd (train.py:7), Default/network-Net/Sort-op3.
_NODE = re.compile(
    r"(?P<scopes>.*)/(?P<primitive>\w+)(?:-op\d+)?(?: \((?P<place>[^()]*:\d+)\))?", re.DOTALL
)
# What stands around it there, if it is part of a primitive or its gradient: Net/Grad_Sort/TopK-op0,
# jit(train_step)/transpose(jvp(jit(svd)))/dot_general.
_PART_OF = re.compile(r"(?:\bGrad_|\bjit\()(\w+)")
# A graph's operators stand for several primitives, of which one is told. So only those count of
# which it is certain that they are not the usual work.
_UNUSUAL_PRIMITIVES = {
    "sort", "topk", "top_k", "approx_top_k", "cumsum", "cumprod", "cummax", "cummin",
    "cumlogsumexp", "fft",
    "svd", "eig", "eigh", "cholesky", "lu", "qr", "geqrf", "householder_product", "schur",
    "triangular_solve", "tridiagonal_solve", "hessenberg", "tridiagonal", "erf_inv", "igamma",
    "lgamma", "digamma", "random_gamma",
    "pure_callback", "io_callback", "debug_callback",
}  # fmt: skip
_ONE_HOT_NODE = "OneHot"
# jax.nn.one_hot, and what products are called in the programs it is part of.
_ONE_HOT_SCOPE = "jit(_one_hot)"
_PROGRAM_PRODUCTS = ("dot_general", "transpose")
_PRODUCTS = {"matmul", "mm", "bmm", "linear", "addmm", "einsum"}

_Groups = dict[str, list[OperatorCost]]


def check(training: Training) -> Verdict:
    if unknown := why_not(training):
        return unknown
    costs = [c for c in operator_costs(training) if c.direction not in ("gap", "update")]
    step_ns = max(1.0, training.typical_ns)
    groups = _unusual(costs)
    groups |= _one_hot_products(costs) | _one_hot_of_graphs(costs) | _large_convolutions(costs)
    nodes = _nodes(training, costs)
    groups |= _unusual_nodes(costs, nodes) | _one_hot_of_programs(costs, nodes)
    if not groups:
        return Clear("all operators are the usual work of a network")
    what, group = max(groups.items(), key=lambda item: _total(item[1]))
    time_share = _total(group) / step_ns
    if time_share < WORTH_TELLING_RATIO:
        return Clear(
            f"the dearest unusual operator, {what}, takes {percent(time_share)} of step time"
        )
    share = AVOIDABLE_RATIO * min(time_share, 1.0)
    dearest = sorted(group, key=lambda cost: -cost.cost_ns)[:5]
    where = _written_at(nodes, dearest) or where_called(training, dearest)
    fixes = _fixes(what, training.framework)
    whole = _whole_function(training, what, where, time_share)
    if whole is not None:
        function, share = whole
        fixes = (f"call {function}() once before the loop and keep its result, if its inputs do "
                 "not change", *fixes[1:])  # fmt: skip
    return Finding(
        title=f"{_article(what)} {what}{_inside(group)} takes {percent(min(1.0, time_share))} of "
        "step time",
        share=share,
        expected_speedup=speedup(share),
        fixes=fixes,
        evidence=(Evidence("operators", tuple(cost.row() for cost in dearest)),),
        where=where,
        is_certain=False,
    )


def _whole_function(
    training: Training, what: str, where: str | None, time_share: float
) -> tuple[str, float] | None:
    """The function around the operator and what its time can be avoided, where the advice is to
    compute it once, and the operator is a large part of it."""
    if (
        where is None
        or any(re.search(pattern, what) for pattern, _ in _ADVICE)
        or "one-hot" in what
    ):
        return None
    found = function_at(training, where)
    if found is None or not time_share <= found[1] <= time_share / PART_OF_FUNCTION_RATIO:
        return None
    return found[0], AVOIDABLE_RATIO * found[1]


def _total(group: list[OperatorCost]) -> float:
    return sum(cost.cost_ns for cost in group)


def is_usual(name: str) -> bool:
    return _USUAL.fullmatch(name) is not None


def is_waiting(cost: OperatorCost) -> bool:
    """Whether it communicates, waits or synchronises, or is part of what does."""
    return any(_WAITING.fullmatch(name) for name in (cost.name, cost.cause, cost.root))


def _unusual(costs: list[OperatorCost]) -> _Groups:
    """By what the model called and where, if that, or what it came down to, is unusual."""
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
    """Of operators of compiled graphs that tell what they were made of, and where."""
    rows = training.rows(
        "SELECT event_id, node FROM op_args WHERE node LIKE '%/%' "
        "AND list_contains($ids, event_id)",
        {"ids": [cost.event_id for cost in costs]},
    )
    matches = ((row["event_id"], _NODE.fullmatch(row["node"])) for row in rows)
    return {id: found for id, found in matches if found is not None}


def _unusual_nodes(costs: list[OperatorCost], nodes: dict[int, re.Match[str]]) -> _Groups:
    """By primitive, with all that it comes down to and its backward."""
    groups: _Groups = defaultdict(list)
    found: set[str] = set()
    calls: dict[tuple[str, str], list[OperatorCost]] = defaultdict(list)
    for cost in costs:
        if (node := nodes.get(cost.event_id)) is None:
            continue
        parts = _PART_OF.findall(node["scopes"])
        names = [*parts, node["primitive"]]
        unusual = next((n.lower() for n in names if n.lower() in _UNUSUAL_PRIMITIVES), None)
        if unusual is not None:
            groups[unusual].append(cost)
        found.add(node["primitive"].lower())
        if len(parts) > 1 and node["place"]:
            calls[parts[1], node["place"]].append(cost)
    # A function of the user's own may have any name.
    own = {name: group for name, group in groups.items() if name in found}
    return own | _of_one_call(own, calls)


def _of_one_call(groups: _Groups, calls: dict[tuple[str, str], list[OperatorCost]]) -> _Groups:
    """What a function of the library is made of belongs together, if most of it is unusual: an
    inverse is `lu` and two times `triangular_solve`."""
    unusual = {cost.event_id for group in groups.values() for cost in group}
    found: _Groups = defaultdict(list)
    for (function, _), group in calls.items():
        inside = [cost for cost in group if cost.event_id in unusual]
        if function not in groups and inside and 2 * _total(inside) >= _total(group):
            found[function] += group
    return dict(found)


def _written_at(nodes: dict[int, re.Match[str]], costs: list[OperatorCost]) -> str | None:
    """The line from which the dearest was compiled."""
    places = (nodes[cost.event_id]["place"] for cost in costs if cost.event_id in nodes)
    file, _, line = next((place for place in places if place), "").rpartition(":")
    return str(Lines(file, int(line))) if file else None


def _one_hot_products(costs: list[OperatorCost]) -> _Groups:
    """Making one-hot vectors, and every product of a module that has as many rows as classes."""
    made = [cost for cost in costs if bare(cost.root) == "one_hot"]
    sizes = {shape[-1] for cost in made for shape in _shapes(cost)[:1] if len(shape) > 1}
    classes = {size for size in sizes if size >= FEWEST_CLASSES}
    groups: _Groups = defaultdict(list)
    for scope in {cost.scope for cost in made}:
        products = [
            cost for cost in costs
            if cost.scope == scope and bare(cost.root) in _PRODUCTS
            and any(classes & set(shape) for shape in _shapes(cost))
        ]  # fmt: skip
        if products:
            converted = [
                cost for cost in costs
                if cost.scope == scope and bare(cost.root) == "to"
                and any(shape[-1:] and shape[-1] in classes for shape in _shapes(cost))
            ]  # fmt: skip
            own = [cost for cost in made if cost.scope == scope]
            groups["one-hot product"] += [*own, *converted, *products]
    return dict(groups)


def _one_hot_of_graphs(costs: list[OperatorCost]) -> _Groups:
    """The same in graphs of MindSpore, which tell shapes of inputs alone: of n indices n rows are
    made, with as many columns as there are classes, and multiplied in the same module."""
    group: dict[int, OperatorCost] = {}
    for made in (cost for cost in costs if cost.name == _ONE_HOT_NODE):
        rows = math.prod(next(iter(_shapes(made)), []))
        products = [cost for cost in costs if bare(cost.root).lower() in _PRODUCTS]
        classes = {
            shapes[0][1] for cost in products
            if cost.scope == made.scope and (shapes := _shapes(cost))
            and shapes[0][0] == rows and len(shapes[0]) == 2 and shapes[0][1] >= FEWEST_CLASSES
        }  # fmt: skip
        # Its backward is told under the module that comes behind.
        used = [cost for cost in products if any([rows, size] in _shapes(cost) for size in classes)]
        group |= {cost.event_id: cost for cost in ([made, *used] if used else [])}
    return {"one-hot product": [*group.values()]} if group else {}


def _one_hot_of_programs(costs: list[OperatorCost], nodes: dict[int, re.Match[str]]) -> _Groups:
    """The same in programs of JAX: a product at the line that makes the vectors, or another one
    that takes a matrix of their shape, as its backward does."""
    node = {cost.event_id: nodes[cost.event_id] for cost in costs if cost.event_id in nodes}
    found = [cost for cost in costs if cost.event_id in node]
    products = [c for c in found if node[c.event_id]["primitive"] in _PROGRAM_PRODUCTS]
    group: dict[int, OperatorCost] = {}
    for made in (c for c in found if _ONE_HOT_SCOPE in node[c.event_id]["scopes"]):
        rows = math.prod(next(iter(_shapes(made)), []))
        matrices = {
            tuple(shape)
            for cost in products
            if node[cost.event_id]["place"] == node[made.event_id]["place"]
            for shape in _shapes(cost)
            if shape[-1] >= FEWEST_CLASSES and math.prod(shape[:-1]) == rows
        }
        used = [c for c in products if any(tuple(shape) in matrices for shape in _shapes(c))]
        group |= {cost.event_id: cost for cost in ([made, *used] if used else [])}
    return {"one-hot product": [*group.values()]} if group else {}


def _large_convolutions(costs: list[OperatorCost]) -> _Groups:
    groups: _Groups = defaultdict(list)
    for cost in costs:
        images = [shape for shape in _shapes(cost) if len(shape) == 4]
        if "conv" not in cost.type or len(images) < 2:
            continue
        # Of input, weight and gradient the weight has the smallest sides.
        _, channels, height, width = min(images, key=lambda shape: shape[2] * shape[3])
        side = max(shape[2] for shape in images)
        # One channel a kernel is cheap; a picture of whole kernels is cut into patches.
        is_dense = channels > 1 and side % height
        if min(height, width) >= LARGE_KERNEL and is_dense:
            groups[f"convolution with a kernel of {height} by {width}"].append(cost)
    return dict(groups)


def _shapes(cost: OperatorCost) -> list[list[int]]:
    """Of the tensors among its inputs."""
    try:
        shapes = json.loads(cost.input_shapes or "[]")
    except ValueError:
        return []
    return [s for s in shapes if isinstance(s, list) and s and all(isinstance(n, int) for n in s)]


def _inside(group: list[OperatorCost]) -> str:
    scopes = {cost.scope for cost in group if cost.scope}
    if len(scopes) > 1:
        return f" in {len(scopes)} modules"
    return f" in {scopes.pop()}" if scopes else ""


def _article(what: str) -> str:
    return "the operator" if re.fullmatch(r"\w+", what) else "a"


# A fix by the operator's name: its key in the catalogue, or the words themselves.
_ADVICE = (
    (r"callback", "compute-callback"),
    (r"sort|argsort|msort|median|quantile|kthvalue|mode", "use topk, or sort fewer elements"),
    (r"cdist|pdist|pairwise", "take the distances of a sample of pairs, or p=2: a product"),
    (r"linalg|svd|eig|inv|det|cholesky|qr|lu|solve|matrix",
     "compute it every few steps, or approximate it: a power iteration finds the largest value"),
    (r"scatter|index_put|index_add|index_copy|put|bincount|histc", "gather-updates"),
    (r"index|gather|take", "gather-once"),
    (r"unique|nonzero|masked_select|argwhere", "mask-instead-of-index"),
    (r"cum|logcumsumexp", "replace the running sum by a product with a triangular matrix, or once "
     "before the loop"),
    (r"convolution", "use several small kernels, a separable one, or a Fourier transform"),
    (r"multinomial|randperm|poisson|geometric|exponential",
     "draw it once for several steps, or in the data loader's workers"),
)  # fmt: skip


def _fixes(what: str, framework: str) -> tuple[str, ...]:
    if "one-hot" in what:
        return (fix("look-rows-up", framework),)
    special = next((fix for pattern, fix in _ADVICE if re.search(pattern, what)), None)
    once = (
        f"compute the {what} once before the loop if its inputs do not change, or every few steps"
    )
    if special is None:
        return (once,)
    return (fix(special, framework) if is_fix(special) else special, once)
