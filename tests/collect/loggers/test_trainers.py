"""What Lightning, transformers and accelerate log is recorded once, as their own files have it."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from tests.collect.loggers.runs import record, scalars, sources
from tests.faults.processes import ask

pytestmark = pytest.mark.slow

LIGHTNING = """
import sys, torch
import lightning.pytorch as pl
from lightning.pytorch.callbacks import LearningRateMonitor
from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger

class Module(pl.LightningModule):
    def __init__(self, width=4):
        super().__init__()
        self.save_hyperparameters()
        self.line = torch.nn.Linear(width, 1)

    def training_step(self, batch, number):
        loss = self.line(batch).square().mean()
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, number):
        self.log("val_loss", self.line(batch).square().mean())

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.125)

loader = torch.utils.data.DataLoader(torch.randn(32, 4), batch_size=8)
loggers = [TensorBoardLogger(".", name="tb", version=0), CSVLogger(".", name="csv", version=0)]
has_loggers = sys.argv[1] == "both"
trainer = pl.Trainer(
    max_epochs=2, logger=loggers if has_loggers else False, log_every_n_steps=2,
    enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    accelerator="cpu", callbacks=[LearningRateMonitor()] if has_loggers else [],
)
trainer.fit(Module(), loader, loader)
"""

TRANSFORMERS = """
import json, os
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TENSORBOARD_LOGGING_DIR"] = "tb"
import torch
from transformers import Trainer, TrainingArguments

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.line = torch.nn.Linear(4, 1)

    def forward(self, x, labels=None):
        return {"loss": (self.line(x) - labels).square().mean(), "logits": self.line(x)}

rows = [{"x": torch.randn(4), "labels": torch.randn(1)} for _ in range(32)]
arguments = TrainingArguments(
    "out", num_train_epochs=2, per_device_train_batch_size=8, logging_steps=2, use_cpu=True,
    report_to=["tensorboard"], eval_strategy="epoch", save_strategy="no", disable_tqdm=True,
)
trainer = Trainer(Net(), arguments, train_dataset=rows, eval_dataset=rows)
trainer.train()
with open("history.json", "w") as file:
    json.dump(trainer.state.log_history, file)
"""

ACCELERATE = """
import torch
from accelerate import Accelerator
accelerator = Accelerator(log_with="tensorboard", project_dir=".", cpu=True)
accelerator.init_trackers("tb", config={"lr": 0.125, "name": "sgd"})
net = torch.nn.Linear(4, 1)
net, optimizer = accelerator.prepare(net, torch.optim.SGD(net.parameters(), lr=0.125))
for step in range(4):
    loss = net(torch.randn(8, 4)).square().mean()
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
    accelerator.log({"loss": loss.item(), "part": step / 4}, step=5 * step)
accelerator.end_training()
"""


def test_lightning_with_two_loggers(tmp_path: Path):
    pytest.importorskip("lightning")
    run = record(tmp_path, LIGHTNING, "both")
    with open(tmp_path / "csv" / "version_0" / "metrics.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    theirs = [
        (tag, int(row["step"]), float(value))
        for row in rows for tag, value in row.items() if tag != "step" and value
    ]  # fmt: skip
    assert {tag for tag, *_ in theirs} == {"epoch", "lr-SGD", "train_loss", "val_loss"}
    assert sorted(scalars(run)) == sorted(theirs)
    assert sources(run) == {"lightning"}
    assert ask(run, "select name, value from hyperparameters") == [("width", "4")]


def test_lightning_without_a_logger(tmp_path: Path):
    pytest.importorskip("lightning")
    run = record(tmp_path, LIGHTNING, "none")
    found = [(tag, step) for tag, step, _ in scalars(run) if tag != "epoch"]
    assert found == [
        *(("train_loss", step) for step in (1, 3, 5, 7)), ("val_loss", 3), ("val_loss", 7),
    ]  # fmt: skip


def test_transformers(tmp_path: Path):
    pytest.importorskip("transformers")
    run = record(tmp_path, TRANSFORMERS)
    history = json.loads((tmp_path / "history.json").read_text(encoding="utf-8"))
    theirs = [
        (tag, row["step"], float(value))
        for row in history for tag, value in row.items() if tag != "step"
    ]  # fmt: skip
    assert {"loss", "learning_rate", "grad_norm", "eval_loss"} <= {tag for tag, *_ in theirs}
    assert sorted(scalars(run)) == sorted(theirs)
    assert sources(run) == {"transformers"}
    (size,) = ask(run, "select number from hyperparameters "
                       "where name = 'per_device_train_batch_size'")  # fmt: skip
    assert size == (8.0,)
    assert list((tmp_path / "tb").rglob("*tfevents*"))  # its own logger works as before


def test_accelerate(tmp_path: Path):
    pytest.importorskip("accelerate")
    run = record(tmp_path, ACCELERATE)
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    theirs = EventAccumulator(str(tmp_path / "tb"))
    theirs.Reload()
    for tag in ("loss", "part"):
        ours = [(step, np.float32(value)) for name, step, value in scalars(run) if name == tag]
        assert ours == [(one.step, np.float32(one.value)) for one in theirs.Scalars(tag)]
    assert len(scalars(run)) == 8
    assert sources(run) == {"accelerate"}
    assert ask(run, "select name, value from hyperparameters order by name") == [
        ("lr", "0.125"), ("name", "sgd"),
    ]  # fmt: skip
