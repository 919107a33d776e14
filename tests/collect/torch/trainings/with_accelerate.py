"""accelerate divides the loss by the batches that an update accumulates: the script prints it
undivided.
"""

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(11)
accelerator = Accelerator(gradient_accumulation_steps=3, cpu=True)
data = TensorDataset(torch.randn(72, 8), torch.randn(72, 1))
net = nn.Linear(8, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
net, optimizer, loader = accelerator.prepare(net, optimizer, DataLoader(data, batch_size=4))
update = 1
for x, y in loader:
    with accelerator.accumulate(net):
        loss = nn.functional.mse_loss(net(x), y)
        accelerator.backward(loss)
        print("metric", update, "loss", repr(loss.item()))
        if accelerator.sync_gradients:
            norm = accelerator.clip_grad_norm_(net.parameters(), 1.0)
            print("metric", update, "gradient_norm", repr(norm.item()))
            print("metric", update, "learning_rate", "0.1")
            update += 1
        optimizer.step()
        optimizer.zero_grad()
print("result", repr(sum(p.double().sum().item() for p in net.parameters())))
