"""Lightning, with accumulation and clipping: the loss as training_step returns it."""

import torch
from lightning import LightningModule, Trainer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(12)


class Model(LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(8, 1)

    def training_step(self, batch, number):
        x, y = batch
        loss = nn.functional.mse_loss(self.net(x), y)
        print("metric", number // 3 + 1, "loss", repr(loss.item()))
        if number % 3 == 2:
            print("metric", number // 3 + 1, "learning_rate", "0.1")
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


model = Model()
trainer = Trainer(
    max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False, gradient_clip_val=1.0,
    accumulate_grad_batches=3,
)  # fmt: skip
data = TensorDataset(torch.randn(72, 8), torch.randn(72, 1))
trainer.fit(model, DataLoader(data, batch_size=4))
print("result", repr(sum(p.double().sum().item() for p in model.parameters())))
