"""SummaryCollector in loops of PyTorch and JAX's trees: what each option makes it record."""

import copy
import json
import pickle
from typing import Any

import numpy as np
import pytest

import strobe
from strobe.callbacks.summary import contents
from strobe.mindspore import SummaryMonitor
from tests.callbacks.summary.rows import rows

torch = pytest.importorskip("torch")


def trained(folder, steps: int = 20, **options: Any):
    """The folder of the run of a small training; its losses and parameters after each step."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 2, 3), torch.nn.Flatten(), torch.nn.Linear(2 * 6 * 6, 3),
        torch.nn.Linear(3, 2),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    losses, weights = {}, {}
    with strobe.SummaryCollector(folder, **options) as collector:
        for step in range(1, steps + 1):
            inputs = torch.rand(4, 1, 8, 8)
            loss = model(inputs).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            collector.step(
                loss=loss, model=model, inputs=inputs, optimizer=optimizer, total_steps=steps,
                tensors={"big/t": torch.tensor([step], dtype=torch.int64) + 2**60},
            )  # fmt: skip
            losses[step] = loss.item()
            weights[step] = model[0].weight.detach().double().sum().item()
        run = collector.run_path
    return run, losses, weights


def test_the_first_step_and_every_tenth_are_collected(tmp_path):
    run, losses, weights = trained(tmp_path / "run")
    found = rows(run, "select step, value from scalars where tag = 'loss/auto' order by step")
    assert found == [(step, losses[step]) for step in (1, 10, 20)]
    found = rows(run, "select step, sum from histograms where tag = '0.weight/auto' order by step")
    assert [step for step, _ in found] == [1, 10, 20]
    for step, total in found:
        assert total == pytest.approx(weights[step], abs=1e-6)
    tags = rows(run, "select distinct tag from histograms order by tag")
    assert [tag for (tag,) in tags] == [
        "0.bias/auto", "0.weight/auto", "2.bias/auto", "2.weight/auto", "3.weight/auto"
    ]  # fmt: skip
    images = rows(run, "select tag, step, width, height from images order by step")
    assert images == [("input_data/auto", step, 32, 8) for step in (1, 10, 20)]
    tensors = rows(run, "select tag, step, dtype from tensors order by step")
    assert tensors == [("big/t", step, "int64") for step in (1, 10, 20)]


def test_lineage_exists_from_the_first_step_and_ends_with_the_last_loss(tmp_path):
    run, losses, _ = trained(tmp_path / "run", custom_lineage_data={"data": "v1", "size": 2**40})
    found = {
        (kind, name): (value, step)
        for kind, name, value, step in rows(run, "select kind, name, value, step from lineage")
    }
    assert found[("custom", "size")] == (str(2**40), 1)
    assert found[("train", "network")] == ("Sequential", 1)
    assert found[("train", "optimizer")] == ("SGD", 1)
    assert found[("train", "learning_rate")] == ("0.05", 1)
    assert found[("train", "batch_size")] == ("4", 1)
    assert float(found[("train", "loss")][0]) == losses[20]
    hyper = dict(rows(run, "select name, value from hyperparameters"))
    assert hyper == {"optimizer": "SGD", "learning_rate": "0.05", "batch_size": "4"}


SPECIFIED: list[tuple[dict[str, Any], str]] = [
    ({"collect_metric": False}, "select * from scalars"),
    ({"collect_input_data": False}, "select * from images"),
    ({"collect_train_lineage": False}, "select * from lineage where kind = 'train'"),
    ({"collect_graph": False}, "select * from problems where what like '%collect_graph%'"),
    ({"histogram_regular": "nothing"}, "select * from histograms"),
]


@pytest.mark.parametrize("specified, query", SPECIFIED)
def test_what_is_switched_off_is_missing(specified, query, tmp_path):
    off, _, _ = trained(tmp_path / "off", steps=2, collect_specified_data=specified)
    on, _, _ = trained(tmp_path / "on", steps=2)
    assert rows(on, query) and not rows(off, query)


def test_only_specified_data_is_collected_without_the_defaults(tmp_path):
    run, _, _ = trained(
        tmp_path / "run", steps=2, collect_specified_data={"collect_metric": True},
        keep_default_action=False,
    )  # fmt: skip
    assert len(rows(run, "select * from scalars")) == 1
    for table in ("histograms", "images", "lineage"):
        assert not rows(run, f"select * from {table}")


def test_a_pattern_chooses_parameters_from_the_start_of_their_names(tmp_path):
    data = {"histogram_regular": "3|weight"}
    run, _, _ = trained(tmp_path / "run", steps=1, collect_specified_data=data)
    tags = rows(run, "select tag from histograms order by tag")
    assert tags == [("3.bias/auto",), ("3.weight/auto",)]


def test_tensors_have_a_frequency_of_their_own(tmp_path):
    run, _, _ = trained(tmp_path / "run", steps=9, collect_tensor_freq=4)
    assert rows(run, "select step from tensors order by step") == [(1,), (4,), (8,)]


def test_tensors_are_exported_as_files_of_numpy(tmp_path):
    run, _, _ = trained(tmp_path / "run", steps=10, export_options={"tensor_format": "npy"})
    files = sorted(run.glob("export_*/tensor/*.npy"))
    assert [file.name for file in files] == ["big%2Ft_1.npy", "big%2Ft_10.npy"]
    assert np.load(files[1]).tolist() == [2**60 + 10]
    run, _, _ = trained(tmp_path / "none", steps=1, export_options={"tensor_format": None})
    assert not list(run.glob("export_*"))


def test_recording_ends_at_the_largest_size_of_a_file(tmp_path, capsys):
    run, _, _ = trained(tmp_path / "run", max_file_size=200_000)
    assert rows(run, "select count(*) > 0 from scalars") == [(True,)]
    assert "max_file_size" not in capsys.readouterr().err
    run, _, _ = trained(tmp_path / "less", max_file_size=20_000)
    assert capsys.readouterr().err.count("max_file_size (20000 bytes)") == 1
    assert rows(run, "select max(step) < 20 from scalars") == [(True,)]
    assert sum(f.stat().st_size for f in run.glob("rank_0/raw/blobs/*")) < 20_000


def test_a_landscape_is_stored_and_saves_checkpoints_where_intervals_ask(tmp_path):
    chosen = {"landscape_size": 30, "num_samples": 64, "create_landscape": {"result": False}}
    run, _, _ = trained(
        tmp_path / "none", steps=4, collect_specified_data={"collect_landscape": chosen}
    )
    query = "select name, value from hyperparameters where name like 'collect_landscape/%'"
    stored = {name.partition("/")[2]: value.lower() for name, value in rows(run, query)}
    assert stored == {
        "landscape_size": "30", "unit": "step", "num_samples": "64", "intervals": "[]",
        "create_landscape/train": "true", "create_landscape/result": "false",
    }  # fmt: skip
    assert not (run / "ckpt_dir").exists()
    run, _, weights = trained(
        tmp_path / "some", steps=4,
        collect_specified_data={"collect_landscape": {**chosen, "intervals": [[1, 2, 4]]}},
    )  # fmt: skip
    metadata = json.loads((run / "ckpt_dir" / "train_metadata.json").read_text())
    assert metadata["epoch_group"] == {"0": [1, 2, 4]}
    assert sorted(metadata["model_params_file_map"]) == ["1", "2", "4"]
    state = torch.load(metadata["model_params_file_map"]["2"])
    assert state["0.weight"].double().sum().item() == pytest.approx(weights[2], abs=1e-6)


def test_without_a_collector_training_gives_the_same(tmp_path):
    _, collected, _ = trained(tmp_path / "one", collect_freq=1)
    _, bare, _ = trained(tmp_path / "two", keep_default_action=False)
    assert collected == bare


def test_nan_and_infinity_are_values(tmp_path):
    with strobe.SummaryCollector(tmp_path / "run", collect_freq=1) as collector:
        for value in (float("nan"), float("inf"), -float("inf")):
            collector.step(loss=torch.tensor([value, 1.0]))
        run = collector.run_path
    found = [value for (value,) in rows(run, "select value from scalars order by step")]
    assert np.isnan(found[0]) and found[1:] == [np.inf, -np.inf]


def test_a_batch_that_is_no_image_is_named_and_the_rest_is_collected(tmp_path):
    with strobe.SummaryCollector(tmp_path / "run") as collector:
        collector.step(loss=1.0, inputs=torch.zeros(4, 7))
        run = collector.run_path
    problems = [what for (what,) in rows(run, "select what from problems")]
    assert any("(4, 7)" in what for what in problems)
    assert rows(run, "select value from scalars") == [(1.0,)]


def test_images_beyond_0_to_1_are_scaled(tmp_path):
    assert contents._scaled(np.array([-1.0, 3.0])).tolist() == [0.0, 1.0]
    assert contents._scaled(np.array([0.25, 1.0])).tolist() == [0.25, 1.0]
    assert contents._scaled(np.array([7, 9], np.uint8)).tolist() == [7, 9]
    assert contents._scaled(np.array([np.nan, 5.0, 7.0]))[1:].tolist() == [0.0, 1.0]


def test_a_fault_while_collecting_leaves_the_rest_and_training_alone(tmp_path, capsys):
    class Broken:
        def named_parameters(self):
            raise RuntimeError("no parameters here")

    with strobe.SummaryCollector(tmp_path / "run") as collector:
        collector.step(loss=2.0, model=Broken())
        run = collector.run_path
    assert "no parameters here" in capsys.readouterr().err
    assert rows(run, "select value from scalars") == [(2.0,)]


def test_a_copy_has_the_same_options(tmp_path):
    collector = strobe.SummaryCollector(tmp_path / "run", collect_freq=7)
    for other in (copy.deepcopy(collector), pickle.loads(pickle.dumps(collector))):
        assert other.options == collector.options
        assert isinstance(other, strobe.SummaryCollector)


@pytest.mark.parametrize("folder", [None, 5, ""])
def test_a_folder_that_is_none_is_an_error(folder):
    with pytest.raises(TypeError, match="summary_dir"):
        strobe.SummaryCollector(folder)


def test_the_monitor_of_mindformers_has_a_default_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monitor = SummaryMonitor(collect_freq=2)
    assert isinstance(monitor, strobe.SummaryCollector) and monitor.options.collect_freq == 2
    monitor.step(loss=1.0)
    assert monitor.run_path == tmp_path / "output" / "summary" / "rank_0"
    monitor.close()
