"""autograd.grad, an update by hand, and no DataLoader."""

import torch
from common import model
from torch.nn import functional

net = model()
parameters = list(net.parameters())
for _ in range(20):
    x, y = torch.randn(16, 8), torch.randn(16, 1)
    loss = functional.mse_loss(net(x), y)
    gradients = torch.autograd.grad(loss, parameters)
    with torch.no_grad():
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter -= 0.05 * gradient
print(loss.item())
