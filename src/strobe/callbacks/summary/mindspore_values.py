"""Values inside MindSpore: its summary operators, its datasets, and its protobuf messages."""

import importlib
import json
import os
from collections.abc import Iterator
from typing import Any

_PLUGINS = {"Scalar": "scalar", "Tensor": "tensor", "Image": "image", "Histogram": "histogram"}

# Names of fields that the lineage has under others: see ingest/formats/mindspore_summary.
_RENAMED = {"path": "model_path", "size": "model_size"}


def operator_values() -> Iterator[tuple[str, str, Any]]:
    """Plugin, name and value of what ScalarSummary and its siblings computed since the last call.

    Taken from where MindSpore's own SummaryRecord takes it.
    """
    home = importlib.import_module("mindspore.train.summary.summary_record")
    home._record_summary_tensor_data()
    for name, value in home._get_summary_tensor_data().items():
        tag, _, kind = name.rpartition("[:")
        plugin = _PLUGINS.get(kind.rstrip("]"))
        if tag and plugin:
            yield plugin, tag, value


def dataset_facts(dataset: Any, which: str) -> dict[str, Any]:
    """Where the data is, and how much; `which` is train or valid."""
    if dataset is None:
        return {}
    size = dataset.get_batch_size()
    found: dict[str, Any] = {f"{which}_dataset_size": int(dataset.get_dataset_size() * size)}
    path = _path(dataset)
    if path:
        found[f"{which}_dataset_path"] = os.path.dirname(path) if os.path.isfile(path) else path
    if which == "train":
        found["batch_size"] = size
    return found


def _path(dataset: Any) -> str:
    """Of the source at the end of a pipeline; empty for data that is made in the script."""
    while dataset is not None:
        for name in ("dataset_dir", "dataset_files", "dataset_file"):
            found = getattr(dataset, name, None)
            if isinstance(found, (list, tuple)) and found:
                found = found[0]
            if found and isinstance(found, str):
                return found
        children = getattr(dataset, "children", None)
        dataset = children[0] if children else None
    return ""


def dataset_graph(dataset: Any) -> str:
    """The pipeline as JSON, in the fields of MindSpore's message."""
    home = importlib.import_module("mindspore.train.callback._dataset_graph")
    message = home.DatasetGraph().package_dataset_graph(dataset)
    return json.dumps(as_dict(message)) if message is not None else ""


def as_dict(message: Any) -> dict[str, Any]:
    """A protobuf message by the names of its fields."""
    found: dict[str, Any] = {}
    for field, value in message.ListFields():
        found[field.name] = _plain(field, value)
    return found


def _plain(field: Any, value: Any) -> Any:
    if field.message_type is None:
        is_list = not isinstance(value, (str, bytes, int, float, bool))
        return list(value) if is_list else value
    if field.message_type.GetOptions().map_entry:
        inner = field.message_type.fields_by_name["value"].message_type
        return {key: as_dict(one) if inner is not None else one for key, one in value.items()}
    return [as_dict(one) for one in value] if not hasattr(value, "ListFields") else as_dict(value)


def train_facts(message: Any) -> dict[str, Any]:
    """Of a TrainLineage."""
    parts = as_dict(message)
    return {
        _RENAMED.get(name, name) if part == "model" else name: value
        for part, inside in parts.items() for name, value in inside.items()
    }  # fmt: skip


def evaluation_facts(message: Any) -> dict[str, Any]:
    found = as_dict(message)
    try:
        metrics = json.loads(found.get("metric") or "{}")
    except ValueError:
        metrics = None
    results = metrics if isinstance(metrics, dict) else {"metric": found["metric"]}
    return {**results, **found.get("valid_dataset", {})}


def custom_facts(message: Any) -> dict[str, Any]:
    """Of a UserDefinedInfo, which nests others."""
    found: dict[str, Any] = {}
    for inside in message.user_info:
        found.update(custom_facts(inside))
    for name, one in message.map_dict.items():
        found[name] = json.dumps(custom_facts(one))
    for name in ("map_int32", "map_str", "map_double"):
        found.update(getattr(message, name))
    return found


def array_of(message: Any) -> Any:
    """The numbers of a TensorProto of MindSpore, in its shape."""
    numpy = importlib.import_module("numpy")
    values = next((getattr(message, name) for name in
                   ("float_data", "int32_data", "int64_data", "double_data", "uint64_data")
                   if len(getattr(message, name))), ())  # fmt: skip
    return numpy.array(values).reshape(tuple(message.dims) or -1)


def landscape_parts(message: Any) -> Iterator[tuple[str, Any]]:
    """The arrays of a LossLandscape, by what follows its tag."""
    points = [("", message.landscape), ("/convergence", message.convergence_point),
              ("/path", message.loss_path.points)]  # fmt: skip
    for place, point in points:
        for axis in "xyz":
            if point.HasField(axis):
                yield f"{place}/{axis}", array_of(getattr(point, axis))
    if message.loss_path.intervals:
        numpy = importlib.import_module("numpy")
        yield "/path/intervals", numpy.array(list(message.loss_path.intervals))
