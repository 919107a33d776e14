"""What an operator of a MegEngine timeline was given: shapes, types, bytes, parameters."""

from dataclasses import dataclass

import msgspec
import numpy as np

from strobe.ingest.formats.megengine import flops as megengine_flops
from strobe.ingest.formats.megengine import names as megengine_names
from strobe.ingest.formats.megengine.events import Events
from strobe.ingest.trace.codes import Array, mapped, occurring
from strobe.ingest.trace.spans import Spans, Vocabulary


class Texts:
    """The texts of a file, once all are known."""

    def __init__(self, events: Events, words: Vocabulary) -> None:
        self.words, self.names, self.list = words, list(events.names), list(events.texts)
        self.bits = np.array([megengine_names.bits_of(text) for text in self.list])
        self.codes = np.array([words.texts[text] for text in self.list])  # among those of the rank


@dataclass
class Tensors:
    """What operators take or give, in order: spans, and the rows of their operators."""

    spans: Spans
    owner: Array

    def of(self, name: int) -> "Tensors":
        rows = np.flatnonzero(self.spans.name == name)
        return Tensors(self.spans.take(rows), self.owner[rows])


def of_operators(spans: Spans, is_op: Array, tensors: Tensors, texts: Texts) -> dict[str, Array]:
    """The arguments of all spans, known for the operators among them."""
    count, names = len(spans), texts.names
    inputs, outputs = (
        tensors.of(names.index(side) if side in names else -1) for side in ("Input", "Output")
    )
    parameters = np.where(is_op & (spans.arg("parameters") > 0), spans.arg("parameters"), -1)
    args = {
        "dims": _lists(inputs, "shape", count, texts),
        "outputs": _lists(outputs, "shape", count, texts),
        "dtypes": _lists(inputs, "dtype", count, texts),
        "call": np.where(is_op, spans.arg("op"), -1),
        "node": _nodes(outputs, count, texts),
        "concrete": mapped(parameters, texts.codes),
        "bytes": _bytes(tensors, count, texts),
    }
    args["flops"] = megengine_flops.of_spans(
        names, spans.name, args["dims"], args["outputs"], args["concrete"], is_op, texts.words
    )
    return args


def _lists(tensors: Tensors, what: str, count: int, texts: Texts) -> Array:
    """The JSON of all shapes or types of an operator, a number of words.texts."""
    result = np.full(count, -1, dtype=np.int64)
    if not len(tensors.owner):
        return result
    codes = tensors.spans.arg(what)
    first = np.flatnonzero(np.diff(tensors.owner, prepend=-1))
    known: dict[bytes, int] = {}
    borders = [*first.tolist(), len(codes)]
    for start, end in zip(borders, borders[1:], strict=False):
        key = codes[start:end].tobytes()
        if key not in known:
            given = [texts.list[code] for code in codes[start:end].tolist()]
            known[key] = texts.words.texts[_json(given, what)]
        result[tensors.owner[start]] = known[key]
    return result


def _nodes(tensors: Tensors, count: int, texts: Texts) -> Array:
    """An operator is called as its first output is: conv1.Convolution:0."""
    result = np.full(count, -1, dtype=np.int64)
    owners, first = np.unique(tensors.owner, return_index=True)
    distinct, back = occurring(tensors.spans.arg("tensor")[first])
    names = [texts.list[code].rsplit(":", 1)[0] for code in distinct.tolist()]
    numbers = np.array([texts.words.texts[name] if name else -1 for name in names], np.int64)
    if len(numbers):
        result[owners] = numbers[back]
    return result


def _json(given: list[str], what: str) -> str:
    values = [_shape(text) for text in given] if what == "shape" else given
    return msgspec.json.encode(values).decode("utf-8", "replace")


def _shape(text: str) -> list[int]:
    """{4,3,16,16} as a list; {} and what is none as an empty one."""
    words = text.strip("{}").split(",")
    return [int(w) for w in words] if all(w.isdecimal() and len(w) < 19 for w in words) else []


def tensor_bytes(spans: Spans, texts: Texts) -> Array:
    """The size of the tensor that a span tells of; -1 where it tells of none."""
    elements, size = spans.arg("elements"), texts.bits[spans.arg("dtype")]
    known = (elements >= 0) & (elements < 2**50) & (size > 0)
    return np.where(known, np.ceil(np.where(known, elements, 0) * size / 8), -1).astype(np.int64)


def _bytes(tensors: Tensors, count: int, texts: Texts) -> Array:
    """Of all inputs and outputs; -1 where the size of one is unknown."""
    total = np.full(count, -1, dtype=np.int64)
    owner = tensors.owner
    if len(owner):
        sizes = tensor_bytes(tensors.spans, texts)
        known = np.zeros(count, dtype=np.int64)
        np.add.at(known, owner, sizes)
        unknown = np.bincount(owner[sizes < 0], minlength=count) > 0
        seen = np.bincount(owner, minlength=count) > 0
        total = np.where(seen & ~unknown, known, -1)
    return total
