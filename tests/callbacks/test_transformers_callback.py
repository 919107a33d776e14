from pathlib import Path

import pytest

from tests.callbacks.trainings import full_steps, is_window

pytest.importorskip("transformers")

TRAINING = """
import os
os.environ["HF_HUB_OFFLINE"] = "1"
from transformers import Trainer, TrainingArguments

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.line = torch.nn.Linear(8, 1)

    def forward(self, x):
        return {"loss": self.line(x).square().mean()}

arguments = TrainingArguments(
    output_dir="out", num_train_epochs=4, per_device_train_batch_size=4, use_cpu=True,
    report_to="none", save_strategy="no", disable_tqdm=True, remove_unused_columns=False,
    dataloader_pin_memory=False,
)
callback = strobe.callbacks.TransformersCallback(output_path="data", HOW)
def collate(rows):
    return {"x": torch.stack(rows)}
Trainer(Net(), arguments, train_dataset=Rows(), data_collator=collate, callbacks=[callback]).train()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "how, first, last",
    [("start_step=7, stop_step=9", 7, 9), ("start_epoch=2, stop_epoch=2", 6, 10)],
)
def test_by_step_and_by_epoch(how: str, first: int, last: int, tmp_path: Path):
    found = full_steps(tmp_path, TRAINING.replace("HOW", how))
    assert is_window(found, first, last), found
