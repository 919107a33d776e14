"""The Trainer of transformers, whose model computes the loss."""

import sys

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

torch.manual_seed(13)
config = BertConfig(
    vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
)
data = [{"input_ids": torch.randint(0, 50, (6,)), "labels": torch.tensor(n % 2)} for n in range(40)]


class Printing(Trainer):
    def training_step(self, *args, **kwargs):
        loss = super().training_step(*args, **kwargs)
        print("metric", self.state.global_step + 1, "loss", repr(loss.item()))
        return loss


arguments = TrainingArguments(
    sys.argv[1], per_device_train_batch_size=8, num_train_epochs=2, report_to=[], use_cpu=True,
    save_strategy="no", logging_strategy="no", disable_tqdm=True, lr_scheduler_type="constant",
)  # fmt: skip
model = BertForSequenceClassification(config)
Printing(model, arguments, train_dataset=data).train()
print("result", repr(sum(p.double().sum().item() for p in model.parameters())))
