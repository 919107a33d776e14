"""Distillation: a small network learns what a large, finished one says."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def network(width, depth):
    layers = [nn.Linear(64, width), nn.GELU()]
    for _ in range(depth):
        layers += [nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()]
    return nn.Sequential(*layers, nn.Linear(width, 10))


class Distillation:
    def __init__(self):
        self.teacher = network(384, 5).eval()
        self.student = network(128, 3)
        self.optimizer = torch.optim.SGD(self.student.parameters(), lr=0.05, momentum=0.9)

    def step(self, x):
        with torch.no_grad():
            wanted = self.teacher(x)
        said = self.student(x)
        loss = F.kl_div(F.log_softmax(said, 1), F.softmax(wanted, 1), reduction="batchmean")
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    job = Distillation()
    records = DataLoader(TensorDataset(torch.randn(6400, 64)), batch_size=128, shuffle=True)
    for epoch in range(6):
        losses = [job.step(x) for (x,) in records]
        print(f"epoch {epoch}: {sum(losses) / len(losses):.4f}")
