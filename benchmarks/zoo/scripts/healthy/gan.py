"""A generative adversarial network: two networks, two optimizers, one step of each in turn."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def mlp(*sizes, last=None):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.LeakyReLU(0.2)]
    layers.pop()
    return nn.Sequential(*layers, *([last] if last else []))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    generator = mlp(64, 512, 512, 784, last=nn.Tanh())
    discriminator = mlp(784, 512, 512, 1)
    g_optimizer = torch.optim.Adam(generator.parameters(), 2e-4, betas=(0.5, 0.999), fused=True)
    d_optimizer = torch.optim.Adam(discriminator.parameters(), 2e-4, betas=(0.5, 0.999), fused=True)
    criterion = nn.BCEWithLogitsLoss()
    real_pictures = DataLoader(
        TensorDataset(torch.rand(128 * 30, 784) * 2 - 1), batch_size=128, shuffle=True
    )
    for epoch in range(3):
        for (real,) in real_pictures:
            ones, zeros = torch.ones(len(real), 1), torch.zeros(len(real), 1)
            fake = generator(torch.randn(len(real), 64))

            d_optimizer.zero_grad()
            d_loss = criterion(discriminator(real), ones)
            d_loss = d_loss + criterion(discriminator(fake.detach()), zeros)
            d_loss.backward()
            d_optimizer.step()

            g_optimizer.zero_grad()
            g_loss = criterion(discriminator(fake), ones)
            g_loss.backward()
            g_optimizer.step()
        print(f"epoch {epoch} D {d_loss.item():.3f} G {g_loss.item():.3f}")


if __name__ == "__main__":
    main()
