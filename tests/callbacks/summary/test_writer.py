"""TensorBoard's writer, by name and signature, into a run."""

import inspect
import io
import json
import time
import wave
from pathlib import Path

import numpy as np
import pytest

import strobe
from strobe.callbacks.summary import media
from strobe.collect.metrics.arrays import png
from tests.callbacks.summary.rows import rows


def test_signatures_are_those_of_torch():
    board = pytest.importorskip("torch.utils.tensorboard")
    for name, theirs in inspect.getmembers(board.SummaryWriter, inspect.isfunction):
        if name.startswith("add_") or name in ("flush", "close", "__init__", "get_logdir"):
            ours = inspect.signature(getattr(strobe.SummaryWriter, name))
            assert list(ours.parameters) == list(inspect.signature(theirs).parameters), name


def test_what_is_added_is_in_the_run(tmp_path):
    with strobe.SummaryWriter(tmp_path / "log") as writer:
        writer.add_scalar("loss", 0.1, 3)
        writer.add_scalars("both", {"train": 1, "test": float("nan")}, 4)
        writer.add_histogram("h", np.arange(100.0), 1)
        writer.add_histogram("few", np.arange(100.0), 1, bins=4)
        writer.add_histogram_raw("raw", 0, 3, 4, 6, 14, [1, 2, 3, 4], [1, 1, 2, 0], 2)
        writer.add_image("chw", np.zeros((3, 4, 5)), 1)
        writer.add_images("nhwc", np.zeros((2, 4, 5, 3)), 1, dataformats="NHWC")
        writer.add_text("note", "a *word*", 7)
        writer.add_tensor("t", np.array([1, 2**60]), 1)
        writer.add_hparams({"lr": 0.1}, {"accuracy": 0.5})
        writer.add_mesh("m", np.zeros((1, 3, 3)), faces=np.zeros((1, 1, 3)), global_step=1)
        writer.add_embedding(np.eye(2), ["a", "b"], global_step=5, tag="e")
        writer.add_graph(None)
        run = writer.run_path
    scalars = rows(run, "select tag, step, value from scalars where tag != 'accuracy' order by tag")
    assert [row[:2] for row in scalars] == [("both/test", 4), ("both/train", 4), ("loss", 3)]
    assert np.isnan(scalars[0][2]) and scalars[2][2] == 0.1
    found = rows(run, "select tag, counts from histograms where tag in ('h', 'few') order by tag")
    assert [(tag, len(json.loads(counts))) for tag, counts in found] == [("few", 4), ("h", 11)]
    ((edges, counts, total),) = rows(
        run, "select edges, counts, sum_squares from histograms where tag = 'raw'"
    )
    assert (json.loads(edges), json.loads(counts), total) == ([0, 1, 2, 3], [1, 1, 2], 14)
    sizes = rows(run, "select tag, width, height from images order by tag")
    assert sizes == [("chw", 5, 4), ("nhwc", 10, 4)]
    assert rows(run, "select dtype, max from tensors where tag = 't'") == [("int64", 2.0**60)]
    plugins = rows(run, "select tag, plugin from tensors where plugin is not null order by tag")
    assert plugins == [("e", "projector"), ("m_FACE", "mesh"), ("m_VERTEX", "mesh")]
    assert rows(run, "select text from texts where tag = 'note'") == [("a *word*",)]
    assert rows(run, "select name, number from hyperparameters") == [("lr", 0.1)]
    assert ("add_graph" in what for (what,) in rows(run, "select what from problems"))


def test_the_wall_time_that_is_given_is_the_time_of_the_value(tmp_path):
    now = time.time()
    with strobe.SummaryWriter(tmp_path / "log") as writer:
        for step in range(3):
            writer.add_scalar("loss", step, step, walltime=now - 100 + 10 * step)
        writer.add_text("note", "x", 1, walltime=now - 50)
        run = writer.run_path
    times = [ts for (ts,) in rows(run, "select ts_ns from scalars order by step")]
    assert [round((later - times[0]) / 1e9) for later in times] == [0, 10, 20]
    assert -101e9 < times[0] < -99e9
    ((noted,),) = rows(run, "select ts_ns from texts")
    assert round((noted - times[0]) / 1e9) == 50


def test_writers_with_different_folders_have_runs_of_their_own(tmp_path):
    runs = []
    for name in ("train", "test"):
        writer = strobe.SummaryWriter(tmp_path / name)
        writer.add_scalar("loss", len(name), 1)
        runs.append(writer.run_path)
    for run in runs:
        assert rows(run, "select value from scalars") == [(len(run.name),)]


