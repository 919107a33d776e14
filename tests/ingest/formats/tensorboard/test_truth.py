"""Every file of the shared data against what was passed to the writers."""

import io

import numpy as np
import pytest

from tests.ingest.metrics import read, same, shared, truth

TENSORBOARD = "tensorboard/"


@pytest.fixture(scope="module")
def expected():
    return truth("tensorboard/truth.json")


@pytest.fixture(scope="module")
def every_kind(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rank_0")
    (folder / "tables").mkdir()
    found = read(shared(TENSORBOARD + "every_kind"), folder=folder)
    found.folder = folder
    return found


def array(found, row):
    return np.load(io.BytesIO((found.folder / row["file"]).read_bytes()), allow_pickle=False)


def test_scalars_of_all_three_kinds(every_kind, expected):
    kinds = ("simple_value_scalars", "tensor_scalars_new_style_float32",
             "tensor_scalars_double_precision")  # fmt: skip
    for kind in kinds:
        for tag, points in expected["every_kind"][kind].items():
            assert same(every_kind.points(tag), points), tag
    first = every_kind.tagged("scalars", "loss/train")
    assert [row["ts_ns"] for row in first] == [
        (1_780_000_000 * 10 + 5 * n) * 10**8 for n in range(100)
    ]
    assert {(row["source"], row["attempt"], row["epoch"]) for row in first} == {
        ("tensorboard", 1, None)
    }
    assert every_kind.problems == ["embeddings are not read"]


def test_sub_runs_come_before_the_tags(every_kind, expected):
    several = expected["every_kind"]["add_scalars"]
    for name, points in several["sub_runs"].items():
        tag = f"loss_by_split_all_{name}/{several['main_tag']}"
        assert same(every_kind.points(tag), points), tag


def test_histograms(every_kind, expected):
    for tag, rows in expected["every_kind"]["histograms"].items():
        found = every_kind.tagged("histograms", tag)
        for row, wanted in zip(found, rows, strict=True):
            assert [row["step"], row["min"], row["max"], row["count"], row["sum"]] == [
                wanted["step"], wanted["min"], wanted["max"], wanted["num"], wanted["sum"]
            ]  # fmt: skip
            edges, counts = map(eval, (row["edges"], row["counts"]))
            assert len(edges) == len(counts) + 1 and sum(counts) == wanted["num"]
            assert edges == sorted(edges)
    raw, given = every_kind.tagged("histograms", "raw_hist")[0], rows[0]
    assert eval(raw["edges"]) == [given["min"], *given["bucket_limit"]]
    assert (eval(raw["counts"]), raw["sum_squares"]) == (given["bucket"], given["sum_squares"])


def test_images(every_kind, expected):
    for tag, rows in expected["every_kind"]["images"].items():
        found = every_kind.tagged("images", tag)
        for row, wanted in zip(found, rows, strict=True):
            assert row["step"] == wanted["step"] and row["format"] == "png"
            size = [wanted.get(key, row[key]) for key in ("height", "width", "channels")]
            assert [row["height"], row["width"], row["channels"]] == size
            data = (every_kind.folder / row["file"]).read_bytes()
            assert len(data) == row["bytes"] and data.startswith(b"\x89PNG")
    (clip,) = every_kind.tagged("images", "clip")
    assert (clip["step"], clip["format"]) == (5, "gif")


def test_texts(every_kind, expected):
    for tag, rows in expected["every_kind"]["text"].items():
        assert [[row["step"], row["text"]] for row in every_kind.tagged("texts", tag)] == rows


def test_tensors(every_kind, expected):
    for tag, wanted in expected["every_kind"]["tensors"].items():
        (row,) = every_kind.tagged("tensors", tag)
        assert (row["step"], row["dtype"], eval(row["shape"]), row["plugin"]) == (
            wanted["step"], wanted["dtype"], wanted["shape"], None
        )  # fmt: skip
        assert [str(value) for value in array(every_kind, row).ravel()] == wanted["values"]


def test_what_plugins_draw(every_kind, expected):
    kinds = expected["every_kind"]
    (curve,) = every_kind.tagged("tensors", kinds["pr_curve_raw"]["tag"])
    assert (curve["plugin"], curve["step"]) == ("pr_curves", 4)
    assert array(every_kind, curve)[0].tolist() == kinds["pr_curve_raw"]["tp"]
    (curve,) = every_kind.tagged("tensors", kinds["pr_curve"]["tag"])
    assert array(every_kind, curve).shape == (6, kinds["pr_curve"]["num_thresholds"])
    assert array(every_kind, curve)[:2, 0].tolist() == [64, 36]
    (tone,) = every_kind.tagged("tensors", "tone")
    sound = array(every_kind, tone).tobytes()
    assert (tone["plugin"], tone["step"], sound[:4]) == ("audio", 6, b"RIFF")
    (vertices,) = every_kind.tagged("tensors", "solid_VERTEX")
    assert (vertices["plugin"], eval(vertices["shape"])) == ("mesh", kinds["mesh"]["vertices"])
    (layout,) = every_kind.tagged("tensors", "custom_scalars__config__")
    assert b"Section one" in array(every_kind, layout).tobytes()
    (graph,) = every_kind.tagged("tensors", "graph_def")
    assert b"Conv2d" in array(every_kind, graph).tobytes()


def test_hyperparameters_belong_to_the_run(expected):
    for trial in expected["hparams"]:
        found = read(shared(f"tensorboard/hparams/{trial['run']}"))
        # torch writes True as the number 1
        assert found.facts() == {
            name: (value, None) if isinstance(value, str) else (str(value + 0), value)
            for name, value in trial["hparams"].items()
        }
        for tag, value in trial["metrics"].items():
            assert [value] == [row["value"] for row in found.tagged("scalars", tag)]


def test_a_resumed_run_has_two_attempts(expected):
    rows = read(shared("tensorboard/resumed"))["scalars"]
    for number, name in ((1, "first_attempt"), (2, "second_attempt")):
        points = [[row["step"], row["value"]] for row in rows if row["attempt"] == number]
        assert same(points, expected["resumed"][name])


def test_values_that_are_not_finite(expected):
    found = read(shared("tensorboard/not_finite"))
    points = [[step, str(value).split()[0]] for step, value in expected["not_finite"]["m"]]
    assert same(found.points("m"), points)
    assert same(found.points("all_nan"), expected["not_finite"]["all_nan"])
    assert found.points("no step at all")[0][0] == 0
    assert {row["attempt"] for row in found["scalars"]} == {1}


@pytest.mark.parametrize(
    ("folder", "points", "problem"),
    [
        ("plain", 400, ""),
        ("cut_in_payload", 250, "ends within a record: 23 bytes from byte 9,834"),
        ("cut_in_length", 250, "ends within a record: 5 bytes from byte 9,834"),
        ("bad_length_crc", 250, "the length of a record is damaged: 5,994 bytes"),
        ("bad_payload_crc", 399, "does not match its checksum"),
        ("zeros_at_end", 400, "the last 4,096 bytes are zeros"),
    ],
)
def test_damage_costs_what_is_damaged(folder, points, problem, expected):
    found = read(shared(TENSORBOARD + folder))
    whole = expected["plain"]["x"]
    lost = [[125, 62.5]] if folder == "bad_payload_crc" else []
    kept = [point for point in whole if point not in lost][: points - points // 2 - len(lost)]
    assert len(found["scalars"]) == points
    assert same(found.points("x"), kept if folder != "bad_payload_crc" else
                [point for point in whole if point not in lost])  # fmt: skip
    assert [what for what in found.problems if problem not in what] == []
    assert len(found.problems) == bool(problem)


def test_lightnings_folders(expected):
    for version, wanted in list(expected["lightning_style"].items())[:2]:
        found = read(shared(f"tensorboard/lightning_logs/{version}"))
        assert same(found.points("train_loss_step"), wanted["train_loss_step"])
        assert {name: number for name, (_, number) in found.facts().items()} == wanted["hparams"]
        assert {row["attempt"] for row in found["scalars"]} == {1}


def test_tensorboardx(expected):
    wanted = expected["tensorboardX"]
    found = read(shared("tensorboard/tensorboardX"))
    assert same(found.points("cosine"), wanted["scalar"])
    (histogram,) = found["histograms"]
    assert [histogram[key] for key in ("tag", "step", "count", "min", "max", "sum")] == [
        wanted["histogram"][key] for key in ("tag", "step", "num", "min", "max", "sum")
    ]
    (image,) = found["images"]
    assert {key: image[key] for key in wanted["image"]} == wanted["image"]
    assert [[row["step"], row["text"]] for row in found["texts"]] == wanted["text"]
    assert found.facts() == {"a": ("1", 1.0), "b": ("x", None)}
    assert [row["value"] for row in found.tagged("scalars", "score")] == [0.75]
