"""A transformers Trainer with gradient accumulation."""

import os
import tempfile

os.environ["TRANSFORMERS_OFFLINE"] = "1"
import torch
import transformers
from torch.utils.data import Dataset

torch.set_num_threads(1)


class Tokens(Dataset):
    def __len__(self):
        return 96

    def __getitem__(self, index):
        ids = torch.arange(index, index + 12) % 50
        return {"input_ids": ids, "labels": ids}


transformers.set_seed(0)
config = transformers.GPT2Config(
    vocab_size=50, n_positions=16, n_embd=16, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0
)
net = transformers.GPT2LMHeadModel(config)
with tempfile.TemporaryDirectory() as folder:
    arguments = transformers.TrainingArguments(
        output_dir=folder, per_device_train_batch_size=4, gradient_accumulation_steps=2,
        num_train_epochs=1, report_to=[], save_strategy="no", use_cpu=True, disable_tqdm=True,
        logging_steps=1000, dataloader_num_workers=0,
    )  # fmt: skip
    result = transformers.Trainer(net, arguments, train_dataset=Tokens()).train()
print(result.training_loss)
