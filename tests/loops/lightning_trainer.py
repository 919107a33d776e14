"""A Lightning trainer with a validation loop."""

import warnings

import lightning
import torch
from common import data, model
from torch.nn import functional

warnings.filterwarnings("ignore")


class Task(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = model()

    def training_step(self, batch, _):
        x, y = batch
        return functional.mse_loss(self.net(x), y)

    def validation_step(self, batch, _):
        x, y = batch
        self.log("loss", functional.mse_loss(self.net(x), y))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())


trainer = lightning.Trainer(
    max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=1,
)  # fmt: skip
task = Task()
trainer.fit(task, data(10), data(3))
print(next(task.parameters()).sum().item())
