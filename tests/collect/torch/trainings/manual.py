"""No optimizer: torch.func, and torch.autograd.grad by plain tensors."""

import torch

torch.manual_seed(6)
weights = {"w": torch.randn(4, 1), "b": torch.zeros(1)}


def mse(weights: dict[str, torch.Tensor], x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return ((x @ weights["w"] + weights["b"] - y) ** 2).mean()


for step in range(1, 7):
    gradients, loss = torch.func.grad_and_value(mse)(weights, torch.randn(8, 4), torch.randn(8, 1))
    weights = {name: w - 0.1 * gradients[name] for name, w in weights.items()}
    print("metric", step, "loss", repr(loss.item()))
print("result", repr(sum(w.double().sum().item() for w in weights.values())))
