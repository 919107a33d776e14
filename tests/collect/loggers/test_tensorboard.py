"""What SummaryWriter is given is what TensorBoard's own reader finds in its files."""

import importlib
import io
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from strobe.collect.loggers import tensorboard
from tests.collect.loggers.recording import recording

PACKAGES = {"tensorboard": "torch.utils.tensorboard.writer", "tensorboardX": "tensorboardX.writer"}


@pytest.fixture(params=PACKAGES)
def source(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def module(source: str):
    return importlib.import_module(PACKAGES[source])


def record(tmp_path: Path, module):
    return recording(tmp_path, lambda: tensorboard.install(module.__name__))


def events(folder: Path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(folder), size_guidance={})
    found.Reload()
    return found


def write_everything(writer) -> None:
    rows = torch.Generator().manual_seed(0)
    for step in range(5):
        writer.add_scalar("loss", torch.tensor(1 / (step + 3)), step)
        writer.add_scalar("accuracy", np.float64(step / 7), np.int64(10 * step))
    writer.add_scalar("odd", float("nan"), 1)
    writer.add_scalar("odd", float("inf"), 2)
    writer.add_histogram("weights", torch.randn(1000, generator=rows), 3)
    writer.add_histogram("few", np.array([1.0, 1.0, 5.0]), 4)
    writer.add_image("picture", torch.rand(3, 4, 6, generator=rows), 2)
    writer.add_images("pictures", torch.rand(2, 3, 4, 6, generator=rows), 2)
    writer.add_text("note", "**hello** 你好", 1)
    labels, predictions = torch.tensor([0, 1, 1, 0]), torch.tensor([0.1, 0.9, 0.8, 0.4])
    writer.add_pr_curve("curve", labels, predictions, 6)


def test_every_number_is_the_one_in_the_file(tmp_path: Path, source: str, module):
    with record(tmp_path, module) as found:
        with module.SummaryWriter(str(tmp_path / "logs")) as writer:
            write_everything(writer)
        logged = found.logged
    theirs = events(tmp_path / "logs")
    tags = {row["tag"] for row in logged["scalars"]}
    assert tags == set(theirs.Tags()["scalars"]) == {"loss", "accuracy", "odd"}
    for tag in tags:
        ours = [(step, np.float32(value)) for step, value in logged.points(tag)]
        expected = [(one.step, np.float32(one.value)) for one in theirs.Scalars(tag)]
        assert str(ours) == str(expected)
    assert logged.points("accuracy")[1] == (10, 1 / 7)  # not rounded to float32, as the file is
    assert {row["source"] for row in logged["scalars"]} == {source}
    assert found.warnings == logged.problems == []


def test_histograms_images_and_texts_are_those_in_the_file(tmp_path: Path, source: str, module):
    with record(tmp_path, module) as found:
        with module.SummaryWriter(str(tmp_path / "logs")) as writer:
            write_everything(writer)
        logged = found.logged
    theirs = events(tmp_path / "logs")
    for row in logged["histograms"]:
        (one,) = theirs.Histograms(row["tag"])
        value = one.histogram_value
        assert (row["step"], row["count"]) == (one.step, value.num)
        assert [row[name] for name in ("min", "max", "sum", "sum_squares")] == [
            value.min, value.max, value.sum, value.sum_squares,
        ]  # fmt: skip
        filled = [count for count in value.bucket if count]
        assert [count for count in json.loads(row["counts"]) if count] == filled
        assert json.loads(row["edges"])[-1] in (*value.bucket_limit, value.max)
    assert {row["tag"] for row in logged["histograms"]} == {"weights", "few"}
    for row in logged["images"]:
        (one,) = theirs.Images(row["tag"])
        assert (row["step"], row["width"], row["height"]) == (one.step, one.width, one.height)
        data = (found.recorder.raw.parent / row["file"]).read_bytes()
        assert data == one.encoded_image_string
    assert {row["tag"] for row in logged["images"]} == {"picture", "pictures"}
    (text,) = logged["texts"]
    assert (text["tag"], text["step"], text["text"]) == ("note/text_summary", 1, "**hello** 你好")
    (curve,) = logged["tensors"]
    (one,) = theirs.Tensors("curve")
    assert (curve["plugin"], curve["step"]) == ("pr_curves", one.step)
    array = np.load(io.BytesIO((found.recorder.raw.parent / curve["file"]).read_bytes()))
    numbers = one.tensor_proto.float_val or np.frombuffer(one.tensor_proto.tensor_content, "f4")
    assert array.ravel().tolist() == list(numbers)


def test_the_outermost_bins_end_at_the_least_and_the_most_value(tmp_path: Path, module):
    with record(tmp_path, module) as found:
        with module.SummaryWriter(str(tmp_path / "logs")) as writer:
            limits, counts = [-1.0, 0.0, 2.0, 1.7e308], [2, 0, 3, 4]
            writer.add_histogram_raw("ends", -5.0, 9.0, 9, 12.0, 90.0, limits, counts, 1)
            writer.add_histogram_raw("empty", 0.0, 0.0, 0, 0.0, 0.0, limits, [0, 0, 0, 0], 1)
        rows = {row["tag"]: row for row in found.logged["histograms"]}
    assert json.loads(rows["ends"]["edges"]) == [-5.0, -1.0, 0.0, 2.0, 9.0]
    assert json.loads(rows["ends"]["counts"]) == counts
    empty = [rows["empty"][name] for name in ("count", "min", "max", "edges", "counts")]
    assert empty == [0, None, None, "[]", "[]"]


def test_files_are_the_same_with_and_without_us(tmp_path: Path, module):
    def summaries(folder: Path) -> list[tuple[int, bytes]]:
        from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
        from tensorboard.compat.proto.event_pb2 import Event

        (path,) = folder.glob("*tfevents*")
        found = [Event.FromString(data) for data in RawEventFileLoader(str(path)).Load()]
        return [(one.step, one.summary.SerializeToString(deterministic=True)) for one in found]

    with module.SummaryWriter(str(tmp_path / "without")) as writer:
        write_everything(writer)
    with record(tmp_path, module), module.SummaryWriter(str(tmp_path / "with")) as writer:
        write_everything(writer)
    assert summaries(tmp_path / "with") == summaries(tmp_path / "without")


def test_parts_are_tagged_as_where_their_files_are_read(tmp_path: Path, source: str, module):
    with record(tmp_path, module) as found:
        with module.SummaryWriter(str(tmp_path / "logs")) as writer:
            writer.add_scalars("both/of", {"a": 1.0, "b": 2.0}, 3)
        with module.SummaryWriter(str(tmp_path / "other")) as writer:
            writer.add_scalar("loss", 0.5, 1)
        logged = found.logged
    a, b = {"tensorboard": ("both_of_a", "both_of_b"), "tensorboardX": ("both/of/a", "both/of/b")}[
        source
    ]
    assert {row["tag"]: (row["step"], row["value"]) for row in logged["scalars"]} == {
        f"{a}/both/of": (3, 1.0), f"{b}/both/of": (3, 2.0), "other/loss": (1, 0.5),
    }  # fmt: skip
    assert events(tmp_path / "logs" / a).Scalars("both/of")[0].value == 1.0


def test_hyperparameters_and_their_results(tmp_path: Path, source: str, module):
    with record(tmp_path, module) as found:
        with module.SummaryWriter(str(tmp_path / "logs")) as writer:
            writer.add_hparams({"lr": 0.1, "name": "sgd", "nesterov": True}, {"hp/loss": 0.25})
        logged = found.logged
    assert {row["name"]: row["value"] for row in logged["hyperparameters"]} == {
        "lr": "0.1", "name": "sgd", "nesterov": "true",
    }  # fmt: skip
    assert [value for _, value in logged.points("hp/loss")] == [0.25]


def test_a_step_that_is_not_given_is_not_recorded_as_step_0(tmp_path: Path, source: str, module):
    with record(tmp_path, module) as found:
        with module.SummaryWriter(str(tmp_path / "logs")) as writer:
            for value in (0.5, 0.25):
                writer.add_scalar("loss", value)
        logged = found.logged
    assert logged.points("loss") == [(0, 0.5), (1, 0.25)]  # counted where the run is read


def test_what_the_writer_refuses_is_not_recorded(tmp_path: Path, source: str, module):
    with record(tmp_path, module) as found:
        with (
            module.SummaryWriter(str(tmp_path / "logs")) as writer,
            pytest.raises(Exception, match=r".+"),
        ):
            writer.add_scalar("loss", torch.zeros(3), 1)
        assert found.logged["scalars"] == []
    assert found.warnings == []


def test_embeddings_and_graphs(tmp_path: Path):
    module = importlib.import_module(PACKAGES["tensorboard"])
    points = torch.arange(6.0).reshape(3, 2)
    with record(tmp_path, module) as found:
        with module.SummaryWriter(str(tmp_path / "logs")) as writer:
            writer.add_embedding(points, global_step=2, tag="points")
            writer.add_graph(torch.nn.Linear(2, 1), points)
            writer.add_tensor("plain", points.to(torch.int64), 5)
        logged = found.logged
    rows = {row["tag"]: row for row in logged["tensors"]}
    assert {tag: row["plugin"] for tag, row in rows.items()} == {
        "points": "projector", "graph_def": "graph_def", "plain": None,
    }  # fmt: skip
    place = found.recorder.raw.parent
    assert np.load(place / rows["points"]["file"]).tolist() == points.tolist()
    assert np.load(place / rows["plain"]["file"]).tolist() == points.tolist()
    assert rows["plain"]["dtype"] == "int64"
    assert (
        np.load(place / rows["graph_def"]["file"]).tobytes()
        == events(tmp_path / "logs").Graph().SerializeToString()
    )
