import os
import warnings

import numpy as np
import pytest

from strobe.errors import MissingData
from strobe.ingest.building.opening import open_run_dir
from strobe.ingest.importing.importer import import_traces
from strobe.show.event_files import run_metrics
from strobe.show.formats import tensorboard
from tests.ingest.metrics import shared
from tests.show.event_files.drawings import curve, histogram, metrics_run, tensor
from tests.show.event_files.round_trips import WITH_TAGS, differences, exported_and_read

PNG = (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x04\x00\x00\x00\x02\x08\x02\x00\x00\x00",
       "png")  # fmt: skip

NOTHING = {"edges": "[]", "min": None, "max": None}


def again(tmp_path, rows):
    run = metrics_run(tmp_path / "run", rows)
    return run, *exported_and_read(run, tensorboard, tmp_path)


@pytest.mark.parametrize(
    "name, expected",
    [
        ("every_kind", ["scalars are rounded"]),
        ("not_finite", []),
        ("resumed", []),
        ("hparams/trial_1", []),
    ],
)
def test_real_files_have_the_same_values_after_an_export(tmp_path, name, expected):
    import_traces([shared(f"tensorboard/{name}")], tmp_path / "run")
    run = open_run_dir(tmp_path / "run")
    found, notes = exported_and_read(run, tensorboard, tmp_path)
    assert [note.lower()[: len(part)] for note, part in zip(notes, expected, strict=True)] == (
        expected
    )
    for table in (*WITH_TAGS, "hyperparameters"):
        wrong = differences(run, found, table)
        if name == "every_kind" and table == "scalars":
            assert len(wrong) == 20 and all("counter" in each for each in wrong)
        else:
            assert wrong == [], table


def test_scalars_of_all_kinds_of_numbers(tmp_path):
    values = [0.5, float("nan"), float("inf"), -0.0, 2.0**-149, 2.0**100]
    rows = {"scalars": curve("loss", values) + curve("a b/ü", [3.0], first=2**31)}
    run, found, notes = again(tmp_path, rows)
    assert differences(run, found, "scalars") == [] and notes == []


def test_what_float32_cannot_hold_is_counted(tmp_path):
    _, found, notes = again(tmp_path, {"scalars": curve("lr", [0.1, 0.5, 1e300])})
    assert notes == [
        "Scalars beyond the range of float32 become infinite (1).",
        "Scalars are rounded to float32, the type that the format has for them (1).",
    ]
    values = [value for (value,) in found.sql("SELECT value FROM scalars").fetchall()]
    assert values == [float(np.float32(0.1)), 0.5, float("inf")]


@pytest.mark.parametrize("page, chunk", [(4, 3), (5, 5), (10, 2)])
def test_many_scalars_are_written_in_pieces(tmp_path, monkeypatch, page, chunk):
    monkeypatch.setattr(run_metrics, "_SCALARS_PER_PAGE", page)
    monkeypatch.setattr(run_metrics, "_SCALARS_PER_CHUNK", chunk)
    rows = {"scalars": curve("a", [float(n) for n in range(7)]) + curve("b", [0.5, 1.5, 2.5])}
    run, found, _ = again(tmp_path, rows)
    assert differences(run, found, "scalars") == []


@pytest.mark.slow
def test_each_rank_has_a_folder(tmp_path):
    rows = {"scalars": curve("loss", [1.0, 2.0]) + curve("loss", [3.0, 4.0], rank=1)}
    run, found, _ = again(tmp_path, rows)
    assert sorted(os.listdir(tmp_path / "exported")) == ["rank_0", "rank_1"]
    assert differences(run, found, "scalars") == []


def test_attempts_are_sessions_that_start_again(tmp_path):
    rows = {"scalars": curve("loss", [1.0, 2.0, 4.0]) + curve("loss", [3.0], attempt=2, first=1)}
    run, found, _ = again(tmp_path, rows)
    assert differences(run, found, "scalars") == []


def test_histograms_with_and_without_sums(tmp_path):
    rows = {"histograms": [
        histogram("w", [-1.5, 0.0, 2.0], [3, 4], sum=1.25, sum_squares=9.0),
        histogram("w", [0.0, 1.0], [2], step=2, sum=0.5),
        histogram("tensors only", [0, 1, 3], [1, 2]),
        {**histogram("empty", [0.0], [], sum=0.0, sum_squares=0.0), **NOTHING},
    ]}  # fmt: skip
    run, found, notes = again(tmp_path, rows)
    assert differences(run, found, "histograms") == [] and notes == []


def test_values_that_are_not_finite_are_not_in_histograms(tmp_path):
    row = histogram("w", [0.0, 1.0], [2], sum=0.5, count=3, nan_count=1)
    _, found, notes = again(tmp_path, {"histograms": [row]})
    assert found.sql("SELECT count, nan_count FROM histograms").fetchall() == [(2, 0)]
    assert len(notes) == 1 and notes[0].startswith("Histograms hold only their finite values")


def test_images_alone_and_together(tmp_path):
    size = {"width": 4, "height": 2, "channels": 3, "format": "png", "data": PNG}
    of_tags = [("one", 0, 1), ("many", 0, 1), ("many", 1, 1), ("one", 0, 2)]
    images = [{"tag": tag, "index": index, "step": step, **size} for tag, index, step in of_tags]
    rows = {"images": images}
    run, found, _ = again(tmp_path, rows)
    assert differences(run, found, "images") == []


