"""SummaryCollector and SummaryRecord against MindSpore's own, on the same trainings."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.frameworks import environment
from tests.frameworks.mindspore.tables import full_steps

pytestmark = pytest.mark.slow

TRAININGS = Path(__file__).parent / "trainings"
# Their default saves 19 checkpoints.
NO_CHECKPOINTS = {"collect_specified_data": {"collect_landscape": None}}


def train(folder: Path, whose: str, mode: str, code: int = 0, **options: Any) -> str:
    """In FOLDER/WHOSE."""
    done = environment.run(
        "mindspore", TRAININGS / "summaries.py", whose, whose, mode, json.dumps(options),
        cwd=folder, timeout_s=300,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    return done.stdout


def sql(run: Path, query: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in environment.rows("mindspore", run, query)]


TABLES = {
    "scalars": "select distinct tag, step, value from scalars order by tag, step",
    "histograms": "select distinct tag, step, count, min, max, counts from histograms "
    "order by tag, step",
    "images": "select distinct tag, step, width, height from images order by tag, step",
    "tensors": "select distinct tag, step, shape, min, max from tensors "
    "where tag != 'graph_def' order by tag, step",
}


def same(ours: Path, theirs: Path, table: str) -> list[tuple[Any, ...]]:
    """What both have."""
    found, expected = sql(ours, TABLES[table]), sql(theirs, TABLES[table])
    plain = [tuple(str(one).replace(" ", "") for one in row) for row in found]
    assert plain == [tuple(str(one).replace(" ", "") for one in row) for row in expected]
    return found


def test_a_training_has_the_tags_steps_and_values_that_mindspore_writes(tmp_path):
    train(tmp_path, "strobe", "train", collect_freq=10)
    train(tmp_path, "mindspore", "train", collect_freq=10, **NO_CHECKPOINTS)
    ours, theirs = tmp_path / "strobe", tmp_path / "mindspore"
    scalars = same(ours, theirs, "scalars")
    assert [row[:2] for row in scalars] == [
        (tag, step) for tag in ("first", "loss/auto") for step in (1, 10, 20, 30)
    ]
    assert len({tag for tag, *_ in same(ours, theirs, "histograms")}) == 5
    assert len(same(ours, theirs, "images")) == len(same(ours, theirs, "tensors")) == 4
    # without a checkpoint, MindSpore writes a size of 0
    query = """select kind, name, number from lineage
               where number is not null and name != 'model_size' order by kind, name"""
    facts = {row[:2]: row[2] for row in sql(ours, query)}
    for kind, name, number in sql(theirs, query):
        assert facts[kind, name] == pytest.approx(number), name
    names = sql(theirs, "select name, value from hyperparameters order by name")
    assert names == sql(ours, "select name, value from hyperparameters order by name")
    ((graph,),) = sql(ours, "select value from lineage where kind = 'dataset'")
    ((expected,),) = sql(theirs, "select value from lineage where kind = 'dataset'")
    assert json.loads(graph) == json.loads(expected)


def test_options_choose_what_is_collected(tmp_path):
    data = {
        "histogram_regular": "fc3|conv1", "collect_metric": False, "collect_input_data": False,
        "collect_eval_lineage": False, "collect_dataset_graph": False,
        "collect_landscape": {"unit": "epoch", "intervals": [[1, 2, 3]]},
    }  # fmt: skip
    train(
        tmp_path, "strobe", "train", collect_specified_data=data, collect_tensor_freq=15,
        export_options={"tensor_format": "npy"}, custom_lineage_data={"data": "v1"},
    )  # fmt: skip
    run = tmp_path / "strobe"
    assert sql(run, "select distinct tag from scalars") == [("first",)]
    tags = sql(run, "select distinct tag from histograms order by tag")
    assert tags == [("conv1.weight/auto",), ("fc3.bias/auto",), ("fc3.weight/auto",)]
    assert sql(run, "select step from tensors order by step") == [(1,), (15,), (30,)]
    assert len(list(run.glob("export_*/tensor/logits_*.npy"))) == 3
    kinds = sql(run, "select distinct kind from lineage order by kind")
    assert kinds == [("custom",), ("train",)]
    metadata = json.loads((run / "ckpt_dir" / "train_metadata.json").read_text())
    assert sorted(metadata["model_params_file_map"]) == ["1", "2"]
    assert metadata["unit"] == "epoch" and metadata["step_per_epoch"] == 15
    assert all(
        Path(run.parent, file).exists() for file in metadata["model_params_file_map"].values()
    )


def test_a_killed_training_has_its_lineage(tmp_path):
    train(tmp_path, "strobe", "kill", code=-9)
    run = tmp_path / "strobe"
    facts = dict(sql(run, "select name, value from lineage where kind = 'train'"))
    assert facts["network"] == "Net" and facts["batch_size"] == "4"
    assert sql(run, "select step from scalars where tag = 'loss/auto' order by step") == [
        (1,), (10,)
    ]  # fmt: skip


def test_two_collectors_are_an_error(tmp_path):
    assert train(tmp_path, "strobe", "two") == "ValueError True\n"


def test_values_and_messages_of_a_record_are_those_of_mindspore(tmp_path):
    for whose in ("strobe", "mindspore"):
        done = environment.run(
            "mindspore", TRAININGS / "recorded.py", whose, whose, cwd=tmp_path, timeout_s=200
        )
        assert done.returncode == 0, done.stderr
        if whose == "strobe":
            *errors, one, two, three, four, last = done.stdout.split("\n")[:-1]
            assert all(line.endswith(" ok") for line in errors), errors
            assert [one, two, three, four, last] == ["True"] * 4 + ["False"]
            assert "'twice/scalar' was added twice" in done.stderr
    ours, theirs = tmp_path / "strobe", tmp_path / "mindspore"
    for table in ("scalars", "histograms", "images"):
        assert same(ours, theirs, table)
    tags = sql(ours, "select tag, step, shape from tensors order by tag, step")
    assert tags == [("landscape_[1]/z", 3, "[2, 2]"), ("taken", 4, "[1]"),
                    ("weights", 1, "[2, 3]"), ("weights", 2, "[2, 3]")]  # fmt: skip
    query = "select kind, name, value from lineage order by kind, name"
    assert sql(ours, query) == sql(theirs, query)


JOB = """
profile: {profile}
profile_start_step: 2
profile_stop_step: 3
callbacks:
  - type: MFLossMonitor
  - type: SummaryMonitor
    summary_dir: None
    collect_freq: 10
    collect_specified_data: None
    keep_default_action: True
    collect_tensor_freq: None
