"""What a script gives to MLflow is what its store has, which our reader reads."""

from pathlib import Path
from typing import Any

import pytest

import strobe
from tests.frameworks import environment

pytestmark = pytest.mark.slow

SCRIPT = """
import time
import mlflow, strobe
from mlflow import MlflowClient
from mlflow.entities import Metric, Param

mlflow.set_tracking_uri("file:./mlruns")
with mlflow.start_run(run_name="one") as run:
    assert mlflow.log_param("lr", 0.125) == 0.125
    mlflow.log_params({"name": "sgd", "batch": 32})
    for step in range(4):
        strobe.step()
        mlflow.log_metric("loss", 1 / (step + 3), step=5 * step)
        mlflow.log_metrics({"a": step * 2.0, "b": float("inf")}, step=step)
    client, now = MlflowClient(), int(time.time() * 1000)
    client.log_metric(run.info.run_id, "client", 3.0, step=4)
    client.log_batch(
        run.info.run_id, [Metric("batch", 1.0, now, 3), Metric("batch", 2.0, now, 4)],
        [Param("late", "v")],
    )
with mlflow.start_run(run_name="two"):
    mlflow.log_metric("loss", 9.0, step=1)
    mlflow.log_metric("no step", 4.0)
"""


def ask(run: Path, query: str) -> list[Any]:
    with strobe.open_run(run) as opened:
        return opened.sql(query).fetchall()


def test_every_value_is_the_one_in_the_store(tmp_path: Path):
    (tmp_path / "train.py").write_text(SCRIPT, encoding="utf-8")
    done = environment.run(
        "trackers", "-m", "strobe", "run", "-q", "-o", tmp_path / "run", tmp_path / "train.py",
        cwd=tmp_path, timeout_s=300, MLFLOW_ALLOW_FILE_STORE="true",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    stores = {path.parent.parent for path in tmp_path.glob("mlruns/*/*/metrics/*")}
    (one,) = [store for store in stores if (store / "metrics" / "client").exists()]
    query = "select tag, step, value from scalars where source = 'mlflow' "
    order = "order by tag, step"
    ours = ask(tmp_path / "run", query + "and tag not like 'two/%' " + order)
    assert ours == ask(one, query + order)
    assert len(ours) == 4 * 3 + 3
    second = ask(tmp_path / "run", query + "and tag like 'two/%' " + order)
    # MLflow stores step 0 for what has none; here it has the training step.
    assert second == [("two/loss", 1, 9.0), ("two/no step", 4, 4.0)]
    settings = "select name, value from hyperparameters order by name"
    assert ask(tmp_path / "run", settings) == ask(one, settings)
    assert ask(tmp_path / "run", "select what from problems") == []
