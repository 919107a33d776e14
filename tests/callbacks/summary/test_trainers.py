"""SummaryCollector as a callback of Lightning and of transformers."""

import subprocess
import sys

import pytest

from tests.callbacks.summary.rows import rows
from tests.callbacks.trainings import COMMON
from tests.faults.processes import write
from tests.warm import python

pytestmark = pytest.mark.slow

LIGHTNING = """
import lightning

class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.line = torch.nn.Linear(8, 1)

    def training_step(self, batch, number):
        loss = self.line(batch).square().mean()
        print(self.trainer.global_step + 1, loss.item())
        return loss

    def validation_step(self, batch, number):
        self.log("error", torch.tensor(0.25))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)

collector = strobe.SummaryCollector("run", collect_freq=5)
assert isinstance(collector, lightning.Callback)
data = torch.utils.data.DataLoader(Rows(), batch_size=4)
lightning.Trainer(
    max_epochs=4, callbacks=[collector], logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False, accelerator="cpu",
).fit(Net(), data, data)
"""

TRANSFORMERS = """
import os
os.environ["HF_HUB_OFFLINE"] = "1"
from transformers import Trainer, TrainerCallback, TrainingArguments

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.line = torch.nn.Linear(8, 1)
        self.step = 0

    def forward(self, x):
        loss = self.line(x).square().mean()
        if self.training:
            self.step += 1
            print(self.step, loss.item())
        return {"loss": loss}

arguments = TrainingArguments(
    output_dir="out", num_train_epochs=4, per_device_train_batch_size=4, use_cpu=True,
    report_to="none", save_strategy="no", disable_tqdm=True, remove_unused_columns=False,
    dataloader_pin_memory=False, logging_strategy="no",
)
collector = strobe.SummaryCollector("run", collect_freq=5)
assert isinstance(collector, TrainerCallback)
def collate(rows):
    return {"x": torch.stack(rows)}
trainer = Trainer(Net(), arguments, train_dataset=Rows(), eval_dataset=Rows(),
                  data_collator=collate, callbacks=[collector])
trainer.train()
trainer.evaluate()
"""


@pytest.mark.parametrize(
    "library, text", [("lightning", LIGHTNING), ("transformers", TRANSFORMERS)]
)
def test_a_trainer_calls_the_collector(library, text, tmp_path):
    pytest.importorskip(library)
    done = python(write(tmp_path, COMMON + text), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    pairs = [line.split() for line in done.stdout.splitlines()]
    losses = {int(p[0]): float(p[1]) for p in pairs if len(p) == 2 and p[0].isdigit()}
    run = tmp_path / "run"
    found = rows(run, "select step, value from scalars where tag = 'loss/auto' order by step")
    assert found == [(step, losses[step]) for step in (1, 5, 10, 15, 20)]
    histograms = rows(run, "select tag, count(*) from histograms group by tag order by tag")
    assert histograms == [("line.bias/auto", 5), ("line.weight/auto", 5)]
    facts = dict(rows(run, "select name, value from lineage where kind = 'train' order by step"))
    assert facts["network"] == "Net" and float(facts["loss"]) == losses[20]
    if library == "lightning":
        assert facts["batch_size"] == "4" and facts["optimizer"] == "SGD"
    ((name, step),) = rows(
        run, "select max(name), max(step) from lineage where kind = 'evaluation' "
        "and name in ('error', 'eval_runtime')"
    )  # fmt: skip
    assert (name, step) == ("error" if library == "lightning" else "eval_runtime", 20)
    assert not [p for p in tmp_path.iterdir() if p.name.startswith("run-")]


def test_the_collector_imports_no_trainer_and_no_numpy(tmp_path):
    text = "import sys, strobe, strobe.mindspore\nstrobe.SummaryCollector, strobe.SummaryWriter\n"
    text += "strobe.mindspore.SummaryMonitor()\n"
    text += "print(sorted({'numpy', 'torch', 'mindspore', 'lightning'} & set(sys.modules)))\n"
    done = subprocess.run(
        [sys.executable, "-c", text], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout == "[]\n", done.stderr


def test_what_is_not_closed_ends_with_the_script(tmp_path):
    text = """
import torch, strobe
model = torch.nn.Linear(2, 2)
collector = strobe.SummaryCollector("run", collect_freq=1)
writer = strobe.SummaryWriter("log")
for step in range(1, 4):
    collector.step(loss=step, model=model)
    writer.add_scalar("loss", step, step)
"""
    done = python(write(tmp_path, text), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    run = tmp_path / "run"
    facts = rows(run, "select number from lineage where name = 'loss'")
    assert facts == [(3.0,)]
    assert rows(run, "select count(*) from histograms") == [(6,)]
    assert rows(tmp_path / "log", "select count(*) from scalars") == [(3,)]