def test_tensors_keep_type_and_plugin(tmp_path):
    arrays = [
        np.array([[True, False]]), np.array([2**60, -1]), np.float64([0.1]),
        np.zeros((0, 3), np.float32), np.array(1.5, np.float16), np.array([1 + 2j]),
    ]  # fmt: skip
    rows = [tensor(f"t{n}", array) for n, array in enumerate(arrays)]
    rows += [tensor("pr", np.ones((6, 5), np.float32), "pr_curves"),
             tensor("m_VERTEX", np.ones((1, 4, 3), np.float32), "mesh"),
             tensor("sound", np.frombuffer(b"RIFF....", np.uint8), "audio"),
             tensor("graph_def", np.frombuffer(b"\n\x00", np.uint8), "graph_def"),
             tensor("half", np.float32([0.5]), dtype="bfloat16")]  # fmt: skip
    run, found, notes = again(tmp_path, {"tensors": rows})
    summaries = ("min", "max", "mean", "nan_count")  # the drawing has none
    assert differences(run, found, "tensors", summaries) == [] and notes == []


def test_texts_and_hyperparameters(tmp_path):
    rows = {
        "texts": [{"tag": "note", "text": "# Ü\n\n|a|b|"}, {"tag": "note", "step": 2, "text": ""}],
        "hyperparameters": [
            {"name": "lr", "value": "0.05", "number": 0.05},
            {"name": "n", "value": "-16", "number": -16.0},
            {"name": "nesterov", "value": "true"}, {"name": "optimizer", "value": "adam"},
        ],
    }  # fmt: skip
    run, found, notes = again(tmp_path, rows)
    assert notes == []
    for table in rows:
        assert differences(run, found, table) == []


def test_hyperparameters_that_no_double_holds_are_texts(tmp_path):
    rows = [{"name": "seed", "value": str(2**53 + 1), "number": float(2**53 + 1)},
            {"name": "clip", "value": "inf", "number": float("inf")}]  # fmt: skip
    _, found, notes = again(tmp_path, {"hyperparameters": rows})
    assert found.sql("SELECT name, value, number FROM hyperparameters").fetchall() == [
        ("seed", str(2**53 + 1), None), ("clip", "inf", None),
    ]  # fmt: skip
    assert len(notes) == 1 and "stored as text (2)" in notes[0]


def test_one_tag_has_one_kind_of_value(tmp_path):
    rows = {"scalars": curve("x", [1.0]), "texts": [{"tag": "x", "text": "words"}]}
    _, found, notes = again(tmp_path, rows)
    assert found.sql("SELECT tag FROM texts").fetchall() == [("x/texts",)]
    assert "one kind per tag (1)" in notes[0]


def test_what_has_no_step_time_or_file_is_counted(tmp_path):
    rows = {
        "scalars": [{"tag": "a", "step": None, "ts_ns": None, "value": v} for v in (1.0, 2.0)],
        "images": [{"tag": "gone", "format": "png", "file": "tables/blobs/gone.png", "bytes": 1}],
        "lineage": [{"kind": "custom", "name": "data", "value": "v1"}],
    }
    _, found, notes = again(tmp_path, rows)
    assert found.sql("SELECT step, value FROM scalars").fetchall() == [(0, 1.0), (1, 2.0)]
    assert [note.rsplit("(", 1)[1] for note in notes] == ["facts: 1).", "2).", "2).", "1)."]


def test_a_run_without_metrics_is_an_error(tmp_path):
    with pytest.raises(MissingData, match="no training metrics"):
        tensorboard.write(metrics_run(tmp_path / "run", {}), tmp_path / "exported")
    assert not (tmp_path / "exported").exists()


def accumulated(folder):
    """As TensorBoard reads it, with every value."""
    module = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    kinds = ("scalars", "tensors", "histograms", "images")
    found = module.EventAccumulator(str(folder), size_guidance=dict.fromkeys(kinds, 0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return found.Reload()


def test_tensorboard_reads_the_same_values(tmp_path):
    from_strobe = metrics_run(tmp_path / "run", {
        "scalars": curve("loss", [0.5, float("inf"), 2.0]),
        "histograms": [histogram("w", [-1.5, 0.0, 2.0], [3, 4], sum=1.25, sum_squares=9.0)],
        "images": [{"tag": "i", "width": 4, "height": 2, "channels": 3, "format": "png",
                    "data": PNG}],
        "texts": [{"tag": "note", "text": "words"}],
        "tensors": [tensor("t", np.array([[1, 2**60]])),
                    tensor("pr", np.ones((6, 5), np.float32), "pr_curves")],
        "hyperparameters": [{"name": "lr", "value": "0.05", "number": 0.05}],
    })  # fmt: skip
    tensorboard.write(from_strobe, tmp_path / "exported")
    found = accumulated(tmp_path / "exported")
    from tensorboard.plugins.hparams import metadata
    from tensorboard.util.tensor_util import make_ndarray

    points = [(e.wall_time, e.step, e.value) for e in found.Scalars("loss")]
    assert points == [(1.79e9, 0, 0.5), (1.79e9 + 1, 1, float("inf")), (1.79e9 + 2, 2, 2.0)]
    (event,) = found.Histograms("w")
    assert list(event.histogram_value.bucket_limit) == [-1.5, 0.0, 2.0]
    assert list(event.histogram_value.bucket) == [0.0, 3.0, 4.0]
    (event,) = found.Images("i")
    assert (event.width, event.height, event.encoded_image_string) == (4, 2, PNG[0])
    (event,) = found.Tensors("note")
    assert make_ndarray(event.tensor_proto).tolist() == [b"words"]
    (event,) = found.Tensors("t")
    assert make_ndarray(event.tensor_proto).tolist() == [[1, 2**60]]
    content = found.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    session = metadata.parse_session_start_info_plugin_data(content)
    assert session.hparams["lr"].number_value == 0.05
    assert found.SummaryMetadata("pr").plugin_data.plugin_name == "pr_curves"
