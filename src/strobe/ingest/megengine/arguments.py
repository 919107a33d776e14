"""What an operator of a MegEngine timeline was given: shapes, types, bytes, module, direction."""

from dataclasses import dataclass

import msgspec
import numpy as np

from strobe.ingest.codes import Array, Codes, mapped, occurring
from strobe.ingest.megengine import flops as megengine_flops
from strobe.ingest.megengine import names as megengine_names
from strobe.ingest.megengine.events import Columns
from strobe.ingest.megengine.pairs import Pairs
from strobe.ingest.spans import Vocabulary

_NONE, _OUTSIDE, _BACKWARD = -1, -2, -3
# Blocks of the framework itself; what lies in them works for no module.
_NO_MODULE = {
    "backward": _BACKWARD, "step": _OUTSIDE, "clear_grad": _OUTSIDE, "clip_grad_norm": _OUTSIDE,
    "clip_grad_value": _OUTSIDE,
}  # fmt: skip


@dataclass
class Paths:
    """Of each span: the module it lies in (a number of `texts`, -1), and whether in backward."""

    path: Array
    texts: list[str]
    is_backward: Array


def paths(pairs: Pairs, name: Array, is_block: Array, names: list[str]) -> Paths:
    """A path is made of the names of the blocks around a span, from the outermost in."""
    outside = np.array([_NO_MODULE.get(text, 0) for text in names] or [0])
    known: Codes[tuple[int, int]] = Codes()
    path = np.full(len(name), _NONE, dtype=np.int64)
    for entries in pairs.by_level():
        above = pairs.parent[entries]
        around = np.where(above >= 0, path[above], _NONE)
        path[entries] = around
        blocks = is_block[entries] & (around >= _NONE)
        ends = blocks & (outside[name[entries]] < 0)
        path[entries[ends]] = outside[name[entries[ends]]]
        opens = blocks & ~ends
        keys = zip(around[opens].tolist(), name[entries[opens]].tolist(), strict=True)
        path[entries[opens]] = [known[key] for key in keys]
    texts: list[str] = []
    for parent, code in known:
        texts.append(f"{texts[parent]}.{names[code]}" if parent >= 0 else names[code])
    return Paths(np.maximum(path, _NONE), texts, path == _BACKWARD)


def of_operators(
    columns: Columns, pairs: Pairs, told: Array, is_op: Array, words: Vocabulary
) -> dict[str, Array]:
    """The arguments of all spans, known for the operators among them."""
    spans = columns.spans
    tensors = {side: _tensors(columns, pairs, told, is_op, side) for side in ("Input", "Output")}
    texts = [words.texts[text] for text in columns.texts]
    made = _Made(columns, words)
    args = {
        "dims": made.lists(tensors["Input"], told, "shape", len(told)),
        "outputs": made.lists(tensors["Output"], told, "shape", len(told)),
        "dtypes": made.lists(tensors["Input"], told, "dtype", len(told)),
        "call": np.where(is_op, spans["op"][told], -1),
        "node": made.nodes(tensors["Output"], told, len(told)),
    }
    parameters = np.where(is_op & (spans["parameters"][told] > 0), spans["parameters"][told], -1)
    args["concrete"] = mapped(parameters, texts)
    args["bytes"] = _bytes(columns, told, tensors, len(told))
    args["flops"] = megengine_flops.of_spans(
        [columns.names[code] for code in range(len(columns.names))],
        spans["name"][told], args["dims"], args["outputs"], args["concrete"], is_op, words,
    )  # fmt: skip
    return args


@dataclass
class _Tensors:
    """Inputs (or outputs) in order: their spans, and the operators they belong to."""

    entry: Array
    owner: Array


def _tensors(columns: Columns, pairs: Pairs, told: Array, is_op: Array, side: str) -> _Tensors:
    if side not in columns.names:
        nothing = np.zeros(0, dtype=np.int64)
        return _Tensors(nothing, nothing)
    is_tensor = columns.spans["name"][told] == columns.names.index(side)
    owner = pairs.parent
    entry = np.flatnonzero(is_tensor & (owner >= 0) & is_op[owner])
    return _Tensors(entry, owner[entry])


