"""A training by Lightning, to be given a callback or a profiler."""

TRAINING = """
import logging
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
import lightning

class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.line = torch.nn.Linear(8, 1)

    def training_step(self, batch, index):
        return self.line(batch).square().mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)

trainer = lightning.Trainer(
    max_epochs=4, accelerator="cpu", logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False, GIVEN,
)
trainer.fit(Net(), torch.utils.data.DataLoader(Rows(), batch_size=4))
"""
