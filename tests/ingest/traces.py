"""Small trainings under torch.profiler."""

from pathlib import Path

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))

    def forward(self, x):
        return self.layers(x)


class Cnn(nn.Module):
    """With groups, stride, a bias, none, and a transposed convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(4, 8, 3, stride=2, padding=1, groups=2),
            nn.ReLU(),
            nn.Conv2d(8, 6, (3, 1), dilation=2, bias=False),
            nn.ConvTranspose2d(6, 4, 3, stride=2, output_padding=1, groups=2),
        )

    def forward(self, x):
        return self.layers(x)


class Transformer(nn.Module):
    """One block of attention written out in matrix products."""

    def __init__(self, width: int = 16, heads: int = 2) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        batch, length, width = x.shape
        shape = (batch, length, self.heads, width // self.heads)
        q, k, v = (part.reshape(shape).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        weights = torch.softmax(q @ k.transpose(-2, -1), -1)
        return self.norm(x + self.out((weights @ v).transpose(1, 2).reshape(x.shape)))


MODELS = {
    "mlp": (Mlp, (8, 16)),
    "cnn": (Cnn, (2, 4, 17, 17)),
    "transformer": (Transformer, (2, 5, 16)),
}


def one_step(model, x):
    model(x).pow(2).mean().backward()


def record(path: Path, work, **options):
    """Run a function under torch.profiler and leave its trace at a path; the profiler."""
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, **options) as profiler:
        work()
    profiler.export_chrome_trace(str(path))
    return profiler