def test_what_cannot_be_logged_is_reported_and_nothing_is_raised(tmp_path, capsys):
    with strobe.SummaryWriter(tmp_path / "log") as writer:
        writer.add_image("bad", np.zeros(3), 1)
        writer.add_histogram_raw("bad", 0, 1, 1, 1, 1, [1, 2], [1])
        writer.add_scalar("good", 1, 1)
        run = writer.run_path
    err = capsys.readouterr().err
    assert "an image of shape (3,)" in err and "SummaryWriter.add_histogram_raw" in err
    assert rows(run, "select tag from scalars") == [("good",)]


def test_a_folder_that_cannot_be_written_is_named_once(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    with strobe.SummaryWriter(tmp_path / "file" / "log") as writer:
        writer.add_scalar("loss", 1, 1)
        writer.add_scalar("loss", 2, 2)
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and str(tmp_path / "file" / "log") in err


def test_audio_is_a_wav_file(tmp_path):
    with strobe.SummaryWriter(tmp_path / "log") as writer:
        writer.add_audio("sound", np.array([[0.0, 1.0, -1.0, 9.0]]), 1, sample_rate=8000)
        run = writer.run_path
    ((file, plugin),) = rows(run, "select file, plugin from tensors")
    assert plugin == "audio"
    data = np.load(run / "rank_0" / file).tobytes()
    with wave.open(io.BytesIO(data)) as sound:
        assert sound.getframerate() == 8000
        samples = np.frombuffer(sound.readframes(4), "<i2")
    assert samples.tolist() == [0, 32767, -32767, 32767]


def test_a_precision_and_recall_curve_is_that_of_tensorboard():
    board = pytest.importorskip("torch.utils.tensorboard.summary")
    generator = np.random.default_rng(0)
    labels, predictions = generator.random(200) > 0.5, generator.random(200)
    weights = generator.random(200)
    for given in (None, weights):
        ours = media.precision_and_recall(labels, predictions, 127, given)
        theirs = board.compute_curve(labels, predictions, 127, given)
        np.testing.assert_allclose(ours, theirs, atol=1e-9)


def test_bins_without_values_are_left_out_at_both_ends():
    limits = [-1e308, 0.0, 1.0, 2.0, 1.7e308]
    assert media.bins(0.5, 1.5, limits, [0, 0, 2, 3, 0]) == ([0.5, 1.0, 1.5], [2, 3])
    edges, counts = media.bins(4.0, 4.0, [3.0, 5.0], [0, 1])
    assert counts == [1] and edges[0] == 4.0 < edges[1]


def test_boxes_are_drawn_within_the_image():
    drawn = media.with_boxes(np.zeros((3, 6, 8)), "CHW", np.array([[1, 1, 3, 99]]))
    assert drawn.shape == (6, 8, 3)
    assert (drawn[1, 1:4, 0] == 255).all() and (drawn[5, 1:4, 0] == 255).all()
    assert drawn[2, 2].tolist() == [0, 0, 0]


def test_the_default_folder_is_that_of_tensorboard(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    writer = strobe.SummaryWriter(comment="-lr")
    assert Path(writer.get_logdir()).parent == Path("runs")
    assert writer.get_logdir().endswith("-lr")


class Figure:
    """As one of matplotlib, as far as a writer uses it."""

    dpi = 50

    def savefig(self, file, format, dpi):
        assert (format, dpi) == ("png", 50)
        file.write(png(np.zeros((3, 4, 3), np.uint8)))


def test_pictures_that_others_draw_are_images(tmp_path):
    boxes = np.array([[0, 0, 2, 2]])
    with strobe.SummaryWriter(tmp_path / "log") as writer:
        writer.add_figure("one", Figure(), 1)
        writer.add_figure("two", [Figure(), Figure()], 1)
        writer.add_video("film", np.zeros((1, 3, 1, 4, 5), np.uint8), 2, fps=10)
        writer.add_image_with_boxes("boxes", np.zeros((3, 8, 9)), boxes, 3, labels=["cat"])
        writer.add_video("bad", np.zeros((3, 4, 5)), 2)
        writer.add_pr_curve("curve", np.array([0, 1]), np.array([0.2, 0.9]), 1)
        run = writer.run_path
    found = rows(run, 'select tag, "index", format from images order by all')
    assert found == [
        ("boxes", 0, "png"), ("film", 0, "gif"), ("one", 0, "png"), ("two", 0, "png"),
        ("two", 1, "png"),
    ]  # fmt: skip
    assert rows(run, "select tag, text from texts") == [("boxes/labels", "cat")]
    assert rows(run, "select shape, plugin from tensors") == [("[6, 127]", "pr_curves")]
    problems = [what for (what,) in rows(run, "select what from problems")]
    assert any("NTCHW" in what for what in problems)


def test_without_pillow_a_video_names_its_package(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(media, "has_pillow", lambda: False)
    with strobe.SummaryWriter(tmp_path / "log") as writer:
        writer.add_video("film", np.zeros((1, 3, 1, 4, 5), np.uint8), 2)
    assert "pip install pillow" in capsys.readouterr().err
