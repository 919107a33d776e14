"""An autoencoder; a thread beside it works out statistics of the weights all the time."""

import threading

import torch
from torch import nn


class WeightStatistics(threading.Thread):
    """Singular values and a histogram of every layer, for a page that shows them live."""

    def __init__(self, model):
        super().__init__(daemon=True)
        self.model, self.is_over, self.latest = model, threading.Event(), {}

    def run(self):
        while not self.is_over.is_set():
            for name, weights in list(self.model.named_parameters()):
                if weights.ndim == 2:
                    self.latest[name] = summary(weights.detach().clone())
            self.is_over.wait(0.001)


def summary(weights):
    values = weights.flatten()
    ordered, _ = values.sort()
    products = weights.double() @ weights.double().T
    return {
        "norm": float(torch.linalg.eigvalsh(products)[-1].sqrt()),
        "quantiles": ordered[:: max(1, len(ordered) // 10)].tolist(),
        "histogram": torch.histc(values, 100).tolist(),
    }


def main():
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 128), nn.ReLU(), nn.Linear(128, 512),
        nn.ReLU(), nn.Linear(512, 512),
    )  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    data = torch.randn(20, 384, 512)
    statistics = WeightStatistics(model)
    statistics.start()
    for step in range(500):
        batch = data[step % len(data)]
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(batch), batch)
        loss.backward()
        optimizer.step()
    statistics.is_over.set()
    statistics.join()
    print(f"loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
