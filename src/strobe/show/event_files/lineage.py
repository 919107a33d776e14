"""MindSpore's lineage from the facts of a run: training, evaluation, dataset, and custom ones."""

import json
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from strobe.ingest.formats.event_files.facts import as_written, fact
from strobe.ingest.formats.mindspore_summary import lineage as fields
from strobe.show.event_files import messages
from strobe.show.event_files.omissions import Omissions
from strobe.show.event_files.run_metrics import RankMetrics, Row

_WALL_TIME, _STEP = 1, 2
_INT32, _INT64 = 2**31, 2**63
_DATASET_GRAPH = "dataset_graph"
_MAPS = {int: "map_int32", str: "map_str", float: "map_double"}
# Fields with 64 bits; all others of integers have 32.
_WIDE = {"model_size"}

# Where each fact of a training is: the part of the message, and the type of its field.
_OF_TRAINING = {
    name: (part, kind)
    for part, inside in fields.TRAINING.values()
    for name, kind in inside.values()
}
_OF_VALIDATION: dict[str, str] = dict(fields.EVALUATED[3][1].values())


def events(metrics: RankMetrics) -> Iterator[bytes]:
    """Records of the `_lineage` file."""
    facts: dict[str, list[Row]] = {"train": [], "evaluation": [], "dataset": [], "custom": []}
    for row in metrics.facts("lineage"):
        facts.setdefault(row["kind"], []).append(row)
    _add_hyperparameters(facts, metrics)
    custom = facts.pop("custom")
    for kind, build in (("dataset", _dataset), ("train", _training), ("evaluation", _evaluation)):
        for group in _groups(facts.pop(kind)):
            message, others = build(group, metrics.omissions)
            metrics.omissions.add("custom-facts", len(others))
            custom += others
            if message:
                yield _event(metrics, group[0]["step"], message)
    for group in _groups([*custom, *(row for rows in facts.values() for row in rows)]):
        yield _event(metrics, group[0]["step"], _custom(group))


def _add_hyperparameters(facts: dict[str, list[Row]], metrics: RankMetrics) -> None:
    """Those that lineage does not have yet: a training that MindSpore recorded has both."""
    present = {row["name"] for rows in facts.values() for row in rows}
    for row in metrics.facts("hyperparameters"):
        if row["name"] in present:
            continue
        if row["name"] in _names_of_hyperparameters():
            facts["train"].append({**row, "step": None})
        else:
            metrics.omissions.add("custom-facts")
            facts["custom"].append({**row, "step": None})


def _names_of_hyperparameters() -> set[str]:
    return {name for name, _ in fields.HYPERPARAMETERS.values()}


def _groups(rows: list[Row]) -> Iterator[list[Row]]:
    """Facts that can be in one message: of one step, each name once."""
    group: list[Row] = []
    for row in rows:
        if group and (row["step"] != group[0]["step"] or row["name"] in {r["name"] for r in group}):
            yield group
            group = []
        group.append(row)
    if group:
        yield group


def _event(metrics: RankMetrics, step: int | None, message: bytes) -> bytes:
    at = b"" if step is None else messages.integer(_STEP, step)
    return messages.double(_WALL_TIME, metrics.started_s) + at + message


def _training(rows: list[Row], omissions: Omissions) -> tuple[bytes, list[Row]]:
    parts: dict[str, dict[str, Any]] = {}
    others = []
    for row in rows:
        part, kind = _OF_TRAINING.get(row["name"], ("", ""))
        value = _of_kind(row, kind)
        if value is None:
            others.append(row)
            continue
        omissions.add("rounded-facts", kind == "float" and not _is_float32(value))
        parts.setdefault(part, {})[row["name"]] = value
    content = encoded(parts, fields.TRAINING)
    return messages.data(fields.TRAIN, content) if content else b"", others


def _evaluation(rows: list[Row], omissions: Omissions) -> tuple[bytes, list[Row]]:
    dataset: dict[str, Any] = {}
    measured: dict[str, Any] = {}
    for row in rows:
        value = _of_kind(row, _OF_VALIDATION.get(row["name"], ""))
        if value is None:
            measured[row["name"]] = _plain(row)
        else:
            dataset[row["name"]] = value
    found = {"metric": json.dumps(measured), "dataset": dataset}
    return messages.data(fields.EVALUATION, encoded(found, fields.EVALUATED)), []


def _dataset(rows: list[Row], omissions: Omissions) -> tuple[bytes, list[Row]]:
    graphs = [graph for row in rows if (graph := _graph(row)) is not None]
    others = [row for row in rows if _graph(row) is None]
    if not graphs:
        return b"", others
    return messages.data(fields.DATASET, encoded(graphs[0], fields.DATASET_GRAPH)), others


def _graph(row: Row) -> dict[str, Any] | None:
    try:
        graph = json.loads(row["value"]) if row["name"] == _DATASET_GRAPH else None
    except ValueError:
        return None
    return graph if isinstance(graph, dict) else None


def _custom(rows: list[Row]) -> bytes:
    """One fact per entry, as SummaryCollector writes them."""
    entries = []
    for row in rows:
        value = _plain(row)
        if isinstance(value, int) and not -_INT32 <= value < _INT32:
            value = float(value) if fact(float(value))["value"] == row["value"] else row["value"]
        entries.append({_MAPS[type(value)]: {row["name"]: value}})
    return messages.data(fields.CUSTOM, encoded({"user_info": entries}, fields.USER_DEFINED))


def _plain(row: Row) -> str | int | float:
    """The value as it was, where its text gives it back; else the text."""
    number, text = row["number"], row["value"]
    if number is None or not math.isfinite(number):
        return str(text)
    if number.is_integer() and fact(int(number))["value"] == text:
        return int(number)
    return float(number) if fact(number)["value"] == text else str(text)


def _of_kind(row: Row, kind: str) -> Any:
    """The value for a field of this type; None if it does not fit, or there is no field."""
    number = row["number"]
    if kind == "str":
        return row["value"]
    if number is None or not math.isfinite(number):
        return None
    if kind == "float":
        return float(number)
    limit = _INT64 if row["name"] in _WIDE else _INT32
    is_whole = kind == "int" and number.is_integer() and -limit <= number < limit
    return int(number) if is_whole else None


def _is_float32(value: float) -> bool:
    """Whether the shortest text of its float32 gives it back."""
    with np.errstate(over="ignore"):
        return as_written(np.float32(value).tobytes()) == value


def encoded(value: dict[str, Any], table: fields.Message) -> bytes:
    """A message of lineage from nested dicts, by the table that reads it."""
    parts = []
    for number, (name, kind) in sorted(table.items()):
        if name not in value:
            continue
        if isinstance(kind, tuple):
            parts += [messages.map_entry(number, entry, _field(2, each, kind[1]))
                      for entry, each in value[name].items()]  # fmt: skip
        elif isinstance(kind, list):
            parts += [_field(number, each, kind[0]) for each in value[name]]
        else:
            parts.append(_field(number, value[name], kind))
    return b"".join(parts)


def _field(number: int, value: Any, kind: Any) -> bytes:
    if isinstance(kind, dict):
        return messages.data(number, encoded(value, kind))
    if kind == "str":
        return messages.text(number, value)
    if kind == "float":
        return messages.float32(number, value)
    if kind == "double":
        return messages.double(number, value)
    return messages.integer(number, int(value))
