"""Summaries of a training that is recorded: they are in its run, with its steps."""

import json
from pathlib import Path

import pytest

from tests.callbacks.summary.rows import rows
from tests.faults.processes import write
from tests.frameworks import environment
from tests.warm import python

pytestmark = pytest.mark.slow

TORCH = """
import torch, strobe
from strobe.mindspore import SummaryRecord
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
first, other = strobe.SummaryWriter("logs/train"), strobe.SummaryWriter("logs/test")
record = SummaryRecord("records")
with strobe.Profiler("data", light=True) as profiler:
    with strobe.SummaryCollector("summary", collect_freq=2) as collector:
        for step in range(1, 6):
            loss = model(torch.ones(2, 4)).square().mean()
            loss.backward()
            optimizer.step()
            collector.step(loss=loss, model=model)
            for number, writer in enumerate(
                (first, other, strobe.SummaryWriter("logs/train"))
            ):
                writer.add_scalar(f"value", number, 10 * step + number)
            record.add_value("scalar", "kept", loss.detach())
            record.record(step)
    record.close()
"""

JAX = """
import jax, jax.numpy as jnp, json, strobe
layer = {"w": jnp.arange(6.0).reshape(2, 3), "b": jnp.zeros(3)}
parameters = {"layer": layer, "list": [jnp.ones(1)]}
with strobe.SummaryCollector("summary", collect_freq=2) as collector:
    for step in range(1, 4):
        loss = jnp.square(parameters["layer"]["w"]).mean()
        collector.step(loss=loss, model=parameters, inputs=jnp.ones((2, 4, 4, 3)) * 0.5)
        parameters = jax.tree_util.tree_map(lambda one: one + 1, parameters)
"""


def test_values_are_in_the_run_that_records(tmp_path: Path):
    done = python(write(tmp_path, TORCH), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    run = tmp_path / "data"
    tags = rows(run, "select tag, count(*) from scalars where source != 'automatic' "
                     "group by tag order by tag")  # fmt: skip
    assert tags == [("kept", 5), ("loss/auto", 3), ("value", 15)]
    series = rows(
        run, "select source, list(step order by step) from scalars where tag = 'value' "
        "group by source order by source"
    )  # fmt: skip
    assert len(series) == 2  # two writers of one folder are one series
    assert [len(steps) for _, steps in series] in ([10, 5], [5, 10])
    assert rows(run, "select count(*) from histograms") == [(6,)]
    for folder in ("logs", "summary", "records"):
        assert not (tmp_path / folder).exists()


def test_trees_of_jax_have_histograms_by_their_paths(tmp_path: Path):
    (tmp_path / "train.py").write_text(JAX)
    done = environment.run("jax", "train.py", cwd=tmp_path, timeout_s=200)
    assert done.returncode == 0, done.stderr
    found = environment.rows(
        "jax", tmp_path / "summary", "select tag, step, max, counts from histograms order by all"
    )
    assert [(row["tag"], row["step"]) for row in found] == [
        (tag, step) for tag in ("layer/b/auto", "layer/w/auto", "list/0/auto") for step in (1, 2)
    ]
    assert found[2]["max"] == 5 and sum(json.loads(found[2]["counts"])) == 6
    images = environment.rows(
        "jax", tmp_path / "summary", "select step, width, height, channels from images"
    )
    assert [tuple(row.values()) for row in images] == [(1, 8, 4, 3), (2, 8, 4, 3)]
