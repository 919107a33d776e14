"""Runs that W&B wrote, and records of every kind."""

import json
import math

import numpy as np
import pytest
from fuzz import tracker_files
from fuzz.tracker_files import BLOCK_BYTES, history, item, message, updates, wandb_log, wandb_run

from strobe.ingest.formats.registry import READERS
from strobe.ingest.formats.wandb import log_records
from strobe.ingest.importing.sources import peek
from tests.ingest.metrics import SAMPLES, Read, read, same, shared, truth

RUN = "others/wandb"
SAMPLE = SAMPLES / "wandb"


def written(tmp_path, records, name="run-abc.wandb"):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(wandb_log(records))
    return path


def logged(tmp_path, *records):
    return read(written(tmp_path, records), "W&B")


def test_values_are_those_that_were_logged():
    found, expected = read(shared(RUN), "W&B"), truth("others/wandb.truth.json")
    for tag, points in expected["metrics"].items():
        assert same(found.points(tag), points), tag
    assert {name: number for name, (_, number) in found.facts().items() if number is not None} == {
        name: value for name, value in expected["hparams"].items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    }  # fmt: skip
    assert found.facts()["optimizer"] == ("adamw", None)
    assert found.facts()["use_ema"] == ("true", None)
    assert found.problems == []
    (histogram,) = found["histograms"]
    assert (histogram["step"], histogram["count"], len(json.loads(histogram["edges"]))) == (
        200, 50, 65
    )  # fmt: skip
    assert {row["step"] for row in found["scalars"] if row["tag"].startswith("system/")} == {None}


@pytest.fixture
def sample(tmp_path):
    (tmp_path / "tables").mkdir()
    found = read(SAMPLE, "W&B", tmp_path)
    assert found.problems == []
    return found


def test_a_file_of_wandb_itself(sample):
    assert same(sample.points("loss"), [[n, 1 / (n + 1)] for n in range(6)])
    assert same(sample.points("nested.b.c"), [[n, n * 0.5] for n in range(6)])
    assert same(
        sample.points("weird"), [[n, ["NaN", "Infinity", "-Infinity"][n % 3]] for n in range(6)]
    )
    first = sample.tagged("scalars", "loss")[0]
    assert first["ts_ns"] > 1_700_000_000 * 10**9
    assert (first["source"], first["attempt"], first["epoch"]) == ("wandb", 1, None)


def test_a_step_metric_replaces_the_step(sample):
    assert sample.points("val/acc") == [[1, 0.2], [2, 0.5]]
    assert sample.points("epoch_number") == [[2, 1.0], [5, 2.0]]


def test_media_are_read_from_beside_the_file(sample, tmp_path):
    images = [(row["tag"], row["step"], row["index"], row["width"], row["height"], row["format"])
              for row in sample["images"]]  # fmt: skip
    assert images == [
        ("img", 8, 0, 6, 4, "png"), ("imgs", 9, 0, 6, 4, "png"), ("imgs", 9, 1, 6, 4, "png")
    ]  # fmt: skip
    for row in sample["images"]:
        assert (tmp_path / row["file"]).read_bytes().startswith(b"\x89PNG")
    (table,) = sample["texts"]
    assert json.loads(table["text"]) == {"columns": ["x", "y"], "data": [[1, "a"], [2.5, None]]}
    (histogram,) = sample["histograms"]
    keys = ("tag", "step", "count", "min", "max", "edges", "counts")
    assert [histogram[key] for key in keys] == [
        "hist", 6, 6, 0.0, 1.5, "[0.0,0.5,1.0,1.5]", "[1,2,3]"
    ]  # fmt: skip


def test_settings_and_summary(sample):
    assert sample.facts() == {
        "lr": ("0.1", 0.1), "net.depth": ("3", 3.0), "net.sizes": ("[1, 2]", None),
        "flag": ("true", None), "late": ("1", 1.0),
    }  # fmt: skip
    facts = sample.facts("lineage")
    assert facts["best"] == ("0.5", 0.5)
    assert facts["nested.b.c"] == ("2.5", 2.5)
    assert facts["name"] == ("first", None)
    assert not {"_step", "_wandb", "hist", "img"} & facts.keys()


def test_the_run_is_found_by_its_folder_with_everything_beside_it():
    (found,) = READERS.named("W&B").claim(SAMPLE)
    assert found.folder == found.paths[0].parent
    assert len(found.ignored) == 4
    assert (found.run_name, found.rank) == ("first", 0)
    assert found.first_unix_ns // 10**18 == 1


