"""Two models in one loop, with losses of the same name and a helper that goes backward."""

import torch
from torch import nn

torch.manual_seed(14)
models = [nn.Linear(4, 1), nn.Linear(4, 1)]
optimizers = [torch.optim.SGD(net.parameters(), lr=0.1 + n) for n, net in enumerate(models)]


def update(loss: torch.Tensor, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


for step in range(1, 9):
    for number, (net, optimizer) in enumerate(zip(models, optimizers, strict=True)):
        loss = net(torch.randn(8, 4)).square().mean()
        update(loss, optimizer)
        print("metric", step, f"loss/{number}", repr(loss.item()))
        print("metric", step, f"learning_rate/{number}", repr(0.1 + number))
print("result", repr(sum(p.double().sum().item() for p in models[0].parameters())))