"""


@pytest.mark.parametrize("profile", [True, False])
def test_a_summary_monitor_of_a_job_file_collects_from_the_training(profile, tmp_path):
    (tmp_path / "job.yaml").write_text(JOB.format(profile=profile))
    done = environment.run(
        "mindspore", "-m", "strobe", "run", "-q", "-o", "run", "--config", "job.yaml",
        TRAININGS / "summaries.py", "strobe", "unused", "bare", cwd=tmp_path, timeout_s=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    run = tmp_path / "run"
    query = "select step from scalars where tag = 'loss/auto' order by step"
    assert sql(run, query) == [(step,) for step in (1, 10, 20, 30)]
    assert len(sql(run, "select distinct tag from histograms")) == 5
    assert full_steps(run) - {1} == ({2, 3} if profile else set())
    assert not (tmp_path / "output").exists()


def test_a_job_file_adds_nothing_to_a_training_that_has_a_summary(tmp_path):
    (tmp_path / "job.yaml").write_text(JOB.format(profile=False))
    done = environment.run(
        "mindspore", "-m", "strobe", "run", "-q", "-o", "run", "--config", "job.yaml",
        TRAININGS / "summaries.py", "mindspore", "theirs", "train",
        json.dumps(NO_CHECKPOINTS), cwd=tmp_path, timeout_s=300,
    )  # fmt: skip
    assert done.returncode == 0 and "ValueError" not in done.stdout, done.stderr
    assert len(sql(tmp_path / "theirs", "select * from scalars")) == 9
