"""Lineage files: what a model was trained from, with which settings, and how it was evaluated."""

import json
import struct
from collections.abc import Callable, Iterator
from typing import Any

from strobe.ingest.formats.event_files.facts import as_written, fact
from strobe.ingest.formats.xplane.wire import fields, signed

Row = dict[str, Any]
Broken = Callable[[], None]

_STEP = 2
TRAIN, EVALUATION, DATASET, CUSTOM = 6, 7, 9, 10
_DEEPEST = 60  # messages within messages

# Name and kind of each field; a kind that is a dict is a message. Lists are repeated fields.
Message = dict[int, tuple[str, Any]]
_STRINGS: Message = {1: ("strValue", ["str"])}
_PARAMETER: Message = {
    1: ("mapStr", ("map", "str")), 2: ("mapStrList", ("map", _STRINGS)),
    3: ("mapBool", ("map", "bool")), 4: ("mapInt", ("map", "int")),
    5: ("mapDouble", ("map", "double")),
}  # fmt: skip
_OPERATION: Message = {
    1: ("operationParam", _PARAMETER), 2: ("size", ["int"]), 3: ("weights", ["float"])
}  # fmt: skip
DATASET_GRAPH: Message = {2: ("parameter", _PARAMETER), 3: ("operations", [_OPERATION]),
                          4: ("sampler", _OPERATION)}  # fmt: skip
DATASET_GRAPH[1] = ("children", [DATASET_GRAPH])
USER_DEFINED: Message = {
    3: ("map_int32", ("map", "int")), 4: ("map_str", ("map", "str")),
    5: ("map_double", ("map", "double")),
}  # fmt: skip
USER_DEFINED[1] = ("user_info", [USER_DEFINED])
USER_DEFINED[2] = ("map_dict", ("map", USER_DEFINED))
HYPERPARAMETERS: Message = {
    1: ("optimizer", "str"), 2: ("learning_rate", "float"), 3: ("loss_function", "str"),
    4: ("epoch", "int"), 5: ("parallel_mode", "str"), 6: ("device_num", "int"),
    8: ("batch_size", "int"),
}  # fmt: skip
TRAINING: Message = {
    1: ("hyper_parameters", HYPERPARAMETERS),
    2: ("dataset", {1: ("train_dataset_path", "str"), 2: ("train_dataset_size", "int")}),
    3: ("algorithm", {1: ("network", "str"), 2: ("loss", "float")}),
    4: ("model", {3: ("model_path", "str"), 4: ("model_size", "int")}),
}
EVALUATED: Message = {
    2: ("metric", "str"),
    3: ("dataset", {1: ("valid_dataset_path", "str"), 2: ("valid_dataset_size", "int")}),
}


def rows(event: bytes, broken: Broken) -> Iterator[tuple[str, Row]]:
    """Of an event, the rows with the table that each is for; without their source."""
    step: int | None = None
    for number, value in fields(event, broken):
        if number == _STEP and isinstance(value, int):
            step = signed(value)
        elif isinstance(value, bytes):
            for table, row in _told(number, value, broken):
                yield table, {**row, "step": step} if table == "lineage" else row


def _told(number: int, value: bytes, broken: Broken) -> Iterator[tuple[str, Row]]:
    if number == TRAIN:
        found = _decoded(value, TRAINING, broken)
        for part in found.values():
            yield from _facts("train", part.items())
        for name, setting in found.get("hyper_parameters", {}).items():
            yield "hyperparameters", {"name": name, **fact(setting)}
    elif number == EVALUATION:
        found = _decoded(value, EVALUATED, broken)
        yield from _facts("evaluation", _metrics(found.get("metric", "")).items())
        yield from _facts("evaluation", found.get("dataset", {}).items())
    elif number == DATASET:
        yield from _facts("dataset", [("dataset_graph", _decoded(value, DATASET_GRAPH, broken))])
    elif number == CUSTOM:
        yield from _facts("custom", _custom(_decoded(value, USER_DEFINED, broken)))


def _facts(kind: str, facts: Any) -> Iterator[tuple[str, Row]]:
    for name, value in facts:
        yield "lineage", {"kind": kind, "name": name, **fact(value)}


def _metrics(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text or "{}")
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"metric": text}


def _custom(found: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, part in found.items():
        if name == "user_info":
            for entry in part:
                yield from _custom(entry)
        else:
            yield from part.items()


def _decoded(data: bytes, message: Message, broken: Broken, depth: int = 0) -> dict[str, Any]:
    """A message as nested dicts; what is too deep is left out."""
    found: dict[str, Any] = {}
    for number, value in fields(data, broken):
        name, kind = message.get(number, ("", None))
        if kind is None or depth > _DEEPEST:
            continue
        if isinstance(kind, tuple):
            found.setdefault(name, {}).update(_entry(value, kind[1], broken, depth))
        elif isinstance(kind, list):
            found.setdefault(name, []).extend(_several(value, kind[0], broken, depth))
        else:
            found[name] = _value(value, kind, broken, depth)
    return found


def _entry(data: int | bytes, kind: Any, broken: Broken, depth: int) -> dict[str, Any]:
    """One entry of a map; a value that is zero is not written."""
    name, value = "", _value(b"" if isinstance(kind, dict) or kind == "str" else 0, kind, broken, 0)
    for number, part in fields(data if isinstance(data, bytes) else b"", broken):
        if number == 1 and isinstance(part, bytes):
            name = part.decode("utf-8", "replace")
        elif number == 2:
            value = _value(part, kind, broken, depth)
    return {name: value}


def _several(data: int | bytes, kind: Any, broken: Broken, depth: int) -> list[Any]:
    if kind == "float" and isinstance(data, bytes) and len(data) % 4 == 0:
        return [as_written(data[at : at + 4]) for at in range(0, len(data), 4)]
    return [_value(data, kind, broken, depth)]


def _value(data: int | bytes, kind: Any, broken: Broken, depth: int) -> Any:
    if isinstance(data, int):
        return bool(data) if kind == "bool" else signed(data)
    if isinstance(kind, dict):
        return _decoded(data, kind, broken, depth + 1)
    if kind == "double" and len(data) == 8:
        return struct.unpack("<d", data)[0]
    if kind == "float" and len(data) == 4:
        return as_written(data)
    return data.decode("utf-8", "replace")