def test_several_files_of_a_folder_are_runs_of_their_own(tmp_path):
    for name in ("a", "b"):
        written(tmp_path, tracker_files.wandb_records(), f"run-{name}.wandb")
    found = READERS.named("W&B").claim(tmp_path)
    assert [each.folder for each in found] == [tmp_path / "run-a.wandb", tmp_path / "run-b.wandb"]


def test_values_in_fields_of_their_own_type(tmp_path):
    typed = [(6, 0.1), (5, 5), (4, 1), (8, "[1, 2]"), (7, "plain"), (3, 0)]
    items = [(1, message((2, f"v{n}"), pair)) for n, pair in enumerate(typed)]
    found = logged(tmp_path, message((2, message(*items, (2, message((1, 7)))))))
    assert {row["tag"]: row["value"] for row in found["scalars"]} == {
        "v0": 0.1,
        "v1": -3.0,
        "v2": 1.0,
    }
    assert [(row["tag"], row["shape"]) for row in found["tensors"]] == [("v3", "[2]")]
    assert [(row["tag"], row["text"], row["step"]) for row in found["texts"]] == [
        ("v4", "plain", 7)
    ]


def test_objects_that_are_one_value_as_older_versions_wrote_them(tmp_path):
    histogram = {
        "_type": "histogram",
        "values": [1, 2],
        "packedBins": {"min": 0, "size": 0.5, "count": 2},
    }
    found = logged(tmp_path, history(3, {"h": histogram, "deep": {"a": {"b": 2.5}, "t": "x"}}))
    assert found["histograms"][0]["edges"] == "[0.0,0.5,1.0]"
    assert found.points("deep.a.b") == [[3, 2.5]]
    assert [(row["tag"], row["text"]) for row in found["texts"]] == [("deep.t", "x")]


def test_numbers_of_any_length_and_quoted_ones(tmp_path):
    texts = {"long": "1" * 50, "q": '"NaN"', "bad": "12abc", "short": "-0.0"}
    record = message(*((1, message((1, name), (16, text))) for name, text in texts.items()))
    found = logged(tmp_path, message((2, record)))
    values = {row["tag"]: row["value"] for row in found["scalars"]}
    assert values["long"] == float("1" * 50)
    assert math.isnan(values["q"]) and str(values["short"]) == "-0.0"
    assert found.problems == ["values that are not JSON were left out"]
    assert {row["step"] for row in found["scalars"]} == {None}


@pytest.mark.parametrize(
    "definition",
    [
        message((1, "acc"), (4, "at")),
        message((2, "a*"), (4, "at")),
        message((1, "acc"), (5, 1)),
    ],
)
def test_definitions_apply_wherever_they_are(tmp_path, definition):
    first = message((12, message((1, "at"))))
    found = logged(
        tmp_path, first, history(0, {"acc": 0.5, "at": 40}), history(1, {"acc": 0.6}),
        history(2, {"acc": 0.7, "at": 60.5}), message((12, definition)),
    )  # fmt: skip
    # Without a value of its own a record counts at the last one; a step is a whole number.
    assert found.points("acc") == [[40, 0.5], [40, 0.6], [2, 0.7]]


def test_epochs_and_times(tmp_path):
    found = logged(
        tmp_path, wandb_run({}), history(0, {"a": 1, "train/epoch": 0.5}, 1_780_000_000.5),
        history(1, {"a": 2, "_runtime": 3}),
    )  # fmt: skip
    assert [(row["ts_ns"], row["epoch"]) for row in found.tagged("scalars", "a")] == [
        (1_780_000_000_500_000_000, 0.5), (1_780_000_003_000_000_005, None)
    ]  # fmt: skip


def test_later_settings_replace_earlier_ones(tmp_path):
    found = logged(
        tmp_path, wandb_run({"lr": 1, "net": {"depth": 3, "width": 5}, "old": 1}),
        updates(5, {"lr": 2, "net|depth": 4}), message((5, message((2, item("old", None))))),
        updates(3, {"a": 1, "b": 2}), updates(3, {"a": 3}),
        message((3, message((2, item("b", 0))))),
    )  # fmt: skip
    assert found.facts() == {"lr": ("2", 2.0), "net.depth": ("4", 4.0), "net.width": ("5", 5.0)}
    facts = found.facts("lineage")
    assert facts["a"] == ("3", 3.0) and "b" not in facts


