"""What a script gives to W&B is what its offline run has, which our reader reads."""

import json
from pathlib import Path
from typing import Any

import pytest

import strobe
from tests.frameworks import environment

pytestmark = pytest.mark.slow

SCRIPT = """
import os
os.environ.update(WANDB_MODE="offline", WANDB_SILENT="true")
import numpy as np
import strobe, wandb

random = np.random.default_rng(0)
run = wandb.init(project="p", config={"lr": 0.125, "optimizer": {"name": "sgd", "nesterov": True}})
wandb.config.batch_size = 32
wandb.config.update({"epochs": 3})
for step in range(4):
    strobe.step()
    values = {"loss": 1 / (step + 3), "valid": {"loss": np.float32(0.5)}}
    assert wandb.log(values, step=5 * step) is None
run.log({"odd": float("nan"), "flag": True, "word": "text"}, step=30)
run.log(
    {
        "picture": wandb.Image(random.random((6, 5, 3))),
        "pictures": [wandb.Image(random.random((4, 4))), wandb.Image(random.random((3, 4)))],
        "counted": wandb.Histogram([1, 2, 2, 3, 5]),
        "table": wandb.Table(columns=["a", "b"], data=[[1, "x"], [2, "y"]]),
    },
    step=40,
)
wandb.summary["best"] = 0.25
run.summary.update({"accuracy": 0.875})
wandb.finish()
second = wandb.init(project="p", name="second", config={"lr": 0.5})
second.log({"loss": 7.0}, step=1)
second.finish()
try:
    run.log({"late": 1})
except Exception as error:
    print(type(error).__name__)
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("wandb")
    (folder / "train.py").write_text(SCRIPT, encoding="utf-8")
    done = environment.run(
        "trackers", "-m", "strobe", "run", "-q", "-o", folder / "run", folder / "train.py",
        cwd=folder, timeout_s=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def ask(run: Path, query: str) -> list[Any]:
    with strobe.open_run(run) as opened:
        return opened.sql(query).fetchall()


def test_every_value_is_the_one_in_the_offline_run(recorded: tuple[Path, str]):
    folder, _ = recorded
    (theirs,) = [path for path in folder.glob("wandb/offline-run-*") if _has_images(path)]
    query = "select tag, step, value::varchar from scalars where source = 'wandb' "
    query += "and tag not like 'system/%' and tag not like 'second/%' order by all"
    ours = ask(folder / "run", query)
    assert ours == ask(theirs, query)
    assert ("loss", 15, str(1 / 6)) in ours
    texts = "select tag, step, text from texts where tag = 'word'"
    assert ask(folder / "run", texts) == ask(theirs, texts) == [("word", 30, "text")]
    histogram = "select tag, step, count, edges, counts from histograms"
    ((*ours, edges, counts),) = ask(folder / "run", histogram)
    ((*expected, their_edges, their_counts),) = ask(theirs, histogram)
    assert ours == expected
    assert json.loads(edges) == json.loads(their_edges)
    assert json.loads(counts) == json.loads(their_counts)


def _has_images(path: Path) -> bool:
    return bool(list(path.rglob("*.png")))


def test_images_are_those_that_it_wrote(recorded: tuple[Path, str]):
    folder, _ = recorded
    written = sorted(path.read_bytes() for path in folder.glob("wandb/*/files/**/*.png"))
    query = 'select tag, step, "index", file from images order by tag, "index"'
    found = ask(folder / "run", query)
    assert [row[:3] for row in found] == [
        ("picture", 40, 0), ("pictures", 40, 0), ("pictures", 40, 1),
    ]  # fmt: skip
    ours = sorted((folder / "run" / "rank_0" / row[3]).read_bytes() for row in found)
    assert ours == written


def test_settings_and_results(recorded: tuple[Path, str]):
    folder, _ = recorded
    settings = ask(folder / "run", "select name, value from hyperparameters order by name")
    assert settings == [
        ("batch_size", "32"), ("epochs", "3"), ("lr", "0.125"), ("optimizer.name", "sgd"),
        ("optimizer.nesterov", "true"), ("second/lr", "0.5"),
    ]  # fmt: skip
    results = ask(folder / "run", "select kind, name, number from lineage order by name")
    assert results == [("train", "accuracy", 0.875), ("train", "best", 0.25)]


def test_a_second_run_is_named_and_errors_are_those_of_wandb(recorded: tuple[Path, str]):
    folder, printed = recorded
    (row,) = ask(folder / "run", "select tag, step, value from scalars where tag like 'second%'")
    assert row == ("second/loss", 1, 7.0)
    assert printed.split() == ["UsageError"]
    assert ask(folder / "run", "select * from scalars where tag = 'late'") == []
    assert ask(folder / "run", "select what from problems") == []
