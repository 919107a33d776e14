import json
import os

import numpy as np
import pytest

from strobe.ingest.building.opening import open_run_dir
from strobe.ingest.formats.event_files.records import pieces
from strobe.ingest.formats.xplane.wire import fields
from strobe.ingest.importing.importer import import_traces
from strobe.show.formats import mindspore_summary
from tests.ingest.metrics import shared
from tests.show.event_files.drawings import curve, histogram, metrics_run, tensor
from tests.show.event_files.round_trips import WITH_TAGS, differences, exported_and_read

PNG = (b"\x89PNG\r\n\x1a\n", "png")
NUMBER, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


def again(tmp_path, rows):
    run = metrics_run(tmp_path / "run", rows)
    return run, *exported_and_read(run, mindspore_summary, tmp_path)


def imported(tmp_path, name):
    import_traces([shared(f"mindspore/{name}")], tmp_path / "run")
    return open_run_dir(tmp_path / "run")


@pytest.mark.parametrize("name", ["full", "record", "landscape", "sweep/run_01", "killed", "sink"])
def test_real_files_have_the_same_values_after_an_export(tmp_path, name):
    run = imported(tmp_path, name)
    found, notes = exported_and_read(run, mindspore_summary, tmp_path)
    for table in (*WITH_TAGS, "hyperparameters", "lineage"):
        assert differences(run, found, table) == [], table
    assert notes == []


def messages(folder, suffix):
    """Of all files with this suffix."""
    found = []
    for path in sorted(folder.glob(f"*{suffix}")):
        for piece in pieces(path, lambda what, count: None):
            bounds = zip(piece.starts.tolist(), piece.ends.tolist(), strict=True)
            found += [piece.block.text(start, end) for start, end in bounds]
    return found


def intact():
    raise AssertionError("a message is damaged")


def parts(message, *path):
    """The messages at a path of field numbers."""
    found = [message]
    for number in path:
        found = [v for each in found for n, v in fields(each, intact) if n == number]
    return found


def shape(message):
    """Field numbers, and whether each is a number or bytes."""
    return [(number, type(value).__name__) for number, value in fields(message, intact)]


# Field numbers down to each kind of message of a summary.
VALUE = (5, 1)
OF_VALUES = {"scalar": (), "image": (4,), "tensor": (8,), "histogram": (9,), "bucket": (9, 1)}
OF_LINEAGE = {
    "train": (6,), "settings": (6, 1), "algorithm": (6, 3), "model": (6, 4), "evaluation": (7,),
    "dataset": (9,), "operation": (9, 1, 2), "custom": (10, 1),
}  # fmt: skip


def test_messages_have_the_fields_of_mindspores_own_in_their_order(tmp_path):
    real = shared("mindspore/full")
    mindspore_summary.write(imported(tmp_path, "full"), tmp_path / "exported")
    for suffix, kinds in (("_MS", OF_VALUES), ("_lineage", OF_LINEAGE)):
        theirs, ours = (messages(folder, suffix) for folder in (real, tmp_path / "exported"))
        for kind, path in kinds.items():
            path = VALUE + path if suffix == "_MS" else path
            shapes = [
                {str(shape(part)) for each in found for part in parts(each, *path)}
                for found in (theirs, ours)
            ]
            assert shapes[0] == shapes[1] != set(), kind
    first, theirs = (messages(f, "_MS")[0] for f in (tmp_path / "exported", real))
    assert shape(first) == shape(theirs) and first.endswith(b"MindSpore.Event:1")


def test_names_of_the_files(tmp_path):
    rows = {"scalars": curve("loss", [1.0]) + curve("loss", [0.5], rank=1),
            "lineage": [{"kind": "custom", "name": "data", "value": "v1"}]}  # fmt: skip
    mindspore_summary.write(metrics_run(tmp_path / "run", rows, host="a b"), tmp_path / "out")
    name = "events.out.events.summary.1790000000.a_b"
    assert sorted(os.listdir(tmp_path / "out" / "rank_0")) == [f"{name}_MS", f"{name}_lineage"]
    assert os.listdir(tmp_path / "out" / "rank_1") == [f"{name}_MS"]


@pytest.mark.slow
def test_ranks_are_read_back_as_ranks(tmp_path):
    rows = {"scalars": curve("loss", [1.0, 2.0]) + curve("loss", [3.0, 4.0], rank=1),
            "lineage": [fact("custom", "data", "v1", rank=1)]}  # fmt: skip
    run, found, _ = again(tmp_path, rows)
    for table in rows:
        assert differences(run, found, table) == []


def test_a_resumed_training_has_a_file_per_attempt(tmp_path):
    rows = {"scalars": curve("loss", [1.0, 2.0, 4.0]) + curve("loss", [3.0], attempt=2, first=1)}
    run, found, notes = again(tmp_path, rows)
    assert differences(run, found, "scalars") == [] and notes == []


