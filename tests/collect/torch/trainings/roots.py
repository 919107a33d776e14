"""A backward pass from two losses at once, and groups of parameters with names."""

import torch
from torch import nn

torch.manual_seed(15)
encoder, decoder = nn.Linear(8, 4), nn.Linear(4, 8)
optimizer = torch.optim.RMSprop(
    [
        {"params": encoder.parameters(), "lr": 0.01, "name": "encoder"},
        {"params": decoder.parameters(), "lr": 0.02, "name": "decoder"},
    ]
)
for step in range(1, 9):
    x = torch.randn(16, 8)
    code = encoder(x)
    difference, size = (decoder(code) - x).square().mean(), code.square().mean()
    optimizer.zero_grad()
    torch.autograd.backward([difference, size * 0.1])
    optimizer.step()
    print("metric", step, "loss/difference", repr(difference.item()))
    print("metric", step, "loss/size", repr((size * 0.1).item()))
    print("metric", step, "learning_rate/encoder", "0.01")
    print("metric", step, "learning_rate/decoder", "0.02")
print("result", repr(sum(p.double().sum().item() for p in encoder.parameters())))
