"""Every summary folder of the shared data against MindSpore's own decoding of it."""

import hashlib
import json

import numpy as np
import pytest

from tests.ingest.metrics import read, same, shared, truth

FOLDERS = ("default", "full", "killed", "landscape", "max_file_size", "record", "sink",
           *(f"sweep/run_0{number}" for number in range(1, 9)))  # fmt: skip


@pytest.fixture(scope="module", params=FOLDERS)
def both(request, tmp_path_factory):
    """What we read, and what MindSpore's own protobuf classes did."""
    folder = tmp_path_factory.mktemp("rank_0")
    (folder / "tables").mkdir()
    found = read(shared(f"mindspore/{request.param}"), "MindSpore summary", folder)
    found.folder, found.name = folder, request.param
    whole = truth(f"mindspore/{request.param}/truth.json")
    return found, whole["decoded_with_mindspores_own_protobuf"], whole["independent"]


def test_scalars(both):
    found, decoded, _ = both
    assert found.tags == set(decoded["scalar"])
    for tag, points in decoded["scalar"].items():
        assert same(found.points(tag), points), tag


def test_histograms(both):
    found, decoded, _ = both
    assert len(found["histograms"]) == sum(map(len, decoded["histogram"].values()))
    for tag, expected in decoded["histogram"].items():
        for row, wanted in zip(found.tagged("histograms", tag), expected, strict=True):
            keys = ("step", "count", "nan_count", "positive_infinity_count",
                    "negative_infinity_count", "min", "max", "sum")  # fmt: skip
            names = ("step", "count", "nan", "pos_inf", "neg_inf", "min", "max", "sum")
            assert [row[key] for key in keys] == [wanted[name] for name in names], tag
            edges, counts = json.loads(row["edges"]), json.loads(row["counts"])
            left, width, count = wanted["first_bucket"]
            assert [edges[0], counts[0], len(counts)] == [left, count, wanted["buckets"]]
            assert edges[1] == pytest.approx(left + width, rel=1e-6, abs=1e-6 * abs(left))
            assert edges == sorted(edges)


def test_images(both):
    found, decoded, _ = both
    assert len(found["images"]) == sum(map(len, decoded["image"].values()))
    for tag, expected in decoded["image"].items():
        for row, wanted in zip(found.tagged("images", tag), expected, strict=True):
            assert [row[key] for key in ("step", "height", "width", "channels", "bytes")] == [
                wanted[key] for key in ("step", "height", "width", "colorspace", "png_bytes")
            ]
            assert len((found.folder / row["file"]).read_bytes()) == wanted["png_bytes"]


def equal(found, row, wanted):
    array = np.load(found.folder / row["file"])
    assert list(array.shape) == wanted["dims"]
    data = array.astype("<f4").ravel()
    assert hashlib.sha256(data.tobytes()).hexdigest()[:16] == wanted["sha256_float32_le"]


def test_tensors(both):
    found, decoded, independent = both
    assert {row["tag"] for row in found["tensors"] if row["plugin"] is None} == set(
        decoded["tensor"]
    )
    for tag, expected in decoded["tensor"].items():
        for row, wanted in zip(found.tagged("tensors", tag), expected, strict=True):
            assert row["step"] == wanted["step"]
            equal(found, row, wanted)
    for step, given in independent.get("tensors", {}).get("ids/int64", {}).items():
        (row,) = (r for r in found.tagged("tensors", "ids/int64") if r["step"] == int(step))
        exact = np.load(found.folder / row["file"])
        assert (row["dtype"], exact.ravel().tolist()) == ("int64", given["written"])


def test_landscapes(both):
    found, decoded, _ = both
    for wanted in decoded["landscape"]:
        rows = {row["tag"]: row for row in found["tensors"] if row["plugin"] == "loss_landscape"}
        names = {"x": "x", "y": "y", "z": "z", "path_x": "path/x", "path_y": "path/y"}
        for key, name in names.items():
            if wanted[key]["n"]:
                equal(found, rows[f"{wanted['tag']}/{name}"], wanted[key])
        for axis, point in zip("xyz", wanted["convergence"], strict=True):
            equal(found, rows[f"{wanted['tag']}/convergence/{axis}"], point)
        (text,) = found.tagged("texts", f"{wanted['tag']}/metadata")
        assert json.loads(text["text"]) == wanted["metadata"]
        if wanted["path_intervals"]:
            row = rows[f"{wanted['tag']}/path/intervals"]
            assert np.load(found.folder / row["file"]).tolist() == wanted["path_intervals"]


def test_graphs_are_there_as_bytes(both):
    found, decoded, _ = both
    graphs = [row for row in found["tensors"] if row["plugin"] == "mindspore_graph"]
    assert len(graphs) == len(decoded["graph"])
    for row, wanted in zip(graphs, decoded["graph"], strict=True):
        assert wanted["name"].encode() in np.load(found.folder / row["file"]).tobytes()


def facts(record):
    """Kind, name and value of everything in a record of lineage."""
    renamed = {"path": "model_path", "size": "model_size"}
    for part in record.get("train_lineage", {}).values():
        yield from (("train", renamed.get(name, name), value) for name, value in part.items())
    for info in record.get("user_defined_info", {}).get("user_info", []):
        yield from (("custom", *item) for values in info.values() for item in values.items())
    evaluated = record.get("evaluation_lineage", {})
    results = json.loads(evaluated.get("metric", "{}")) | evaluated.get("valid_dataset", {})
    yield from (("evaluation", *item) for item in results.items())
    if "dataset_graph" in record:
        yield "dataset", "dataset_graph", record["dataset_graph"]


def test_lineage(both):
    found, decoded, independent = both
    expected = {fact[:2]: fact[2] for record in decoded["lineage"] for fact in facts(record)}
    rows = {(row["kind"], row["name"]): row for row in found["lineage"]}
    assert rows.keys() == expected.keys()
    for key, value in expected.items():
        row = rows[key]
        was = json.loads(row["value"]) if isinstance(value, dict) else row["value"]
        assert value == (row["number"] if isinstance(value, (int, float)) else was)
    for name in ("learning_rate", "batch_size"):
        if name in independent and found.facts():
            assert found.facts()[name][1] == independent[name]


def test_nothing_is_missing(both):
    found, _, _ = both
    assert found.problems == [] or found.name in ("landscape",), found.problems