def test_what_float32_cannot_hold_is_counted(tmp_path):
    _, found, notes = again(tmp_path, {"scalars": curve("lr", [0.1, float("nan"), -1e300])})
    assert [note.rsplit(" ", 1)[1] for note in notes] == ["(1).", "(1)."]
    values = [value for (value,) in found.sql("SELECT value FROM scalars").fetchall()]
    assert str(values) == str([float(np.float32(0.1)), float("nan"), float("-inf")])


def test_tensors_of_other_types_are_exact_in_exported_files(tmp_path):
    arrays = [np.array([2**60, -1]), np.float64([[0.1]]), np.float32([0.5]), np.array([1 + 2j])]
    run, found, notes = again(
        tmp_path, {"tensors": [tensor(f"a/{n}", array) for n, array in enumerate(arrays)]}
    )
    summaries = ("min", "max", "mean", "nan_count")
    assert differences(run, found, "tensors", summaries) == [] and notes == []
    exported = os.listdir(tmp_path / "exported" / "export_1790000000" / "tensor")
    assert sorted(exported) == ["a%2F0_1.npy", "a%2F1_1.npy", "a%2F3_1.npy"]


def test_a_tag_too_long_for_a_file_is_counted(tmp_path):
    _, _, notes = again(tmp_path, {"tensors": [tensor("é" * 50, np.array([2**60]))]})
    assert len(notes) == 1 and "too long" in notes[0]


def test_histograms_with_values_that_are_not_finite_and_without_rounding(tmp_path):
    edges = [0.1, 0.2, 0.7]
    row = histogram("w", edges, [3, 4], sum=1.5, count=10, nan_count=1,
                    positive_infinity_count=2)  # fmt: skip
    run, found, notes = again(tmp_path, {"histograms": [row]})
    assert differences(run, found, "histograms") == [] and notes == []


def test_counts_and_sums_that_the_format_has_no_field_for(tmp_path):
    row = histogram("w", [0.0, 1.0], [1.5], sum=0.5, sum_squares=2.0)
    _, _, notes = again(tmp_path, {"histograms": [row]})
    assert [note.split()[0] for note in notes] == ["Histograms", "Sums"]


def test_what_only_tensorboard_can_show_is_counted(tmp_path):
    sound = np.frombuffer(b"RIFF", np.uint8)
    rows = {
        "tensors": [tensor("sound", sound, "audio"), tensor("pr", np.ones((6, 5)), "pr_curves")],
        "texts": [{"tag": "note", "text": "words"}],
        "images": [{"tag": "i", "index": n, "format": "png", "data": PNG} for n in (0, 1)],
    }
    _, found, notes = again(tmp_path, rows)
    assert sorted(note.split(",")[0] for note in notes) == [
        "Data that only TensorBoard can show",
        "Images that were logged together get their position as a suffix of the tag",
        "Tensors of TensorBoard's plugins are written as plain tensors (1).",
        "Texts are left out",
    ]
    assert found.sql("SELECT tag FROM images ORDER BY tag").fetchall() == [("i",), ("i/1",)]
    assert found.sql("SELECT tag, plugin FROM tensors").fetchall() == [("pr", None)]


def fact(kind, name, value, number=None, **row):
    return {"kind": kind, "name": name, "value": value, "number": number, **row}


def test_lineage_has_the_fields_of_the_format_and_the_rest_is_custom(tmp_path):
    rows = [
        fact("train", "optimizer", "Adam"), fact("train", "epoch", "3", 3.0),
        fact("train", "model_size", str(2**40), 2.0**40),
        fact("evaluation", "accuracy", "0.5", 0.5, step=10),
        fact("evaluation", "accuracy", "0.75", 0.75, step=20),
        fact("dataset", "dataset_graph", json.dumps({"operations": [{"size": [3, 4]}]})),
        fact("custom", "seed", "1", 1.0), fact("custom", "huge", str(2**40), 2.0**40),
        fact("custom", "ratio", "0.1", 0.1), fact("custom", "data", "v3"),
    ]  # fmt: skip
    run, found, notes = again(tmp_path, {"lineage": rows})
    assert differences(run, found, "lineage") == [] and notes == []


def test_facts_without_a_field_are_custom_and_counted(tmp_path):
    rows = {
        "lineage": [fact("train", "git commit", "abc"), fact("train", "epoch", "many"),
                    fact("train", "learning_rate", "0.123456789012", 0.123456789012)],
        "hyperparameters": [{"name": "batch_size", "value": "16", "number": 16.0},
                            {"name": "dropout", "value": "0.1", "number": 0.1}],
    }  # fmt: skip
    _, found, notes = again(tmp_path, rows)
    facts = found.sql("SELECT kind, name FROM lineage ORDER BY name").fetchall()
    assert facts == [
        ("train", "batch_size"), ("custom", "dropout"), ("custom", "epoch"),
        ("custom", "git commit"), ("train", "learning_rate"),
    ]  # fmt: skip
    assert [note.rsplit(" ", 1)[1] for note in sorted(notes)] == ["(1).", "(3)."]
    names = found.sql("SELECT name FROM hyperparameters ORDER BY name").fetchall()
    assert names == [("batch_size",), ("learning_rate",)]