@dataclass
class _Made:
    columns: Columns
    words: Vocabulary

    def lists(self, tensors: _Tensors, told: Array, what: str, count: int) -> Array:
        """The JSON of all shapes or types of an operator, a number of words.texts."""
        result = np.full(count, -1, dtype=np.int64)
        if not len(tensors.entry):
            return result
        codes = self.columns.spans[what][told[tensors.entry]]
        first = np.flatnonzero(np.diff(tensors.owner, prepend=-1))
        known: dict[bytes, int] = {}
        borders = [*first.tolist(), len(codes)]
        for start, end in zip(borders, borders[1:], strict=False):
            key = codes[start:end].tobytes()
            if key not in known:
                known[key] = self.words.texts[self._json(codes[start:end].tolist(), what)]
            result[tensors.owner[start]] = known[key]
        return result

    def nodes(self, tensors: _Tensors, told: Array, count: int) -> Array:
        """An operator is called as its first output is: conv1.Convolution:0."""
        result = np.full(count, -1, dtype=np.int64)
        owners, first = np.unique(tensors.owner, return_index=True)
        codes = self.columns.spans["tensor"][told[tensors.entry[first]]]
        distinct, back = occurring(codes)
        names = [self.columns.texts[code].rsplit(":", 1)[0] for code in distinct.tolist()]
        numbers = np.array([self.words.texts[name] if name else -1 for name in names], np.int64)
        if len(numbers):
            result[owners] = numbers[back]
        return result

    def _json(self, codes: list[int], what: str) -> str:
        texts = [self.columns.texts[code] for code in codes]
        values = [_shape(text) for text in texts] if what == "shape" else texts
        return msgspec.json.encode(values).decode("utf-8", "replace")


def _shape(text: str) -> list[int]:
    """{4,3,16,16} as a list; {} and what is none as an empty one."""
    words = text.strip("{}").split(",")
    return [int(w) for w in words] if all(w.isdecimal() and len(w) < 19 for w in words) else []


def tensor_bytes(columns: Columns, told: Array) -> Array:
    """The size of the tensor that a span tells of; -1 where it tells of none."""
    bits = np.array([megengine_names.bits_of(text) for text in columns.texts])
    elements, size = columns.spans["elements"][told], bits[columns.spans["dtype"][told]]
    known = (elements >= 0) & (elements < 2**50) & (size > 0)
    return np.where(known, np.ceil(np.where(known, elements, 0) * size / 8), -1).astype(np.int64)


def _bytes(columns: Columns, told: Array, tensors: dict[str, _Tensors], count: int) -> Array:
    """Of all inputs and outputs; -1 where the size of one is unknown."""
    sizes = tensor_bytes(columns, told)
    entry = np.concatenate([part.entry for part in tensors.values()])
    owner = np.concatenate([part.owner for part in tensors.values()])
    total = np.full(count, -1, dtype=np.int64)
    if len(entry):
        known = np.zeros(count, dtype=np.int64)
        np.add.at(known, owner, sizes[entry])
        unknown = np.bincount(owner[sizes[entry] < 0], minlength=count) > 0
        seen = np.bincount(owner, minlength=count) > 0
        total = np.where(seen & ~unknown, known, -1)
    return total


def joined_by(number: Array, first: Array, second: Array) -> tuple[Array, Array]:
    """Rows of the first kind and of the second that have the same number, in pairs."""
    ones, others = (np.flatnonzero(chosen & (number >= 0)) for chosen in (first, second))
    if not len(ones) or not len(others):
        return ones[:0], others[:0]
    keys, at = np.unique(number[ones], return_index=True)
    place = np.minimum(np.searchsorted(keys, number[others]), len(keys) - 1)
    known = keys[place] == number[others]
    return ones[at[place[known]]], others[known]


def shared(own: Array, number: Array, is_op: Array, on_device: Array) -> Array:
    """What operators have, also for the kernels with their numbers."""
    ops, kernels = joined_by(number, is_op, on_device)
    result = own.copy()
    result[kernels] = own[ops]
    return result


def launches(columns: Columns, ts_ns: Array, dur_ns: Array, thread: Array) -> Array:
    """CUPTI's number of each span that it joins to another: a call, and what it started."""
    flows = columns.flows
    result = np.full(len(ts_ns), -1, dtype=np.int64)
    if not len(flows["id"]):
        return result
    # An arrow leaves where a call begins, and comes in where a kernel ends or a copy begins.
    begins, ends = (
        dict(zip(zip(thread.tolist(), at.tolist(), strict=True), range(len(at)), strict=True))
        for at in (ts_ns, ts_ns + dur_ns)
    )
    columns_of_flows = (flows[name].tolist() for name in ("is_end", "ts_ns", "id", "thread"))
    for is_end, at, number, where in zip(*columns_of_flows, strict=True):
        row = begins.get((where, at), -1)
        if is_end and row < 0:
            row = ends.get((where, at), -1)
        if row >= 0:
            result[row] = number
    return result