def test_no_file_outside_the_run_is_read(tmp_path):
    (tmp_path / "secret.png").write_bytes(b"\x89PNG secret")
    (tmp_path / "run" / "files").mkdir(parents=True)
    (tmp_path / "run" / "files" / "link.png").symlink_to(tmp_path / "secret.png")
    values = [
        {"_type": "image-file", "path": path}
        for path in ("../../secret.png", str(tmp_path / "secret.png"), "link.png", "a\0b", 5)
    ]
    path = written(tmp_path / "run", [history(n, {"img": value}) for n, value in enumerate(values)])
    found = read(path, "W&B")
    assert found["images"] == []
    assert sum(found.trace.said.counts.values()) == 5


def test_records_longer_than_a_block_and_pieces_of_one_block(tmp_path, monkeypatch):
    records = [history(n, {"loss": n, "text": "x" * (n * 7919 % 90_000)}) for n in range(40)]
    path = written(tmp_path, records)
    whole = read(path, "W&B")
    assert whole.points("loss") == [[n, float(n)] for n in range(40)]
    assert [len(row["text"]) for row in whole["texts"]] == [n * 7919 % 90_000 for n in range(40)]
    in_pieces = [
        piece.block.text(start, end)
        for piece in log_records.pieces(path, lambda what, count: None, blocks=1)
        for start, end in zip(piece.starts.tolist(), piece.ends.tolist(), strict=True)
    ]
    assert in_pieces == records


def test_a_cut_file_gives_what_is_before_the_cut(tmp_path):
    records = [history(n, {"loss": n, "text": "x" * 700}) for n in range(120)]
    data = wandb_log(records)
    assert len(data) > 2 * BLOCK_BYTES
    for size in range(8, len(data), 997):
        path = tmp_path / "run-cut.wandb"
        path.write_bytes(data[:size])
        found = read(path, "W&B")
        count = len(found["scalars"])
        assert found.points("loss") == [[n, float(n)] for n in range(count)]
        is_whole = size in (len(wandb_log(records[:n])) for n in (count, count + 1))
        said = [what for what in found.problems if "ends within a record" in what]
        assert len(said) == (not is_whole) and len(found.problems) == len(said)


def test_a_damaged_byte_costs_its_record(tmp_path):
    records = [history(n, {"loss": n}) for n in range(50)]
    data = bytearray(wandb_log(records))
    at = len(wandb_log(records[:20])) + 12
    data[at] ^= 0xFF
    path = tmp_path / "run-abc.wandb"
    path.write_bytes(data)
    found = read(path, "W&B")
    assert found.points("loss") == [[n, float(n)] for n in range(50) if n != 20]
    assert found.problems == ["records whose content does not match its checksum were left out"]


def test_a_damaged_length_costs_the_rest_of_its_block(tmp_path):
    records = [history(n, {"loss": n, "text": "x" * 300}) for n in range(300)]
    data = bytearray(wandb_log(records))
    at = len(wandb_log(records[:20])) + 4
    data[at] ^= 0xFF
    path = tmp_path / "run-abc.wandb"
    path.write_bytes(data)
    steps = [step for step, _ in read(path, "W&B").points("loss")]
    lost = sorted({*range(300)} - {*steps})
    assert lost == [*range(20, lost[-1] + 1)]
    assert len(wandb_log(records[: lost[-1]])) <= BLOCK_BYTES + 400


def test_zeros_at_the_end_are_no_damage(tmp_path):
    path = tmp_path / "run-abc.wandb"
    path.write_bytes(wandb_log([history(0, {"loss": 1.5})]) + bytes(50_000))
    found = read(path, "W&B")
    assert (found.points("loss"), found.problems) == ([[0, 1.5]], [])


def test_mutated_records_raise_nothing(tmp_path):
    source = np.random.default_rng(0)
    for _ in range(150):
        records = tracker_files.wandb_records()
        number = int(source.integers(len(records)))
        record = bytearray(records[number])
        for _ in range(3):
            record[int(source.integers(len(record)))] = int(source.integers(256))
        records[number] = bytes(record)
        found = READERS.named("W&B").recognise(peek(written(tmp_path, records)))
        assert isinstance(Read("W&B", found).problems, list)


def test_keys_without_a_name_and_keys_in_many_others(tmp_path):
    empty = message(
        (2, message((1, item("", 1)), (1, item(["a", ""], 2)), (1, item(["a", "b"], 3))))
    )
    deep = message((2, message((1, item(["k"] * 3000 + ["_type"], "x")), (1, item("loss", 4)))))
    found = logged(tmp_path, empty, deep, updates(3, {"|".join(["k"] * 3000): 1}))
    assert {row["tag"]: row["value"] for row in found["scalars"]} == {
        "": 1.0, "a.": 2.0, "a.b": 3.0, "loss": 4.0
    }  # fmt: skip
    assert "objects within too many others were left out" in found.problems
